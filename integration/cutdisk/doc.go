// Package cutdisk is a disk for tests: it keeps its files in memory, and loses power, fails,
// fills up and goes bad when it is told to. It is Pebble's file system in memory behind the
// interface that kv/local asks of a file system.
//
// # What is lost when the power goes
//
// [Disk.Cut] returns the disk as it may be found after the power went at this moment. What
// was synced is there. Of the rest each thing survives or not by a chance that the test
// chooses: a name that was made, replaced or removed since its folder was synced, and the
// bytes that were written to a file since that was. Those may survive to the middle of a write,
// with a hole of zeros, or as nothing but length. A source of chance that is the same makes
// the same disk of it.
//
// # What fails
//
// Every operation is an [Op] with a number, a [Kind] and a name. What [Disk.Before] was given
// is asked before each: it may cut the power, hold the operation up, or make it fail. [Nth]
// and [From] make one operation fail, or all from one on. A write that fails writes half, and
// what a sync that fails should have made safe is lost with the power even if a later one
// succeeds, unless it was written again.
//
// [Disk.Limit] makes the disk small: what does not fit is refused with [local.ErrFull].
// [Disk.Flip] changes one bit of what lies on it.
//
// # What it does not tell
//
// A file that was cut shorter is kept as a new one under its name, and syncing it syncs the
// names in its folder, too. Kv/local cuts files only at an end that was torn or not written.
package cutdisk
