//go:build !linux

package main

import "time"

// startedAt returns when the process began, as far as that can be told here: now.
func startedAt() time.Time { return time.Now() }
