package registry

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestEntriesThatDifferInTimeAlone(t *testing.T) {
	entry := func(more ...any) map[string]any {
		m := map[string]any{"manager": "a", "operation": "Update", "fieldsV1": map[string]any{"f:x": map[string]any{}}}
		for i := 0; i < len(more); i += 2 {
			m[more[i].(string)] = more[i+1]
		}
		return m
	}
	for _, tt := range []struct {
		name string
		a, b map[string]any
		want bool
	}{
		{"the same", entry("time", "1"), entry("time", "1"), true},
		{"another time", entry("time", "1"), entry("time", "2"), true},
		{"a time, and none (as a scale leaves it)", entry("time", "1"), entry(), true},
		{"none, and a time", entry(), entry("time", "1"), true},
		{"another manager", entry("time", "1"), entry("time", "1", "manager", "b"), false},
		{"a subresource, and no time", entry("time", "1"), entry("subresource", "status"), false},
		{"a subresource more", entry("time", "1"), entry("time", "1", "subresource", "status"), false},
		{"other fields", entry("time", "1"), entry("time", "1", "fieldsV1", map[string]any{}), false},
	} {
		if got := equalButTime(tt.a, tt.b); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

// A seeing strategy notes the time in the object that it validates.
type seeing struct {
	*strategy
	time int64
}

func (s *seeing) ValidateUpdate(_ context.Context, obj, _ runtime.Object) field.ErrorList {
	s.time = obj.(*corev1.ConfigMap).ManagedFields[0].Time.Unix()
	return nil
}

// A write that changes the times of managedFields, and nothing else that is stored, changes nothing.
func TestTimesAloneAreNoChange(t *testing.T) { // rules S66 to S69
	entries := func(seconds int64, managers ...string) (all []metav1.ManagedFieldsEntry) {
		for _, m := range managers {
			all = append(all, metav1.ManagedFieldsEntry{
				Manager: m, Operation: "Apply", APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1("{}"),
				Time: &metav1.Time{Time: time.Unix(seconds, 0)},
			})
		}
		return all
	}
	for _, c := range []struct {
		name   string
		change func(*corev1.ConfigMap)
		writes bool
		time   int64 // of what is stored then
	}{
		{"other times", func(cm *corev1.ConfigMap) { cm.ManagedFields = entries(9, "a", "b") }, false, 1},
		{"another time of one of two", func(cm *corev1.ConfigMap) { cm.ManagedFields[1].Time = &metav1.Time{Time: time.Unix(9, 0)} }, false, 1},
		{"other times, and what the strategy puts back (S67)", func(cm *corev1.ConfigMap) {
			cm.ManagedFields, cm.BinaryData = entries(9, "a", "b"), map[string][]byte{"status": []byte("sent")}
		}, false, 1},
		{"other times, and other data", func(cm *corev1.ConfigMap) { cm.ManagedFields, cm.Data["is"] = entries(9, "a", "b"), "new" }, true, 9},
		{"other times, and one entry more (S68)", func(cm *corev1.ConfigMap) { cm.ManagedFields = entries(9, "a", "b", "c") }, true, 9},
		{"other times, and one entry less (S68)", func(cm *corev1.ConfigMap) { cm.ManagedFields = entries(9, "a") }, true, 9},
		{"other times, and another manager (S66)", func(cm *corev1.ConfigMap) { cm.ManagedFields = entries(9, "a", "c") }, true, 9},
		{"nothing at all", func(*corev1.ConfigMap) {}, false, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("KUBE_APISERVER_AVOID_NOOP_SSA_TIMESTAMP_UPDATES", "false") // means nothing here (S69)
			s := newStand(t, namespaced)
			s.made(thing("a", "is=old"))
			sent := s.changed("a", func(cm *corev1.ConfigMap) { cm.ManagedFields = entries(1, "a", "b") })
			validates := &seeing{strategy: s.strategy}
			s.Store.strategy = validates
			c.change(sent)
			was := s.revision()
			if _, err := s.Update(t.Context(), "ns", "a", Exactly(sent), UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			if writes := s.revision() != was; writes != c.writes {
				t.Errorf("something was stored: %v", writes)
			}
			if got := s.stored("a").ManagedFields[0].Time.Unix(); got != c.time {
				t.Errorf("the time is %d, want %d", got, c.time)
			}
			if validates.time != c.time {
				t.Errorf("validated is the time %d, want %d (S52, S67)", validates.time, c.time)
			}
			old := with(thing("a", "is=old"), func(cm *corev1.ConfigMap) { cm.ManagedFields = entries(1, "a", "b") })
			obj := with(old.DeepCopy(), c.change)
			obj.BinaryData = nil // which the strategy puts back
			untyped := bareOf(t, obj)
			if keepTimes(untyped, bareOf(t, old)); untyped.GetManagedFields()[0].Time.Unix() != c.time {
				t.Errorf("untyped the time is %v, want %d", untyped.GetManagedFields()[0].Time, c.time)
			}
		})
	}
}

func bareOf(t *testing.T, obj runtime.Object) *unstructured.Unstructured {
	t.Helper()
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: m}
}

// Typed objects are compared by what they mean, others by what they hold (rule S67).
func TestEqualObjects(t *testing.T) {
	bare := func(content map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: content}
	}
	for _, c := range []struct {
		name string
		a, b runtime.Object
		want bool
	}{
		{"typed, no map and an empty one", &corev1.ConfigMap{}, &corev1.ConfigMap{Data: map[string]string{}}, true},
		{"typed, no list and an empty one", &corev1.ConfigMap{}, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Finalizers: []string{}}}, true},
		{"typed, other data", thing("a", "is=old"), thing("a", "is=new"), false},
		{"untyped, no map and an empty one", bare(map[string]any{}), bare(map[string]any{"data": map[string]any{}}), false},
		{"untyped, nothing and no list", bare(map[string]any{}), bare(map[string]any{"data": nil}), false},
		{"untyped, an empty list and no list", bare(map[string]any{"data": []any{}}), bare(map[string]any{"data": nil}), false},
		{"untyped, the same", bare(map[string]any{"data": []any{int64(1)}}), bare(map[string]any{"data": []any{int64(1)}}), true},
	} {
		if got := equalObjects(c.a, c.b); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
		if got := equalObjects(c.b, c.a); got != c.want {
			t.Errorf("%s, the other way round: %v", c.name, got)
		}
	}
}
