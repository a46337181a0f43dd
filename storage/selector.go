package storage

import (
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// A Selector picks objects by labels and fields. Its zero value picks all.
type Selector struct {
	Labels labels.Selector
	Fields fields.Selector

	// Func, if there is one, picks among what the others pick. A list asks it once for each
	// version, in key order; a watch asks it about what was and what is. An error of it ends the
	// list; a watch ends with one of kind [Corrupt], and takes any other for a no (rule K79).
	Func func(v Version) (bool, error)
}

// Empty reports whether s picks everything (rule K72).
func (s Selector) Empty() bool {
	return s.Func == nil && s.plain()
}

// plain reports whether neither labels nor fields matter.
func (s Selector) plain() bool {
	return (s.Labels == nil || s.Labels.Empty()) && (s.Fields == nil || s.Fields.Empty())
}

// Matches reports whether s picks v. The error is that v cannot be read, or its fields
// cannot be worked out.
func (s Selector) Matches(v Version) (bool, error) { return s.sieve().matches(v) }

// A sieve is a selector made ready for many objects, so that looking at one makes no
// garbage. One goroutine at a time may use it.
type sieve struct {
	Selector
	all       bool // picks everything
	alone     bool // Func alone picks
	ownFields bool // asks for fields that the key does not tell
	look      selectable
}

func (s Selector) sieve() *sieve {
	f := &sieve{Selector: s, all: s.Empty(), alone: s.Func != nil && s.plain()}
	if s.Fields != nil {
		for _, r := range s.Fields.Requirements() {
			f.ownFields = f.ownFields || !keyTells(r.Field)
		}
	}
	return f
}

func (f *sieve) matches(v Version) (bool, error) {
	if f.all {
		return true, nil
	}
	if f.alone {
		return f.Func(v)
	}
	ls, fs, err := v.attributes(f.ownFields)
	if err != nil {
		return false, err
	}
	if f.Labels != nil && !f.Labels.Matches(ls) {
		return false, nil
	}
	f.look = selectable{v, fs}
	if f.Fields != nil && !f.Fields.Matches(&f.look) {
		return false, nil
	}
	if f.Func == nil {
		return true, nil
	}
	return f.Func(v)
}

// The fields that every object has.
const (
	nameField      = "metadata.name"
	namespaceField = "metadata.namespace"
)

func keyTells(field string) bool { return field == nameField || field == namespaceField }

// selectable shows a version's fields without a map for those that its key tells.
type selectable struct {
	v     Version
	extra fields.Set
}

func (s *selectable) Get(field string) string {
	switch field {
	case nameField:
		return s.v.Name()
	case namespaceField:
		return s.v.Namespace()
	}
	return s.extra[field]
}

func (s *selectable) Has(field string) bool {
	_, ok := s.extra[field]
	return ok || keyTells(field)
}
