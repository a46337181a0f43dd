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
// # What this package does not know
//
// Nothing here knows of HTTP or of particular resources. A [Store] is made of a
// [storage.Table], a [Strategy] and, where a create depends on other objects, [Guard]s.
package registry
