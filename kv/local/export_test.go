package local

import "io"

// WithEntropy returns o with the source of segment ids given.
func (o Options) WithEntropy(r io.Reader) Options {
	o.entropy = r
	return o
}

// SyncFile is what the engine waits for.
var SyncFile = syncFile
