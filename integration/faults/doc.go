// Package faults makes the disk under a store fail in every way that [cutdisk] knows, at every
// operation in turn, and the clock jump, and then compares what the store holds with what its
// clients know. It has only tests.
//
// # What is asked of the store
//
// Clients commit, read and watch; see world. They remember every commit that was shown to
// them and every one that was asked for and not answered; see memory. After each accident:
//
//   - every commit that was answered or shown is there, with its revision, its author, its time
//     and what it replaced; so revisions never go back;
//   - what was refused is not there;
//   - what was not answered, or answered as unknown, is there wholly or not at all;
//   - what was compacted stays compacted, and otherwise every table can tell its last 75 seconds;
//   - a key that expires went no earlier than it was asked to;
//   - and the store goes on from there.
//
// The workload writes small and large commits, alone and at the same time, with conditions that
// hold and that do not, in segments and snapshots so small that pruning goes on all the time,
// and compacts, shrinks, lets keys expire, closes and opens again.
//
// # What is covered
//
// Every test says how many accidents it made, and fails if there were fewer than the operations
// of a run in which nothing happens. PAWL_FAULTS=all makes longer workloads with several seeds, which takes half an hour.
//
// One case is exempt. A bit that flips in the last frame of a store that was not closed looks like
// a write that a crash tore, and the commits of that frame are given up. With the store closed
// that is damage like any other.
package faults
