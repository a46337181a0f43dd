// Package histories checks a store of package kv as a system: many clients do at random
// what a store can do, while it is closed, opened, and loses its power; then everything
// that they were told is judged together.
//
// # A run
//
// A [Plan] gives each client its operations, as a pure function of a seed: the same seed
// asks for the same things of every store, on every machine. What the answers are depends
// on who came first. So an operation names revisions by what its client has seen: "put k3
// if it is as I last saw it", "read at the fifth newest revision that I know".
//
// Closing, opening and the loss of power are operations like all others. They come while
// the other clients are in the middle of theirs.
//
// # Several engines at once
//
// A store that engines share has one stage for each of them. Some clients stay at one, others change, and take
// what they know with them: revisions, watches that they resume, snapshots. One engine is closed and opened while the others
// go on. In place of power it is the way to the store that is cut, or a member of the store that stops or hangs; only then an answer may be that nothing is known,
// or that the store cannot be reached. One engine is told everything late, so that it never knows by itself what the
// others' clients do.
//
// # What is judged
//
// Each answer, with when it was asked for and when it came, goes to two judges who know
// nothing of each other.
//
// [Linearize] asks porcupine whether there is any order of the commits and the latest
// reads that explains all answers, and in which nobody is answered before somebody
// who had his answer already. A commit whose outcome is unknown may be in that order or not.
//
// A naive twin makes the same commits in the order of their revisions, one after
// the other, into a map, as a watch of everything tells them. It knows every state that there was, and
// compares each with what was read, told and refused: reads of every freshness, snapshots
// looked at again, versions walked backwards, watches joined anywhere and resumed after
// every restart, progress, compaction, expiry.
//
// Beside that, [Ring] keeps a ring of keys whose links are swapped by transactions. It
// must be a ring in every snapshot and in every prefix of a watch.
//
// # Another engine
//
// A store under test is a [Subject]: a function that opens it, and, if it can, one that
// takes away its power, or makes trouble. It is one line in the table of the tests.
package histories
