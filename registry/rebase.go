package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pawl-dev/pawl/internal/objectjson"
	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/storage"
)

// A Rebased is what an update did that was based on an older version, and asked to go on.
type Rebased struct {
	Seen, Onto kv.Revision // the version the writer had read, and the one its change was applied to
	Fields     []string    // what the writer changed
	Others     []string    // what had changed since the writer read
}

// String reads like `rebased from resourceVersion 41 to 43: this write changes .spec.replicas; others had
// changed .metadata.labels.tier`.
func (r Rebased) String() string {
	return fmt.Sprintf("rebased from resourceVersion %s to %s: this write changes %s; others had changed %s", r.Seen, r.Onto, listed(r.Fields), listed(r.Others))
}

// listed names the first of some fields.
func listed(fields []string) string {
	const shownMax = 5
	text := strings.Join(fields[:min(len(fields), shownMax)], ", ")
	switch more := len(fields) - shownMax; {
	case len(fields) == 0:
		return "no field"
	case more > 0:
		return fmt.Sprintf("%s and %d more", text, more)
	}
	return text
}

// rebase returns the object that exists with the change that the writer made of the version it had
// read, or the conflict if there is no such object: if fields were changed on both sides, or the
// version is gone. Sent is what the writer wants now that current exists.
func (u *update) rebase(ctx context.Context, current storage.Version, named kv.Revision, sent runtime.Object) (runtime.Object, error) {
	s := u.store
	asEver := func() error { return s.conflict(current, named, sent, u.patch()) }
	seen, how := ancestor(current, named, s.oldest())
	if how != earlier {
		return nil, asEver()
	}
	base, err := s.reading(ctx, seen)
	if err != nil {
		return nil, asEver()
	}
	stored, err := s.reading(ctx, current)
	if err != nil {
		return nil, err
	}
	wanted, err := u.desire(ctx, base.object.DeepCopyObject())
	if err != nil {
		return nil, err
	}
	content, err := s.successorOf(ctx, u.namespace, wanted, base.object)
	if err != nil {
		return nil, err
	}
	shape := s.shapeOf()
	changes := compare(shape, base.content, content)
	merged, overlap := merge(shape, base.content, stored.content, content)
	if len(overlap) > 0 {
		return nil, s.overlapping(current, named, changes)
	}
	u.rebased = &Rebased{Seen: named, Onto: current.Revision(), Fields: texts(changes), Others: texts(compare(shape, base.content, stored.content))}
	if again, err := fieldsOf(sent); u.o.Patch && u.o.Owned && err == nil && equal(again, merged) {
		return sent, nil // made of what exists, managedFields included
	}
	return rebuilt(merged, stored.object, wanted)
}

// successorOf brings obj into the form in which it could follow old, and returns its fields.
func (s *Store) successorOf(ctx context.Context, namespace string, obj, old runtime.Object) (map[string]any, error) {
	acc, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	if err := s.settleNamespace(acc, namespace); err != nil {
		return nil, err
	}
	s.prepareSuccessor(ctx, obj, old)
	return fieldsOf(obj)
}

// rebuilt is the object that has the fields given, what no writer owns as stored has it, and says of
// itself what wanted does: which object it is, and of what kind. Validation judges that.
func rebuilt(fields map[string]any, stored, wanted runtime.Object) (runtime.Object, error) {
	was, err := objectjson.Of(stored)
	if err != nil {
		return nil, err
	}
	m := maps.Clone(fields)
	md, _ := fields["metadata"].(map[string]any)
	md = maps.Clone(md)
	m["metadata"] = md
	before, _ := was["metadata"].(map[string]any)
	for _, name := range unownedMetadata {
		if v, ok := before[name]; ok {
			md[name] = v
		}
	}
	obj, err := objectFrom(m, stored)
	if err != nil {
		return nil, err
	}
	acc, wantedMeta, err := accessors(obj, wanted)
	if err != nil {
		return nil, err
	}
	if uid := wantedMeta.GetUID(); uid != "" {
		acc.SetUID(uid)
	}
	if kind := wanted.GetObjectKind().GroupVersionKind(); !kind.Empty() {
		obj.GetObjectKind().SetGroupVersionKind(kind)
	}
	return obj, nil
}

// An emptier is an object of which an empty one of its kind can be made in no other way.
type emptier interface{ empty() runtime.Object }

// objectFrom makes of decoded JSON an object of the same Go type as another.
func objectFrom(m map[string]any, like runtime.Object) (runtime.Object, error) {
	if _, ok := like.(*unstructured.Unstructured); ok {
		return &unstructured.Unstructured{Object: runtime.DeepCopyJSON(m)}, nil
	}
	data, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	var obj runtime.Object
	if e, ok := like.(emptier); ok {
		obj = e.empty()
	} else if obj, ok = reflect.New(reflect.TypeOf(like).Elem()).Interface().(runtime.Object); !ok {
		return nil, fmt.Errorf("registry: a %T is no pointer", like)
	}
	return obj, json.Unmarshal(data, obj)
}
