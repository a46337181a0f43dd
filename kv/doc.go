// Package kv says what a revisioned key-value store is.
//
// # One history
//
// Every commit that changes something becomes the next [Revision], however many keys
// it touches, so of any two revisions the larger one happened later. Revisions only
// grow; there may be gaps.
//
// # Writing without locks
//
// A writer locks nothing. It sends a [Txn]: the revisions it saw, and the changes that
// follow from them. If any key has moved on since, nothing is written and the answer is
// [ErrConflict]. Losing that race is an ordinary answer, not a fault.
//
// A commit has three answers. Without an error it is done: durable, and readable by
// whoever asks next. [ErrUnknown] says that nobody knows: after a restart it is there wholly
// or not at all. Every other error says that it was certainly not written.
//
// # Reading
//
// A [Snapshot] is the store at one revision, and never changes. What is deleted or
// overwritten stays readable for a while: [Engine.Revisions] says from which revision
// on, and [Version.Prev] walks one key backwards through it.
//
// # Watching
//
// A [Watch] is a place in the list of changes to the keys under a prefix. It costs
// nothing while nobody moves it, misses nothing and repeats nothing; one that falls
// behind the history that is kept ends with [ErrCompacted].
//
// # Keys
//
// A key is space/group/resource[/namespace]/name, all parts non-empty, free of '/', and none of them '.' or '..'.
// The space separates API servers that share one process; the part before the namespace
// (the first three) is called a table. A prefix ends in '/' and names a space, a table
// or a namespace of a table; as a prefix of a [Watch] a full key stands for that one key.
package kv
