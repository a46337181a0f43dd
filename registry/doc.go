// Package registry is the store behind every Kubernetes API: it turns "here is the object I
// want" into one atomic, versioned write.
//
// # One update
//
// An update is a function from the version that exists to the version that should exist, run
// again until it lands on the version it was computed from:
//
//	read current ▶ preconditions ▶ desired ▶ DECIDE ▶ guards ▶ prepare ▶ validate ▶ SETTLE ▶ commit
//	     ▲                                                                                 │
//	     └──────────────────────────────── lost the race ◀──────────────────────────────────┘
//
// Two small pure functions hold what matters: decide says what becomes of a request, from
// the version stored, the version the sender names and the resource's policy; settle says
// what the write leaves behind. Everything else is fetching what they need and doing what
// they say.
//
// # A refused write is explained
//
// A write made against an older version is refused with the reference's words, so that every
// client keeps working. The error is a [*ConflictError], which can also say which fields
// changed since the version the writer had read, who changed them, and which of them the
// refused write changes too. Nothing of that is worked out unless somebody asks.
//
// # A stale write may be rebased
//
// Whoever sets [UpdateOptions].Rebase has their change applied to the version that exists: what differs
// between the version that they had read, which is taken from history, and what they send. That happens only if
// it shares no field with what others changed since; [Updated].Rebased then says what was done. Fields are
// told apart by the [Shape] of the store's objects.
//
// # Go types
//
// A [Collection] is a store for objects of a Go type: [Of] makes one of an engine and a strategy. Its
// [Collection.Update] tries again until it lands, or until it gives up and says what it lost to.
//
// # Several objects at once
//
// A [Transaction] has members, each of which is a create, an update, a delete or a look at an object,
// in any stores of one engine. Their judges are asked in turn about one state, and what they say is one
// commit, or none: then the error names the member, and says what it would be told alone.
//
// # The past
//
// Every version remembers who made it. [Store.History] goes back through those that are kept, and
// [Store.At] reads an object as it was. How long they are kept is the engine's.
//
// # What an update costs
//
// In processor time at its best and in allocations, for an object of 1 KiB with a Go type, without
// managedFields and in memory, on the machine of docs/measured.md:
//
//	read what is stored         7.5 us   35    as encoding/json does; see go-json-experiment/json/v1
//	copy it for the change      2.4 us   15
//	prepare it                  0.1 us    0    without what a strategy does
//	check its metadata          0.3 us    0    what is not certain costs the library's 6 us
//	write it                    4.7 us   24    encoding/json
//	commit                      2.4 us   14    in memory; a disk takes its time, and no processor
//	all, and what joins it     17.8 us   99    [Store.Update]
//	without a change           16.0 us   85    no commit, and no event
//
// A Collection reads the result once more. Hooks that want to be told, and validators that want a
// copy, cost what they take. (go test -run xxx -bench 'Steps|Update' ./registry)
//
// # What this package does not know
//
// Nothing here knows of HTTP or of particular resources. A [Store] is made of a
// [storage.Table], a [Strategy] and, where a create depends on other objects, [Guard]s.
package registry
