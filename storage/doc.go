// Package storage keeps Kubernetes objects in a [kv.Engine].
//
// A [Table] holds the objects of one resource, as one of its versions sees them. It is the
// only one who knows how objects lie in the store; above it there are [Version]s, below
// it keys and bytes.
//
// # One write
//
// Everything that writes is one loop, [Table.Modify]: read what is stored, let a judge say
// what should become of it, and commit that on the condition that nothing of what the judge
// looked at has changed meanwhile; if something has, begin again. Create, update, patch,
// apply, delete and "delete because the last finalizer went" differ only in their judges.
//
// A judge may have looked at a state that is not the newest: on an engine with several
// servers the state at hand may lag. A commit does not care, its conditions find out. Every
// other outcome would be final, so it stands only if the keys the judge looked at are the
// same in a confirmed state; otherwise the judge is asked again.
//
// Whoever has lost a race once waits for their turn at that key, first come first served, and
// whoever comes while others wait joins them, so that many writers of one object form a queue and
// not a storm; see [Turns].
//
// [Transact] is the same for several objects: their judges are asked one after the other about
// one state, and what they say is one commit.
//
// # Where reads begin
//
// A list is given a [From] and a watch a [WatchFrom], which say what they mean and nothing else.
// [ListQuery] and [WatchQuery] make them of the options that clients send, whose meaning depends
// on one another.
//
// # What is stored
//
// The resourceVersion of an object is the revision of its last write and is never stored
// (rule K7). A stored value is an envelope:
//
//	byte     format, 1
//	uint64   fingerprint, big-endian: how the JSON may be read without decoding it
//	uvarint  length of the part of the JSON that holds kind and apiVersion, with both
//	         the opening brace and the comma that follows
//	uvarint  offset of the opening brace of metadata
//	uvarint  offset just after its closing brace
//	...      the JSON
//
// With these marks an object is sent by concatenation: everything up to and including the
// opening brace of metadata, the resourceVersion, the rest.
//
// A judge may also give a value of its own, which only it understands: see [Verdict].
package storage
