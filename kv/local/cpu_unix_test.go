//go:build unix

package local_test

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime is what the process has spent, garbage collection and system included.
func cpuTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
