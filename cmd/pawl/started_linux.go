package main

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// ticksPerSecond is how the kernel counts in /proc, on every machine that Go runs on.
const ticksPerSecond = 100

// startedAt returns when the process began, to the hundredth of a second: what happens before
// main takes part in how long a start takes. If that cannot be told it is now.
func startedAt() time.Time {
	now := time.Now()
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return now
	}
	const startTime = 22 // field of stat, counted from 1; the second ends with the last parenthesis
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < startTime-2 {
		return now
	}
	ticks, err := strconv.ParseInt(string(fields[startTime-3]), 10, 64)
	var sinceBoot unix.Timespec
	if err != nil || unix.ClockGettime(unix.CLOCK_BOOTTIME, &sinceBoot) != nil {
		return now
	}
	age := time.Duration(sinceBoot.Nano()) - time.Duration(ticks)*(time.Second/ticksPerSecond)
	return now.Add(-max(age, 0))
}
