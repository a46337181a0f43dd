package ownership

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pawl-dev/pawl/internal/objectjson"
	"github.com/pawl-dev/pawl/registry"
)

// keep does what an update does whose managedFields come out as they were but for one time:
// one that changes the values of fields which its manager owns, and nobody else. That is what most
// updates are, and it takes the field manager twenty times as long to find out. It reports
// whether it was one, and has changed nothing if it was not.
//
// It is such an update if every difference between live and obj is a scalar in both, the
// entry of the manager holds the field as a leaf, and no other entry holds it or anything
// above it.
func (m *Manager) keep(live, obj *unstructured.Unstructured, manager string) bool {
	entries, ok := m.entries(live, obj)
	if !ok || !plain(entries) {
		return false
	}
	w := walk{manager: m, foreign: slices.ContainsFunc(entries, func(e map[string]any) bool {
		return e["apiVersion"] != m.o.Kind.GroupVersion().String()
	})}
	if m.o.Shape != nil {
		w.shape = m.o.Shape()
	}
	if !w.objects(live.Object, obj.Object) {
		return false
	}
	own := slices.IndexFunc(entries, func(e map[string]any) bool { return m.isOwn(e, manager) })
	if own < 0 && len(w.changed) > 0 {
		return false
	}
	for _, path := range w.changed {
		for i, e := range entries {
			if held := holds(e["fieldsV1"], path); held != none && (i != own || held != leaf) || held == none && i == own {
				return false
			}
		}
	}
	if len(w.changed) == 0 {
		own = -1
	}
	return setEntries(obj, entries, own)
}

// entries returns the managedFields that are to be kept: those of live, if obj has the same or
// none, or comes through a subresource, which may not set them.
func (m *Manager) entries(live, obj *unstructured.Unstructured) ([]map[string]any, bool) {
	entries, ok := storedEntries(live)
	if !ok {
		return nil, false
	}
	sent, found, err := unstructured.NestedFieldNoCopy(obj.Object, "metadata", "managedFields")
	if err != nil {
		return nil, false
	}
	if found && m.o.Subresource == "" {
		stored, _, _ := unstructured.NestedFieldNoCopy(live.Object, "metadata", "managedFields") // storedEntries found it
		return entries, objectjson.Equal(sent, stored)
	}
	return entries, true
}

// plain reports whether no manager has two entries, as a scale may leave them behind: only the field
// manager can sort that out.
func plain(entries []map[string]any) bool {
	for i, e := range entries {
		for _, other := range entries[:i] {
			if sameWriter(e, other) {
				return false
			}
		}
	}
	return true
}

// sameWriter reports whether two entries are of one manager, who must have one only.
func sameWriter(a, b map[string]any) bool {
	for _, name := range []string{"manager", "operation", "apiVersion", "subresource"} {
		if a[name] != b[name] {
			return false
		}
	}
	return true
}

// isOwn reports whether an entry is that of manager's updates through this endpoint.
func (m *Manager) isOwn(e map[string]any, manager string) bool {
	sub, _ := e["subresource"].(string)
	return e["manager"] == manager && e["operation"] == "Update" && e["apiVersion"] == m.o.Kind.GroupVersion().String() && sub == m.o.Subresource
}

// compareEntries orders entries as managedFields have them (rule H148).
func compareEntries(a, b map[string]any) int {
	text := func(e map[string]any, k string) string { s, _ := e[k].(string); return s }
	by := func(k string) int { return cmp.Compare(text(a, k), text(b, k)) }
	return cmp.Or(by("operation"), by("time"), by("manager"), by("apiVersion"), by("subresource"))
}

// A holding is how an entry holds a field.
type holding uint8

const (
	none  holding = iota
	leaf          // as a field of its own, without fields below it
	other         // with fields below it, or as part of a field above it
)

// holds says how a set of fields, in the form of FieldsV1, holds a path.
func holds(fields any, path []string) holding {
	node, ok := fields.(map[string]any)
	if !ok {
		return other
	}
	for i, step := range path {
		if i > 0 && len(node) == 0 {
			return other
		}
		below, ok := node[step].(map[string]any)
		if !ok {
			return none
		}
		node = below
	}
	if len(node) == 0 {
		return leaf
	}
	return other
}

// A walk compares two objects and notes where scalars differ. It gives up at the first
// difference of any other kind.
type walk struct {
	manager *Manager
	shape   registry.Shape
	foreign bool     // there are entries of other versions, for which no field is reset
	at      []string // steps in the form of FieldsV1
	changed [][]string
}

// unowned are the members of metadata that nobody ever owns (rule H149).
var unowned = map[string]bool{
	"name": true, "namespace": true, "creationTimestamp": true, "selfLink": true, "uid": true, "clusterName": true,
	"generation": true, "managedFields": true, "resourceVersion": true,
}

func (w *walk) objects(a, b map[string]any) bool {
	for _, name := range members(a, b) {
		switch {
		case name == "apiVersion" || name == "kind":
			continue
		case name == "metadata":
			am, aok := a[name].(map[string]any)
			bm, bok := b[name].(map[string]any)
			if !aok || !bok || !w.metadata(am, bm) {
				return false
			}
			continue
		case w.manager.isReset(name):
			if w.foreign && !objectjson.Equal(a[name], b[name]) {
				return false
			}
			continue
		}
		if !w.member(name, memberOf(w.shape, name), a, b) {
			return false
		}
	}
	return true
}

// metadata compares what can be owned of metadata.
func (w *walk) metadata(a, b map[string]any) bool {
	if w.manager.isReset("metadata") {
		return !w.foreign || sameMetadata(a, b)
	}
	w.at = append(w.at, "f:metadata")
	defer func() { w.at = w.at[:len(w.at)-1] }()
	for _, name := range members(a, b) {
		if !unowned[name] && !w.member(name, nil, a, b) {
			return false
		}
	}
	return true
}

// sameMetadata reports whether what can be owned of metadata is the same.
func sameMetadata(a, b map[string]any) bool {
	for _, name := range members(a, b) {
		if !unowned[name] && !objectjson.Equal(a[name], b[name]) {
			return false
		}
	}
	return true
}

// members returns the names in a and b, each once, in any order.
func members(a, b map[string]any) []string {
	names := make([]string, 0, len(a))
	for name := range a {
		names = append(names, name)
	}
	for name := range b {
		if _, ok := a[name]; !ok {
			names = append(names, name)
		}
	}
	return names
}

func memberOf(shape registry.Shape, name string) registry.Shape {
	if shape == nil {
		return nil
	}
	return shape.Member(name)
}

func (w *walk) member(name string, shape registry.Shape, a, b map[string]any) bool {
	av, aok := a[name]
	bv, bok := b[name]
	if !aok || !bok {
		return false
	}
	w.at = append(w.at, "f:"+name)
	ok := w.values(shape, av, bv)
	w.at = w.at[:len(w.at)-1]
	return ok
}

func (w *walk) values(shape registry.Shape, a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		if shape != nil && shape.Atomic() {
			return objectjson.Equal(a, b)
		}
		for name := range a {
			if !w.member(name, memberOf(shape, name), a, b) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		return ok && len(a) == len(b) && w.items(shape, a, b)
	}
	if a == b {
		return true
	}
	if a == nil || b == nil || !isScalar(b) {
		return false
	}
	w.changed = append(w.changed, slices.Clone(w.at))
	return true
}

func isScalar(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}

// items compares lists. Items that are named by their keys must stand in the same places.
func (w *walk) items(shape registry.Shape, a, b []any) bool {
	if shape == nil || len(shape.Keys()) == 0 || shape.Atomic() {
		return objectjson.Equal(a, b)
	}
	for i := range a {
		am, aok := a[i].(map[string]any)
		bm, bok := b[i].(map[string]any)
		if !aok || !bok {
			return false
		}
		if objectjson.EqualObjects(am, bm) {
			continue
		}
		step, ok := itemStep(shape.Keys(), am, bm)
		if !ok {
			return false
		}
		w.at = append(w.at, step)
		ok = w.values(shape.Item(), am, bm)
		w.at = w.at[:len(w.at)-1]
		if !ok {
			return false
		}
	}
	return true
}
