// Package kubectl runs kubectl against pawl: what it holds is scripts, one for each thing
// that people do with it, and they read as a manual.
//
// kubectl is linked into the test binary, so the scripts run wherever Go does and are never
// skipped. To run them with another kubectl:
//
//	KUBECTL=/usr/local/bin/kubectl go test ./integration/kubectl
//
// Each script, testdata/script/*.txtar, has a server of its own, a home of its own, and a
// kubeconfig that points there. It begins with the sentence of the specification it proves.
package kubectl
