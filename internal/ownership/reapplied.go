package ownership

import (
	"maps"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/pawl-dev/pawl/internal/objectjson"
	"github.com/pawl-dev/pawl/registry"
)

// lastApplier is the manager whose applies also keep an annotation up to date (rule H155).
const lastApplier = "kubectl"

// reapply does what an apply does that wants the same fields as the one before by the same
// manager, with other values: what controllers do all day. It reports whether it was one.
//
// It is such an apply if the fields of config are just those of the manager's entry, live has
// all of them, what differs is a scalar of one type in both, and nobody else holds a
// field that differs. Then nothing is added, removed or contended: the values change,
// and the time of the entry if any do.
func (m *Manager) reapply(live, config *unstructured.Unstructured, manager string) (*unstructured.Unstructured, bool) {
	if manager == lastApplier || config.GroupVersionKind() != m.o.Kind || live.GroupVersionKind() != m.o.Kind {
		return nil, false
	}
	list, ok := storedEntries(live)
	if !ok || !plain(list) {
		return nil, false
	}
	own := slices.IndexFunc(list, func(e map[string]any) bool { return m.isApply(e, manager) })
	if own < 0 {
		return nil, false
	}
	r := reapplication{manager: m}
	if m.o.Shape != nil {
		r.shape = m.o.Shape()
	}
	out := &unstructured.Unstructured{Object: copyButEntries(live.Object)}
	fields, ok := r.object(config.Object, out.Object)
	if !ok || !objectjson.Equal(fields, list[own]["fieldsV1"]) {
		return nil, false
	}
	for _, path := range r.changed {
		for i, e := range list {
			if i != own && holds(e["fieldsV1"], path) != none {
				return nil, false
			}
		}
	}
	if len(r.changed) > 0 {
		setEntries(out, list, own)
	}
	return out, true
}

// copyButEntries copies an object, but for its managedFields, of which nobody changes an entry in place.
func copyButEntries(obj map[string]any) map[string]any {
	out := make(map[string]any, len(obj))
	for name, value := range obj {
		metadata, ok := value.(map[string]any)
		if name != "metadata" || !ok {
			out[name] = runtime.DeepCopyJSONValue(value)
			continue
		}
		copied := make(map[string]any, len(metadata))
		for name, value := range metadata {
			if name != "managedFields" {
				value = runtime.DeepCopyJSONValue(value)
			}
			copied[name] = value
		}
		out[name] = copied
	}
	return out
}

// storedEntries are the managedFields of an object.
func storedEntries(obj *unstructured.Unstructured) ([]map[string]any, bool) {
	stored, _, err := unstructured.NestedFieldNoCopy(obj.Object, "metadata", "managedFields")
	list, ok := stored.([]any)
	if err != nil || !ok || len(list) == 0 {
		return nil, false
	}
	entries := make([]map[string]any, len(list))
	for i, e := range list {
		if entries[i], ok = e.(map[string]any); !ok {
			return nil, false
		}
	}
	return entries, true
}

// setEntries gives obj those entries, of which that at own is of now, in their order.
func setEntries(obj *unstructured.Unstructured, entries []map[string]any, own int) bool {
	if own >= 0 {
		entries[own] = maps.Clone(entries[own])
		entries[own]["time"] = time.Now().UTC().Format(time.RFC3339)
	}
	slices.SortStableFunc(entries, compareEntries)
	list := make([]any, len(entries))
	for i, e := range entries {
		list[i] = e
	}
	metadata, ok := obj.Object["metadata"].(map[string]any)
	if ok {
		metadata["managedFields"] = list // shared with others: nobody changes an entry in place
	}
	return ok
}

// isApply reports whether an entry is that of manager's applies through this endpoint.
func (m *Manager) isApply(e map[string]any, manager string) bool {
	sub, _ := e["subresource"].(string)
	return e["manager"] == manager && e["operation"] == "Apply" && e["apiVersion"] == m.o.Kind.GroupVersion().String() && sub == m.o.Subresource
}

// A reapplication puts the values of a configuration into an object, and notes where they
// differ. It gives up when it would have to do more.
type reapplication struct {
	manager *Manager
	shape   registry.Shape
	at      []string
	changed [][]string
}

// object takes in a whole configuration, and returns its fields in the form of FieldsV1.
func (r *reapplication) object(config, out map[string]any) (map[string]any, bool) {
	fields := map[string]any{}
	for name, want := range config {
		switch {
		case name == "apiVersion" || name == "kind":
			continue
		case r.manager.isReset(name):
			return nil, false
		case name == "metadata":
			below, ok := r.metadata(want, out[name])
			if !ok {
				return nil, false
			}
			if len(below) > 0 {
				fields["f:metadata"] = below
			}
			continue
		}
		below, ok := r.member(name, memberOf(r.shape, name), want, out)
		if !ok {
			return nil, false
		}
		fields["f:"+name] = below
	}
	return fields, true
}

// metadata takes in the labels and annotations of a configuration. Anything else there but the
// name and the namespace is not for it.
func (r *reapplication) metadata(want, have any) (map[string]any, bool) {
	config, ok := want.(map[string]any)
	out, ook := have.(map[string]any)
	if !ok || !ook {
		return nil, false
	}
	fields := map[string]any{}
	r.at = append(r.at, "f:metadata")
	defer func() { r.at = r.at[:len(r.at)-1] }()
	for name, value := range config {
		switch name {
		case "name", "namespace":
			if value != out[name] {
				return nil, false
			}
		case "labels", "annotations":
			below, ok := r.member(name, nil, value, out)
			if !ok {
				return nil, false
			}
			fields["f:"+name] = below
		default:
			return nil, false
		}
	}
	return fields, true
}

// member takes in one member of an object, and returns the fields below it.
func (r *reapplication) member(name string, shape registry.Shape, want any, out map[string]any) (map[string]any, bool) {
	have, ok := out[name]
	if !ok {
		return nil, false
	}
	r.at = append(r.at, "f:"+name)
	defer func() { r.at = r.at[:len(r.at)-1] }()
	switch want := want.(type) {
	case nil:
		return nil, false
	case map[string]any:
		return r.members(shape, want, have)
	case []any:
		return r.items(shape, want, have)
	}
	if want != have {
		if reflect.TypeOf(want) != reflect.TypeOf(have) {
			return nil, false
		}
		out[name] = want
		r.changed = append(r.changed, slices.Clone(r.at))
	}
	return map[string]any{}, true
}

func (r *reapplication) members(shape registry.Shape, want map[string]any, have any) (map[string]any, bool) {
	out, ok := have.(map[string]any)
	if !ok || len(want) == 0 {
		return nil, false
	}
	if shape != nil && shape.Atomic() {
		return map[string]any{}, objectjson.EqualObjects(want, out)
	}
	fields := make(map[string]any, len(want))
	for name, value := range want {
		below, ok := r.member(name, memberOf(shape, name), value, out)
		if !ok {
			return nil, false
		}
		fields["f:"+name] = below
	}
	return fields, true
}

// items takes in a list whose items are named by their keys, if they come in the order in which
// the object has them: another order is merged in, and changes the list. Sets, whose items are
// fields, and atomic lists are not for it.
func (r *reapplication) items(shape registry.Shape, want []any, have any) (map[string]any, bool) {
	out, ok := have.([]any)
	if !ok || shape == nil || len(want) == 0 {
		return nil, false
	}
	keys := shape.Keys()
	if len(keys) == 0 {
		return nil, false // an atomic list or a set: the shape does not tell which
	}
	fields := make(map[string]any, len(want))
	last := -1
	for _, w := range want {
		item, ok := w.(map[string]any)
		if !ok {
			return nil, false
		}
		i := slices.IndexFunc(out, func(o any) bool { return sameKeys(keys, item, o) })
		if i <= last { // none, one before, or one twice
			return nil, false
		}
		last = i
		step, ok := itemStep(keys, item, out[i].(map[string]any))
		if !ok {
			return nil, false
		}
		r.at = append(r.at, step)
		below, ok := r.members(shape.Item(), item, out[i])
		r.at = r.at[:len(r.at)-1]
		if !ok {
			return nil, false
		}
		below["."] = map[string]any{}
		fields[step] = below
	}
	return fields, true
}

func sameKeys(keys []string, a map[string]any, b any) bool {
	other, ok := b.(map[string]any)
	if !ok {
		return false
	}
	for _, k := range keys {
		if v, ok := a[k]; !ok || v == nil || !isScalar(v) || v != other[k] {
			return false
		}
	}
	return true
}

// itemStep names the item that two objects are versions of, false if they are not of one.
func itemStep(keys []string, a, b map[string]any) (string, bool) {
	if !sameKeys(keys, a, b) {
		return "", false
	}
	var named value.FieldList
	for _, k := range keys {
		named = append(named, value.Field{Name: k, Value: value.NewValueInterface(a[k])})
	}
	named.Sort()
	step, err := fieldpath.SerializePathElement(fieldpath.PathElement{Key: &named})
	return step, err == nil
}
