package storage

import (
	"encoding/json"
	"time"

	jsonv1 "github.com/go-json-experiment/json/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/pawl-dev/pawl/kv"
)

// A Version is one version of one object. It is small, never changes, and may be copied.
// Its zero value is that of an object that does not exist.
type Version struct {
	table *Table
	kv    *kv.Version
	rev   kv.Revision
	draft *document // in place of a stored value, for what was not stored: dry run
}

// Exists reports whether there is an object at all.
func (v Version) Exists() bool { return v.kv != nil }

// Revision returns the object's resourceVersion: that of its write or, for an object that
// was removed, that of its removal (rule K42).
func (v Version) Revision() kv.Revision { return v.rev }

// As returns the same object under another resourceVersion.
func (v Version) As(rev kv.Revision) Version {
	v.rev = rev
	return v
}

// Namespace returns the namespace, "" for an object that has none.
func (v Version) Namespace() string { ns, _ := v.table.split(v.kv.Key); return ns }

// Name returns the name.
func (v Version) Name() string { _, name := v.table.split(v.kv.Key); return name }

// Author returns who wrote this version.
func (v Version) Author() kv.Author { return v.kv.By() }

// Time returns when this version was written.
func (v Version) Time() time.Time { return v.kv.Time.Time() }

// Expires returns when the object goes by itself; zero if it does not.
func (v Version) Expires() time.Time { return v.kv.Expires.Time() }

// Created returns the revision at which the object came to be. Two versions of one name
// with different ones are of different objects.
func (v Version) Created() kv.Revision { return v.kv.Created }

// Prev returns the version before this one, or one that does not exist if there was none or
// it is no longer kept. A removal in between is not skipped: see [Version.Removed].
func (v Version) Prev() Version {
	p := v.kv.Prev()
	if p == nil {
		return Version{}
	}
	return Version{table: v.table, kv: p, rev: p.Revision}
}

// Removed reports whether this is the mark that a removal left in the history.
func (v Version) Removed() bool { return v.kv.Deleted }

// Key returns the key that the object is under, and Value what is stored there; neither may be
// changed. They are for whoever knows more about the value than this package: see [Verdict.Value].
func (v Version) Key() string { return v.kv.Key }

// Value returns what is stored; see [Version.Key].
func (v Version) Value() []byte { return v.kv.Value }

func (v Version) document() (document, error) {
	if v.draft != nil {
		return *v.draft, nil
	}
	d, err := unseal(v.kv.Value)
	if err != nil {
		return d, v.corrupt(err)
	}
	return d, nil
}

func (v Version) corrupt(err error) error {
	ns, name := v.table.split(v.kv.Key)
	return &Error{Kind: Corrupt, Namespace: ns, Name: name, Err: err}
}

// Object decodes the object, with its resourceVersion. The caller owns it.
func (v Version) Object() (runtime.Object, error) {
	d, err := v.document()
	if err != nil {
		return nil, err
	}
	obj, err := v.table.codec.Decode(d.json)
	if err != nil {
		return nil, v.corrupt(err)
	}
	acc, err := meta.Accessor(obj)
	if err != nil {
		return nil, v.corrupt(err)
	}
	if v.rev != kv.Absent {
		acc.SetResourceVersion(v.rev.String())
	}
	return obj, nil
}

// AppendJSON appends the object as stored, without decoding it, and reports whether it
// could: only if what is stored is what the table's codec would make of it. An item is
// without kind and apiVersion.
func (v Version) AppendJSON(dst []byte, item bool) ([]byte, bool) {
	d, err := v.document()
	if err != nil || d.fingerprint == Unfit || d.fingerprint != v.table.codec.Fingerprint() {
		return dst, false
	}
	return d.appendTo(dst, v.rev, item), true
}

// AppendMetadata appends the object's metadata as stored, whatever the stored form.
func (v Version) AppendMetadata(dst []byte) ([]byte, error) {
	d, err := v.document()
	if err != nil {
		return dst, err
	}
	return d.appendMetadata(dst, v.rev), nil
}

// Metadata decodes the object's metadata alone.
func (v Version) Metadata() (metav1.ObjectMeta, error) {
	var m metav1.ObjectMeta
	d, err := v.document()
	if err != nil {
		return m, err
	}
	if err := jsonv1.Unmarshal(d.json[d.metaStart:d.metaEnd], &m); err != nil {
		return m, v.corrupt(err)
	}
	if v.rev != kv.Absent {
		m.ResourceVersion = v.rev.String()
	}
	return m, nil
}

// A memo is what selection and guards need to know of a stored value. It hangs on the value's
// slot.
type memo struct {
	labels   labels.Set
	deleting bool
	fields   fields.Set // of the table by
	by       *Table     // nil while the fields have not been asked for
	err      error
}

// attributes returns the labels and, if wanted, the selectable fields.
func (v Version) attributes(wantFields bool) (labels.Set, fields.Set, error) {
	m := v.memo(wantFields)
	return m.labels, m.fields, m.err
}

// memo returns what is remembered of the version, working it out on the first look.
func (v Version) memo(wantFields bool) *memo {
	m, _ := v.kv.Slot.Load().(*memo)
	if m == nil || m.err == nil && wantFields && m.by != v.table {
		m = v.look(wantFields)
		v.kv.Slot.Store(m)
	}
	return m
}

func (v Version) look(wantFields bool) *memo {
	if !wantFields || v.table.fields == nil {
		d, err := v.document()
		if err != nil {
			return &memo{err: err}
		}
		m := &memo{}
		if wantFields {
			m.by = v.table
		}
		var md struct {
			Labels            labels.Set
			DeletionTimestamp *json.RawMessage
		}
		if err := jsonv1.Unmarshal(d.json[d.metaStart:d.metaEnd], &md); err != nil {
			return &memo{err: v.corrupt(err)}
		}
		m.labels, m.deleting = md.Labels, md.DeletionTimestamp != nil
		return m
	}
	obj, err := v.Object()
	if err != nil {
		return &memo{err: err}
	}
	return v.table.memoOf(obj)
}

func (t *Table) memoOf(obj runtime.Object) *memo {
	acc, err := meta.Accessor(obj)
	if err != nil {
		return &memo{err: err}
	}
	m := &memo{labels: acc.GetLabels(), deleting: acc.GetDeletionTimestamp() != nil, by: t}
	if len(m.labels) == 0 {
		m.labels = nil
	}
	if t.fields != nil {
		m.fields, m.err = t.fields(obj)
	}
	return m
}
