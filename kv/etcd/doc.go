// Package etcd is the engine for many processes: it keeps a store in etcd, and any number of engines
// on one prefix of one etcd are one store.
//
// # Who does what
//
// etcd decides and keeps; the index (package mvcc) answers. A commit is one etcd transaction, or one of
// several within one. The engine learns of commits, its own and others', from one watch of its
// prefix, and applies them to an index in memory, from which everything is read, listed and watched.
//
//	Commit ──▶ etcd ──▶ watch ──▶ index ──▶ Read, Watch
//	  ▲                             │
//	  └───── answered once seen ◀───┘
//
// Opening is the same watch, from revision 1; if that is far behind, first several, of a part of the
// history each, since etcd tells one watch no more than a thousand revisions at a time. If that much history
// is compacted, the keys are read in pages as they were at the compacted revision, and watched from there.
//
// # Revisions
//
// What commits come while one transaction is on its way to etcd are sent together in the next, as transactions within it, if
// none changes what another looks at or changes: one request and one revision of etcd's for up to 32. Each is judged by
// itself, and has a revision of its own: a revision of etcd's is 128 of the store's, of which a commit that is alone has the
// last, and others of the same transaction those before. So revisions have gaps.
//
// # What is promised where
//
//   - A commit is answered once the index shows it, so a writer reads its own write. Every commit leaves
//     its own number with the keys it puts: the watch tells what became of it even if etcd's answer was lost.
//   - A conflict is answered once the index shows the revision that was lost to.
//   - Latest asks etcd for its revision, and waits for the index. Whoever asks while others wait shares
//     one question with them. Revisions at which nothing under the prefix changed are learnt by
//     asking the watch for progress, so another's writes to the same etcd keep nobody waiting. They are shown
//     only to who asks for them.
//   - Any, and everything that is not new, is answered from the index whether etcd is there or not.
//   - If etcd cannot be reached, writes are refused, [kv.ErrAway], or, where one was under way, unknown.
//     When it is back the watch goes on where it was. Close does not wait for it.
//   - If history was compacted that the index still needs, the state is read anew and every watch ends
//     with [kv.ErrCompacted]. A commit is told by what is read, if all that it put is still there.
//   - If etcd has no room, the engine is read-only, says so in Err, and tries again by itself. One that writes nothing notices
//     within ten seconds.
//   - If etcd asks who is there and does not let it write, the engine is read-only in the same way; if it does not let it
//     read, Open fails with a [DeniedError], and later it is as if etcd was away. Err says what to grant.
//   - A store begins only where nothing else is under its prefix: Open fails with an [OccupiedError].
//   - If etcd's revision goes back, or it tells another history or another cluster's, the engine stops:
//     nothing can be told about the writes in between. All calls are answered with [kv.ErrClosed], and Err says why.
//
// # Several members
//
// Each replica asks one of the members that were named for everything, and watches there; which one, chance decides. One that
// hangs, with its connections open, holds up a commit that was sent to it, until another tells by the watch that it
// was made, or the patience for it is over. Nothing else waits for it for longer than about two seconds: once it owes an answer
// for half a second it is passed over until it answers again, as is one that says that it has no leader; whatever may be asked twice is
// asked of another; and if the watch tells nothing while there is something to tell, it goes on at another.
//
// # What a commit may hold
//
// etcd takes [MaxOps] changes, as many conditions, and requests of [MaxBytes]. More is
// [kv.ErrTooLarge]. A deletion costs one change more, however many keys it has, and whatever changes
// a key costs a condition on it where it has none.
//
// # Expiry
//
// A key goes by itself when its lease ends: no earlier than asked, and no later than [Slack], as
// far as etcd keeps up. Puts that expire at about the same time share a lease.
//
// An etcd that elects a leader begins all leases anew, so keys may live up to twice as long; one that elects leaders
// more often than a lease lasts never ends it. One that runs with --feature-gates=LeaseCheckpoint=true notes every five
// minutes how much is left, which helps leases that are longer than that.
//
// # Forgetting
//
// At times one of the replicas, whoever is first, has etcd forget what is older than history is wanted to be: it
// moves a key that says from which revision on history is kept, and the others obey it. Compact does so at once, for
// any revision. A compaction that somebody else makes, or that etcd had no room to tell of, every replica notices by
// itself, and forgets what is older than 75 seconds. It is history of the whole etcd, whatever its prefix. Where etcd
// asks who is there, it compacts for no user but those with the role root: the replicas forget all the same, and say once
// that etcd does not.
//
// # Time
//
// The time of a commit is what its writer's clock showed, or the time of a commit before it, if that is later. When a key
// expires is said by that time; it goes when its lease ends, which no clock has a say in that somebody sets. A replica that is opened
// once the commit before is forgotten does not know of that time, and tells what the writer's clock showed.
//
// # Moving here
//
// [Restore] makes a store of the versions of another, where nothing may be. Clients of that one have seen its revisions, and
// etcd counts from 1; so the store calls its revisions by larger numbers than etcd, all by the same amount, which
// is kept with it: they go on after all that were ever given, and those from before are compacted. What was
// restored is one state, read as it was when the restore ended, and has no history. That amount is the first that is written, with a
// mark that says that the rest is missing: [Open] refuses such a store, and only the last commit of the restore takes the
// mark away. An engine that has the prefix open meanwhile is told by its watch, and stops.
//
// # What is in etcd
//
//	<prefix>/kv/<key>       the value of a key, in an envelope
//	<prefix>/kv//deleted    who deleted last: written with each commit that deletes, since etcd keeps nothing of a deletion
//	<prefix>/kv//floor      the revision from which on history is kept
//	<prefix>/kv//room       written to find out whether there is room again
//	<prefix>/kv//origin     of a restored store: 1, or 2 once it is whole, and how far its revisions are ahead of etcd's; both u
//	<prefix>/once/<name>    what [Engine.Once] keeps, or [Engine.Replace]
//	<prefix>/leader/<name>  who leads, by [Engine.Lead]; and "restore", while somebody restores
//
// An envelope is (numbers of fixed size big-endian; u is a uvarint; a text is its length, u, and its bytes):
//
//	┌────────┬───────┬───────────┬─────────┬────────────┬───────────┬────────┬────────────┬───────────────────────────────────────────┬───────┐
//	│ format │ flags │ behind, 1 │ born, 1 │ replica, 8 │ number, u │ time,8 │ expires, 8 │ user, manager, verb, subresource: 4 texts │ value │
//	└────────┴───────┴───────────┴─────────┴────────────┴───────────┴────────┴────────────┴───────────────────────────────────────────┴───────┘
//
// The format is 1. Flags say which fields are there: bit 0 the time of expiry, bit 1 how many commits of the same transaction
// are behind this one, bit 2 how many were behind the one that made the key. Times are nanoseconds since 1970. Replica
// and number name the commit. etcd keeps the revision and the revision at which a key was made: r of etcd's is
// 128 (r+1) - 1 of the store's, less by what is behind and, where there is an origin, more by what that says.
package etcd

// For whoever changes this package.
//
// One goroutine, [Engine.follow], writes to the index. It alone uses the reader and moves the floor
// of the index. One more sends groups of commits while there are any, and another where one of them hangs; one sends requests for progress on its stream, one looks after etcd's health
// and compaction, one asks for revisions while somebody wants to know. One guards the watch. Each member that is passed over has one that asks it
// whether it answers again: see members.go.
//
// What is not known for certain is never answered as refused: see fault.go for what is certain.
//
// A [kv.Revision] is always the store's, and what etcd is told or tells an int64: [keyspace] turns one into the other.
