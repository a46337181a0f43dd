// Package controllers runs controller-runtime against pawl, as an operator's author does: a
// manager with a reconciler of a custom resource, its cache, its clients, leader election, and
// envtest with pawl as the cluster that exists already.
//
// The custom resource is the mill: it has sails, grinds one sort of grain, and owns a
// Deployment that turns the sails and a ConfigMap that says how. What it keeps outside its own
// namespace, a line in a ledger, it cannot own: that is what its finalizer is for.
package controllers
