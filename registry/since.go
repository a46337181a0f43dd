package registry

import (
	"context"
	"maps"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/pawl-dev/pawl/internal/objectjson"
	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/storage"
)

// So much is looked at to find who changed a field: versions, and bytes of them as they are stored.
const (
	walkMax      = 256
	walkBytesMax = 4 << 20
)

// What is remembered of explanations, in each store: so that many requests refused for the same
// reason, or nearly the same, cost what one does.
const (
	readingsMax      = 64
	readingBytesMax  = 4 << 20 // of them, as stored
	changesMax       = 256
	changedFieldsMax = 8192 // of them
)

// A recollection is what a store remembers of the versions that conflicts were about.
type recollection struct {
	readings *memo[versionKey, *reading]
	changes  *memo[changesKey, *changes]
}

func newRecollection() recollection {
	return recollection{newMemo[versionKey, *reading](readingsMax, readingBytesMax), newMemo[changesKey, *changes](changesMax, changedFieldsMax)}
}

// A versionKey is one version of one object, a changesKey two.
type (
	versionKey struct {
		key string
		at  kv.Revision
	}
	changesKey struct {
		key      string
		from, to kv.Revision
	}
)

// A reading is a version as writing it again would leave it: what defaulting fills in or pruning
// drops by now is nobody's change. It must not be changed.
type reading struct {
	object  runtime.Object
	content map[string]any // see fieldsOf
}

// reading reads a version.
func (s *Store) reading(ctx context.Context, v storage.Version) (*reading, error) {
	return s.recollection.readings.recall(versionKey{v.Key(), v.Revision()}, func() (*reading, int, error) {
		old, _, err := decode(v)
		if err != nil {
			return nil, 0, err
		}
		obj := old.DeepCopyObject()
		s.prepareSuccessor(ctx, obj, old)
		content, err := fieldsOf(obj)
		return &reading{obj, content}, len(v.Value()), err
	})
}

// contentOf is what a version holds; see fieldsOf.
func contentOf(v storage.Version) (map[string]any, error) {
	obj, _, err := decode(v)
	if err != nil {
		return nil, err
	}
	return fieldsOf(obj)
}

// unownedMetadata are the members of metadata that no writer owns (rule H149), but for the name and the
// namespace, which are compared: they must not change, and whoever tries is to be told.
var unownedMetadata = []string{"resourceVersion", "generation", "managedFields", "selfLink", "uid", "creationTimestamp"}

// fieldsOf is an object as decoded JSON, without what no writer owns. It may share parts with
// the object.
func fieldsOf(obj runtime.Object) (map[string]any, error) {
	m, err := objectjson.Of(obj)
	if err != nil {
		return nil, err
	}
	m = maps.Clone(m)
	delete(m, "kind")
	delete(m, "apiVersion")
	if md, ok := m["metadata"].(map[string]any); ok {
		md = maps.Clone(md)
		for _, name := range unownedMetadata {
			delete(md, name)
		}
		m["metadata"] = md
	}
	return m, nil
}

// changes are what happened to an object between two of its versions.
type changes struct {
	net    []fieldpath.Path // the fields that differ
	fields []FieldChange    // each of them, with who changed it last
	cut    bool             // history ended before all had been found
}

// since returns what happened to an object between the version seen and the current one.
func (s *Store) since(ctx context.Context, seen, current storage.Version) (*changes, error) {
	key := changesKey{current.Key(), seen.Revision(), current.Revision()}
	return s.recollection.changes.recall(key, func() (*changes, int, error) {
		net, err := s.between(ctx, seen, current)
		if err != nil {
			return nil, 0, err
		}
		c := &changes{net: net, fields: make([]FieldChange, len(net))}
		for i, p := range net {
			c.fields[i].Path = p.String()
		}
		if len(net) > 0 {
			err = s.attribute(ctx, c, current, seen.Revision())
		}
		return c, len(net) + 1, err
	})
}

// between returns the fields in which two versions of an object differ.
func (s *Store) between(ctx context.Context, a, b storage.Version) ([]fieldpath.Path, error) {
	was, err := s.reading(ctx, a)
	if err != nil {
		return nil, err
	}
	is, err := s.reading(ctx, b)
	if err != nil {
		return nil, err
	}
	return compare(s.shapeOf(), was.content, is.content), nil
}

// attribute finds, for each field, the last change to it on the way back from current to the
// revision seen. It stops as soon as all have been found.
func (s *Store) attribute(ctx context.Context, c *changes, current storage.Version, seen kv.Revision) error {
	v, size := current, 0
	for range walkMax {
		if size += len(v.Value()); size > walkBytesMax {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		before := v.Prev()
		if !before.Exists() {
			c.cut = true
			return nil
		}
		if before.Revision() <= seen {
			c.by(v, func(fieldpath.Path) bool { return true }) // what nobody changed later was changed here
			return nil
		}
		changed, err := s.between(ctx, before, v)
		if err != nil {
			return err
		}
		if c.by(v, indexed(changed).touch) == 0 {
			return nil
		}
		v = before
	}
	return nil
}

// by notes that version v made those changes that are not known to be made later, and returns how many
// are left.
func (c *changes) by(v storage.Version, made func(fieldpath.Path) bool) (left int) {
	for i, p := range c.net {
		switch {
		case c.fields[i].Operation != "":
		case made(p):
			c.fields[i].Deed = deed(v)
		default:
			left++
		}
	}
	return left
}
