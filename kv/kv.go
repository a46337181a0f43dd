package kv

import (
	"context"
	"iter"
	"strconv"
	"sync/atomic"
	"time"
	"unique"
)

// A Revision counts commits. Larger is later.
type Revision uint64

// Absent is the revision of a key that does not exist.
const Absent Revision = 0

// String returns the revision as clients see it: an unsigned decimal.
func (r Revision) String() string { return strconv.FormatUint(uint64(r), 10) }

// Limits that hold on every engine. One may take less in a transaction than these; it says [ErrTooLarge].
const (
	MaxKeyBytes   = 4 << 10  // length of a key
	MaxValueBytes = 16 << 20 // length of a value
	MaxTxnOps     = 4096     // conditions and changes of one transaction, taken together
	MaxTxnBytes   = 64 << 20 // length of the keys and values that one transaction writes
)

// An Engine keeps one store. It is safe for concurrent use, and neither keeps nor
// gives out a slice that its caller may change.
type Engine interface {
	// Commit makes every change in txn or none of them, and answers once what it
	// did is durable and can be read. If a condition does not hold, the error is
	// [ErrConflict], names the first key that had moved on, and comes only once the
	// revision it lost to can be read. A txn without changes only checks its
	// conditions and answers with the newest revision.
	//
	// A cancelled context may end the wait, with [ErrUnknown], but not the commit.
	Commit(ctx context.Context, txn Txn) (Committed, error)

	// Read returns the store as fresh as asked: [Latest], [Any], [AtLeast] or
	// [Exactly] a revision. AtLeast a revision that does not exist yet waits for it
	// as long as ctx allows, then says [ErrFuture]; Exactly such a revision says so
	// at once. Exactly a revision whose history is gone is [ErrCompacted].
	Read(ctx context.Context, at Freshness) (Snapshot, error)

	// Watch returns the place after revision after in the list of changes to the
	// keys under prefix, [ErrCompacted] if the history just after it is gone.
	// A revision from the future is fine: nothing older will be seen.
	Watch(prefix string, after Revision) (Watch, error)

	// Revisions returns the oldest revision that can be read everywhere, and the newest.
	Revisions() (oldest, newest Revision)

	// Err returns why the engine takes no writes, nil while it does. What is in the way may
	// pass, as a disk does that is full.
	Err() error

	// Close waits for the commits under way, ends all watches with [ErrClosed] and
	// releases what the engine holds.
	Close() error
}

// A Compactor is an engine that can forget history when told to.
type Compactor interface {
	// Compact forgets what only revisions before rev need. [ErrFuture] if rev is
	// newer than the newest revision; forgetting what is forgotten does nothing.
	Compact(ctx context.Context, rev Revision) error
}

// A Txn is a set of conditions and of changes, all or nothing, over any number of keys.
// No key is changed twice.
type Txn struct {
	Author     Author
	Conditions []Condition
	Ops        []Op
}

// A Condition holds while key is at revision At; [Absent] means that it must not exist.
type Condition struct {
	Key string
	At  Revision
}

// An Op puts a value under a key, or deletes the key. Deleting what is absent is
// allowed and changes nothing.
type Op struct {
	Key    string
	Value  []byte // not nil for a put
	Delete bool
	Expiry Expiry // of a put
	Slot   any    // of a put: becomes the [Version]'s slot; see there
}

// Put returns an Op that sets key to value, keeping the expiry that key has.
func Put(key string, value []byte) Op { return Op{Key: key, Value: value} }

// Delete returns an Op that removes key.
func Delete(key string) Op { return Op{Key: key, Delete: true} }

// Expiry says when a key goes by itself. The zero value is [Keep].
type Expiry struct {
	Kind ExpiryKind
	For  time.Duration // with [After]
}

// An ExpiryKind is one of Keep, Forever and After.
type ExpiryKind uint8

const (
	Keep    ExpiryKind = iota // as it is; a new key stays forever
	Forever                   // never goes by itself
	After                     // goes Expiry.For after the commit
)

// An Author is who made a change, as far as is known. It is kept with every change.
type Author struct {
	User        string
	Manager     string // the field manager, as managedFields name it
	Verb        string // create, update, patch, apply, delete, …
	Subresource string
}

// Committed is what a commit did.
type Committed struct {
	Revision Revision
	Versions []*Version // one for each Op, in order; nil where nothing was there to delete
}

// A Version is what one key holds from one revision on. It never changes, and is
// shared by everyone who reads it.
type Version struct {
	Key      string
	Value    []byte // nil if Deleted; must not be changed
	Revision Revision
	Created  Revision // the revision at which the key came to be, through all its versions
	Time     Instant  // of the commit; never before that of an earlier revision, unless it was restored
	Expires  Instant  // zero if it does not
	Author   unique.Handle[Author]
	Deleted  bool

	// Slot is for the layer above, which may remember there what it worked out
	// about Value. An engine never looks into it, and may lose it.
	Slot atomic.Value

	prev atomic.Pointer[Version]
}

// By returns who made the version.
func (v *Version) By() Author {
	if v.Author == (unique.Handle[Author]{}) {
		return Author{}
	}
	return v.Author.Value()
}

// Prev returns what the key held before, deleted versions included; nil if there was
// nothing or it is no longer retained. See [Version.Created] to tell these apart.
func (v *Version) Prev() *Version { return v.prev.Load() }

// SetPrev is for engines: they link a version to the one it replaces, and cut that
// link when history is forgotten.
func (v *Version) SetPrev(p *Version) { v.prev.Store(p) }

// A Snapshot is the store as it was at one revision.
type Snapshot interface {
	// Revision returns the revision of the store that is seen here.
	Revision() Revision
	// Get returns what key holds, nil if it does not exist.
	Get(key string) *Version
	// Ascend yields the versions under prefix whose key is at least from, in key
	// order. A deleted key is not there. A prefix ends in '/', or is "" for all.
	Ascend(prefix, from string) iter.Seq[*Version]
}

// A Counter is a [Snapshot] that can tell how many versions Ascend would yield, without
// yielding them. Ask [Count].
type Counter interface {
	Count(prefix, from string) int
}

// Count returns how many versions s has under prefix whose key is at least from. Where s is no
// [Counter] it looks at each of them.
func Count(s Snapshot, prefix, from string) int {
	if c, ok := s.(Counter); ok {
		return c.Count(prefix, from)
	}
	n := 0
	for range s.Ascend(prefix, from) {
		n++
	}
	return n
}

// A Watch is a place in a list of changes. One goroutine at a time may use it;
// Stop may be called from any.
type Watch interface {
	// Next returns the next change and moves on, or false if there is none yet. The
	// error is [ErrCompacted] if the watch fell behind, [ErrClosed] after Stop or
	// when the engine has closed; then the watch is over.
	Next() (Event, bool, error)
	// Wait returns a channel that is closed once Next has something to say.
	Wait() <-chan struct{}
	// Progress returns the revision up to which Next has nothing to tell that it has
	// not told. It says false while there is something to tell.
	Progress() (Revision, bool)
	Stop()
}

// An Event is one change of one key.
type Event struct {
	Version *Version // what it became; Version.Deleted for a removal
	Prev    *Version // what it was; nil if it did not exist
}

// Freshness says which state of the store a reader wants.
type Freshness struct {
	kind freshness
	rev  Revision
}

type freshness uint8

const (
	latest freshness = iota
	anyState
	atLeast
	exactly
)

var (
	// Latest is a state that holds every commit answered before the read began.
	Latest = Freshness{kind: latest}
	// Any is whatever state is at hand.
	Any = Freshness{kind: anyState}
)

// AtLeast is a state that holds revision r.
func AtLeast(r Revision) Freshness { return Freshness{atLeast, r} }

// Exactly is the state just after revision r.
func Exactly(r Revision) Freshness { return Freshness{exactly, r} }

// IsLatest reports whether f is [Latest].
func (f Freshness) IsLatest() bool { return f.kind == latest }

// AtLeast returns the revision that must be held, [Absent] if none must.
func (f Freshness) AtLeast() Revision {
	if f.kind == atLeast {
		return f.rev
	}
	return Absent
}

// Exactly returns the one revision that is meant, and whether there is one.
func (f Freshness) Exactly() (Revision, bool) { return f.rev, f.kind == exactly }
