package local

import (
	"time"

	"github.com/pawl-dev/pawl/kv"
)

// A commit is what one record holds: the changes of one revision, or, if it has none, the
// order to forget what only older revisions need.
type commit struct {
	revision kv.Revision
	time     time.Time
	author   kv.Author
	changes  []change
}

// A change is one key's part in a commit.
type change struct {
	version  *kv.Version
	replaces kv.Revision // the revision of the version that was there; Absent if none
}

// size returns about how many bytes the record of c takes.
func (c *commit) size() int {
	size := 64
	for _, ch := range c.changes {
		size += 64 + len(ch.version.Key) + len(ch.version.Value)
	}
	return size
}
