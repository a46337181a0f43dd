package storage

import (
	"context"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pawl-dev/pawl/kv"
)

// A Table is the objects of one resource, seen in one of its versions. It is safe for
// concurrent use.
type Table struct {
	engine     kv.Engine
	prefix     string // the table of package kv, with its last '/'
	namespaced bool
	codec      Codec
	fields     FieldsFunc
	turns      *Turns
	observer   Observer // nil if nobody wants to know
	resource   string   // as observers are told
}

// Options are what a [Table] is made of. All but Space, Fields, Turns and Observer are needed; a table whose
// values are [Verdict.Value] needs no Codec either.
type Options struct {
	Engine     kv.Engine
	Space      string // kv.DefaultSpace if empty
	Group      string // "" for the core group
	Resource   string // the plural name
	Namespaced bool
	Codec      Codec
	Fields     FieldsFunc // nil: only metadata.name and metadata.namespace can be selected
	Turns      *Turns     // shared by all tables of an engine; nil: the table's own
	Observer   Observer   // nil: nobody is told
}

// coreGroup stands for the core group in keys: a group in a key must not be empty, and no
// other group can be called that since all others have a dot or are the reference's own.
const coreGroup = "core"

// NewTable returns the table that o describes.
func NewTable(o Options) *Table {
	return &Table{
		engine: o.Engine, prefix: TablePrefix(o.Space, o.Group, o.Resource), namespaced: o.Namespaced,
		codec: o.Codec, fields: o.Fields, turns: orNew(o.Turns),
		observer: o.Observer, resource: schema.GroupResource{Group: o.Group, Resource: o.Resource}.String(),
	}
}

func orNew(t *Turns) *Turns {
	if t == nil {
		return &Turns{}
	}
	return t
}

// TablePrefix returns the prefix of all keys of a resource, with its last '/'.
func TablePrefix(space, group, resource string) string {
	if space == "" {
		space = kv.DefaultSpace
	}
	if group == "" {
		group = coreGroup
	}
	return space + "/" + group + "/" + resource + "/"
}

// Key returns the key of an object, whether it exists or not. The namespace is "" for an object
// that has none.
func (t *Table) Key(namespace, name string) string {
	if t.namespaced && namespace != "" {
		return t.prefix + namespace + "/" + name
	}
	return t.prefix + name
}

// scope returns the prefix of the keys in one namespace, of all if it is "".
func (t *Table) scope(namespace string) string {
	if t.namespaced && namespace != "" {
		return t.prefix + namespace + "/"
	}
	return t.prefix
}

func (t *Table) split(key string) (namespace, name string) {
	rest := key[len(t.prefix):]
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		return rest[:i], rest[i+1:]
	}
	return "", rest
}

// Resource returns the name of the resource that the table is of.
func (t *Table) Resource() schema.GroupResource { return schema.ParseGroupResource(t.resource) }

// Namespaced reports whether the keys of the table have namespaces.
func (t *Table) Namespaced() bool { return t.namespaced }

// Codec returns what reads and writes the objects, nil if the table has no objects but values.
func (t *Table) Codec() Codec { return t.codec }

// Engine returns the engine beneath.
func (t *Table) Engine() kv.Engine { return t.engine }

// at wraps what a snapshot holds under a key; nothing stays nothing.
func (t *Table) at(v *kv.Version) Version {
	if v == nil || v.Deleted {
		return Version{}
	}
	return Version{table: t, kv: v, rev: v.Revision}
}

// futureWait is how long a read waits for a version that does not exist yet (rule H102).
const futureWait = 3 * time.Second

func (t *Table) read(ctx context.Context, at kv.Freshness) (kv.Snapshot, error) {
	if rev, ok := at.Exactly(); ok && t.ahead(rev) {
		// An engine refuses this at once; in the reference its cache waits (rule K53).
		if _, err := t.read(ctx, kv.AtLeast(rev)); err != nil {
			return nil, err
		}
	}
	wait := ctx
	if at.AtLeast() != kv.Absent {
		var cancel context.CancelFunc
		wait, cancel = context.WithTimeout(ctx, futureWait)
		defer cancel()
	}
	snap, err := t.engine.Read(wait, at)
	if err != nil {
		return nil, engineError(ctx.Err(), err)
	}
	return snap, nil
}

func (t *Table) ahead(rev kv.Revision) bool {
	_, newest := t.engine.Revisions()
	return rev > newest
}

// Get returns the newest version, or with at one at least that new (rule K20). A missing
// object is [NotFound].
func (t *Table) Get(ctx context.Context, namespace, name string, at kv.Freshness) (Version, error) {
	snap, err := t.read(ctx, at)
	if err != nil {
		return Version{}, err
	}
	v := t.at(snap.Get(t.Key(namespace, name)))
	if !v.Exists() {
		return v, &Error{Kind: NotFound, Namespace: namespace, Name: name}
	}
	return v, nil
}

// At returns the version that was there at revision rev, looking backwards from v. It may be
// a removal; it does not exist if nothing was there, or what was is no longer kept.
func (v Version) At(rev kv.Revision) Version {
	for v.Exists() && v.kv.Revision > rev {
		v = v.Prev()
	}
	return v
}

// encode makes the stored value of obj.
func (t *Table) encode(obj runtime.Object) ([]byte, document, error) {
	data, fp, err := t.codec.Encode(obj)
	if err != nil {
		return nil, document{}, err
	}
	return seal(data, fp)
}
