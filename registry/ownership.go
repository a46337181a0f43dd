package registry

import (
	"context"
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pawl-dev/pawl/internal/objectjson"
	"github.com/pawl-dev/pawl/storage"
)

// Ownership keeps metadata.managedFields of a resource, through one endpoint of it (section 13 of the
// rules). Live is the stored object and is not changed; nil means that there is none.
type Ownership interface {
	// Update notes that manager made obj of live, and returns obj with managedFields that say so.
	Update(live, obj runtime.Object, manager string) (runtime.Object, error)
	// Apply merges what manager wants into live, and returns the result with its managedFields.
	// It is an API status if others own what manager wants to be different, and force is not set.
	Apply(live, config runtime.Object, manager string, force bool) (runtime.Object, error)
}

// own notes that the author of ctx made obj of live. Who writes under no manager's name, as
// the loops of a server do, leaves no trace.
func (s *Store) own(ctx context.Context, live, obj runtime.Object) (runtime.Object, error) {
	manager := storage.AuthorFrom(ctx).Manager
	if s.owners == nil || manager == "" {
		return obj, nil
	}
	return s.owners.Update(live, obj, manager)
}

// keepTimes puts the times of managedFields back if nothing else differs, so that such a
// write changes nothing (rules S66 to S68).
func keepTimes(obj, old runtime.Object) {
	acc, oldMeta, err := accessors(obj, old)
	if err != nil {
		return // both were decoded by a codec that checks it
	}
	if m, was := untyped(acc), untyped(oldMeta); m != nil && was != nil {
		keepUntypedTimes(m, was, obj, old)
		return
	}
	entries, before := acc.GetManagedFields(), oldMeta.GetManagedFields()
	if !differInTimeAlone(entries, before) {
		return
	}
	acc.SetManagedFields(before)
	if !equalObjects(obj, old) {
		acc.SetManagedFields(entries)
	}
}

// keepUntypedTimes is keepTimes for objects without a Go type, whose entries are compared as
// they are: making Go values of them would cost more than all the rest of such an update.
func keepUntypedTimes(m, was map[string]any, obj, old runtime.Object) {
	const member = "managedFields"
	entries, eok := m[member].([]any)
	before, bok := was[member].([]any)
	if !eok || !bok || len(entries) == 0 || len(entries) != len(before) {
		return
	}
	differ := false
	for i := range entries {
		a, aok := entries[i].(map[string]any)
		b, bok := before[i].(map[string]any)
		if !aok || !bok || !equalButTime(a, b) {
			return
		}
		differ = differ || a["time"] != b["time"]
	}
	if !differ {
		return
	}
	m[member] = before
	if !equalObjects(obj, old) {
		m[member] = entries
		return
	}
	m[member] = runtime.DeepCopyJSONValue(before)
}

// equalButTime compares two entries. Either may have no time, as the reference's scale leaves them.
func equalButTime(a, b map[string]any) bool {
	const member = "time"
	rest := func(m map[string]any) int {
		if _, ok := m[member]; ok {
			return len(m) - 1
		}
		return len(m)
	}
	if rest(a) != rest(b) {
		return false
	}
	for k, v := range a {
		if w, ok := b[k]; k != member && (!ok || !objectjson.Equal(v, w)) {
			return false
		}
	}
	return true
}

// differInTimeAlone reports whether two lists have the same entries, not all at the same times.
func differInTimeAlone(a, b []metav1.ManagedFieldsEntry) bool {
	if len(a) == 0 || len(a) != len(b) {
		return false
	}
	differ := false
	for i := range a {
		x, y := a[i], b[i]
		differ = differ || !x.Time.Equal(y.Time)
		x.Time, y.Time = nil, nil
		if !reflect.DeepEqual(x, y) {
			return false
		}
	}
	return differ
}

// equalObjects compares typed objects by what they mean, and others by what they hold (rule S67); those
// in a box by what is stored of them.
func equalObjects(a, b runtime.Object) bool {
	au, aok := a.(*unstructured.Unstructured)
	bu, bok := b.(*unstructured.Unstructured)
	if aok && bok {
		return objectjson.EqualObjects(au.Object, bu.Object)
	}
	if held, ok := a.(interface{ equal(runtime.Object) bool }); ok {
		return held.equal(b)
	}
	return equality.Semantic.DeepEqual(a, b)
}
