package cutdisk

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
)

// A Kind is a kind of operation.
type Kind uint8

// The kinds of operation.
const (
	MkdirAll Kind = iota
	List
	Open
	Create
	Append
	Rename
	Remove
	SyncDir
	Lock
	Read
	Write
	WriteAt
	Sync
	Reserve
	Truncate

	kinds = iota
)

var kindNames = [kinds]string{
	"mkdir", "list", "open", "create", "append", "rename", "remove", "sync dir", "lock", "read", "write", "overwrite", "sync", "reserve", "truncate",
}

// String returns the kind's name.
func (k Kind) String() string { return kindNames[k] }

// Changes are the kinds of operation that change what is, or what will be found after the
// power went.
var Changes = []Kind{MkdirAll, Create, Rename, Remove, SyncDir, Lock, Write, WriteAt, Sync, Truncate}

// Changes reports whether the kind is one of [Changes].
func (k Kind) Changes() bool { return slices.Contains(Changes, k) }

// An Op is one operation.
type Op struct {
	Number int // of all operations of the disk, from 1
	Nth    int // of its kind, from 1
	Kind   Kind
	Name   string
	Bytes  int // that are to be read or written
}

// String returns "7: write store/log/1.seg (50 bytes)".
func (o Op) String() string {
	s := fmt.Sprintf("%d: %s %s", o.Number, o.Kind, o.Name)
	if o.Bytes > 0 {
		s += fmt.Sprintf(" (%d bytes)", o.Bytes)
	}
	return s
}

// ErrInjected is what operations fail with that [Nth] and [From] make fail.
var ErrInjected = errors.New("the disk was told to fail")

// Nth is for [Disk.Before]: it makes the operation of that number fail, counted among those of
// the kinds given, or among all if none is.
func Nth(n int, of ...Kind) func(Op) error {
	return counting(of, func(i int) bool { return i == n })
}

// From is for [Disk.Before]: it makes the n-th operation fail and all that follow, counted
// among those of the kinds given, or among all if none is.
func From(n int, of ...Kind) func(Op) error {
	return counting(of, func(i int) bool { return i >= n })
}

// counting returns a function that counts the operations of those kinds from now on, and
// makes those fail whose number fails says.
func counting(of []Kind, fails func(i int) bool) func(Op) error {
	var seen atomic.Int64
	return func(op Op) error {
		if len(of) > 0 && !slices.Contains(of, op.Kind) {
			return nil
		}
		if fails(int(seen.Add(1))) {
			return fmt.Errorf("%s: %w", op, ErrInjected)
		}
		return nil
	}
}
