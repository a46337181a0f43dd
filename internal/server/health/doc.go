// Package health serves what a server says of itself: whether it is well, which version it is,
// what it counts, and which paths it has (rules H31 to H39).
//
// # Checks
//
// A [Check] has a name and a function that returns what is wrong. [Endpoint] serves a list of them at
// one of /healthz, /livez and /readyz, and each of them below it. The whole is
// readable by anyone (rule H36), so it names the checks that fail and withholds why; who
// may read below it sees the reason. What is different between the three endpoints is only which checks they
// are given: those that restarting the process could mend belong to /livez, and [Stopping]
// belongs to /readyz alone (rule H37).
package health
