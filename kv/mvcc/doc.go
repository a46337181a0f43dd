// Package mvcc is the index that every engine reads from: the newest state of a store,
// its recent history, and the watchers.
//
// # One tree, and the past told backwards
//
// The index keeps one ordered tree, the newest state. [Index.Publish] applies a group of
// commits to it and then swaps in a copy, which shares everything that did not change, so
// a reader takes a snapshot with one atomic load and no lock. Beside the tree lies, for
// each table, the list of the events that led to it. The state at an older revision is
// the newest tree under an overlay of the events since: no state but the newest is stored.
// Nor is anything counted while it is written: the branches of the tree know how much they
// hold, which tells how many keys there are under a prefix, or after a key.
//
// # Forgetting
//
// History is forgotten from its old end, whole revisions of one table at a time, when it
// is older than [Options.Duration] or when all tables together hold more than
// [Options.Bytes]; then the table that holds most gives first, so a busy one
// cannot push out the others. Nothing younger than [MinHistory] is ever forgotten, except
// by [Index.Compact]. Forgetting an event cuts the link from its version to the one
// before it.
//
// # Watching
//
// A topic is what a watch can be of: a table, a namespace of one, a single key, or a whole
// space. Events of one topic are a linked list, and a watcher is a pointer into it: it has
// no buffer and no goroutine, and costs nothing while nobody moves it. The lists
// of tables always exist; those of other topics only while they are watched, made from the
// events that are kept.
//
//	topic.head ──▶ event ──▶ event ──▶ event ◀── topic.tail
//	 (forgotten)     ▲                   ▲
//	             a watcher            one that has seen everything
//
// When an event is forgotten, the place before it is marked as gone and its link is cut:
// whoever still stands there has missed something and is told so, and holds no memory
// alive. Whoever stands on the last event of a quiet topic misses nothing, however old.
package mvcc

// For whoever changes this package.
//
// The order within Publish is what Progress rests on: first the snapshot pointer, then
// the links, then Index.linked. A watcher that loads linked, and then finds no link to
// follow, knows that nothing up to that revision is missing.
//
// Locks: Index.mu before topic.mu; no callbacks run under either.
