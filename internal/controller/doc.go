// Package controller holds the few loops that an API server is useless without: namespaces that
// are being deleted are emptied and go ([Namespaces]), and so do the objects of
// CustomResourceDefinitions ([Definitions]); objects whose owners have gone follow them
// ([Collector], which follows all tables at once and says itself how).
//
// # Driven by events
//
// A loop follows one table: from a list of it, then its changes, from a new list if it fell
// behind. For each object that is being deleted and waits for this loop there is one job,
// a goroutine that does all there is to do, one thing after another, and that costs nothing
// while it waits. What it waits for are the changes of what is left. Nothing is asked again
// because time has passed, but for what failed: that is tried again after a pause that grows.
//
// # Why nothing is left behind
//
// Once a namespace or a definition is marked, nothing new comes into being under it: every
// create is tied to the mark not being there (see package admission, and package crd). So a
// job reads one confirmed state in which the mark is there, deletes exactly the objects of that
// state, each by its identity, and reads again. When a confirmed state shows nothing, nothing
// will ever be there, and the finalizer is taken away.
//
// Since only objects of a state with the mark are deleted, and only by their identity, a job
// that comes late never touches a successor that has the same name.
//
// # After a restart
//
// All that a job knows is stored: the mark, the finalizer, the objects. It begins again with
// the first state that the loop reads.
package controller
