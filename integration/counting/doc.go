// Package counting has many count up the same numbers at once, through every way that package registry has to
// write, while the store loses its power and is opened again, and sees that no increment is lost. It has only tests.
//
// The stores are those of package histories: in memory, on a disk, on one that loses its power, and shared by
// replicas that are cut off from etcd now and then. What was counted
// is judged by package tally. A judge who notices nothing would be noticed: the same is done to stores that break one
// promise each, and through a way that names no version.
//
// A failure prints the seed of its run. The seed says what each writer does in turn, and when the power fails; who
// comes first is not its to say, so it may take some tries to see a failure again.
package counting
