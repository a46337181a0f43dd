package metadata

import (
	"errors"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apimachinery/pkg/api/operation"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// fields are values that fields of metadata may have: most of them good, some odd.
var fields = map[string][]any{
	"name":                       {"a", "a.b-c", "a", "A", "", strings.Repeat("a", 254), int64(1), "-a"},
	"generateName":               {"a-", "a", "", "A"},
	"namespace":                  {"ns", "ns", "", "ns.a", nil},
	"selfLink":                   {"x", ""},
	"uid":                        {"u", "u", "v", ""},
	"resourceVersion":            {"1", "2", "", int64(1)},
	"generation":                 {int64(1), int64(2), int64(0), int64(-1), 1.0, "1"},
	"creationTimestamp":          {"2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "2026-01-01T01:00:00+01:00", "2026-01-01T00:00:00.5Z", "2026-01-01T0:00:00.5Z", "2026-01-01T00:00:00z", "2026-01-01t00:00:00Z", "2026-01-01 00:00:00Z", "2026-13-01T00:00:00Z", "0001-01-01T00:00:00Z", nil, ""},
	"deletionTimestamp":          {"2026-01-01T00:00:00Z", nil},
	"deletionGracePeriodSeconds": {int64(0), int64(30), nil, 1.5},
	"labels":                     {map[string]any{"a": "b", "x.io/c": "d", "e": ""}, map[string]any{}, map[string]any{"a": int64(1)}, map[string]any{"-": "a"}, map[string]any{"a": "-"}, map[string]any{"A/b": "c"}, map[string]any{"a..b/c": "d"}, map[string]any{"x-.io/c": "d"}, map[string]any{"a-b.io/c_d": "e-f"}, map[string]any{strings.Repeat("a", 64): "b"}, map[string]any{"a": strings.Repeat("b", 64)}, map[string]any{"a/b/c": "d"}, map[string]any{"/b": "d"}, map[string]any{"a": nil}, nil, []any{}},
	"annotations":                {map[string]any{"a": "any text!\n"}, map[string]any{"A.io/B": "c"}, map[string]any{"a b": "c"}, map[string]any{"a": strings.Repeat("x", 1<<18)}, map[string]any{"a": strings.Repeat("x", 1<<18-1)}},
	"finalizers":                 {[]any{"a.io/b"}, []any{"a", "b"}, []any{"a b"}, []any{""}, []any{}, []any{"orphan"}, []any{"orphan", "foregroundDeletion"}, []any{int64(1)}},
	"ownerReferences":            {[]any{owner("v1", "Pod")}, []any{owner("a/v1", "X", "controller", true, "blockOwnerDeletion", false)}, []any{owner("v1", "Event")}, []any{owner("a/b/c", "X")}, []any{owner("", "X")}, []any{owner("v1", "")}, []any{owner("a/", "X")}, []any{owner("v1", "X", "controller", true), owner("v1", "Y", "controller", true)}, []any{owner("v1", "X", "odd", true)}, []any{map[string]any{"kind": "X"}}, []any{owner("v1", "X", "controller", nil)}},
	"managedFields":              {[]any{entry()}, []any{entry("subresource", "status"), entry("operation", "Apply")}, []any{entry("operation", "Other")}, []any{entry("operation", "")}, []any{entry("fieldsType", "V2")}, []any{entry("manager", "é")}, []any{entry("manager", "\x01")}, []any{entry("manager", strings.Repeat("m", 129))}, []any{entry("subresource", strings.Repeat("m", 300))}, []any{entry("time", "2026-01-01T00:00:00.1Z")}, []any{entry("fieldsV1", map[string]any{"f:x": int64(1)})}, []any{entry("fieldsV1", map[string]any{"f:x": 1.0})}, []any{entry("fieldsV1", nil)}, []any{entry("fieldsV1", "x")}, []any{entry("odd", "x")}, []any{map[string]any{}}, []any{}},
	"odd":                        {"x", nil},
}

func owner(apiVersion, kind string, more ...any) map[string]any {
	return with(map[string]any{"apiVersion": apiVersion, "kind": kind, "name": "n", "uid": "u"}, more)
}

func entry(more ...any) map[string]any {
	return with(map[string]any{
		"manager": "kubectl", "operation": "Update", "apiVersion": "v1", "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1",
		"fieldsV1": map[string]any{"f:spec": map[string]any{".": map[string]any{}, "k:{\"a\":1.0}": map[string]any{}}},
	}, more)
}

func with(m map[string]any, more []any) map[string]any {
	for i := 0; i < len(more); i += 2 {
		m[more[i].(string)] = more[i+1]
	}
	return m
}

// metadata is random metadata, the better the higher good is.
func random(r *rand.Rand, good int) map[string]any {
	m := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(fields)) { // in one order, so that a seed tells everything
		values := fields[name]
		likely := name == "name" || name == "namespace" || name == "resourceVersion" || name == "uid"
		switch {
		case !likely && r.IntN(3) > 0, r.IntN(20) == 0, name == "odd" && r.IntN(good) > 0, strings.HasPrefix(name, "deletion") && r.IntN(good) > 0:
		case r.IntN(good) > 0:
			m[name] = runtime.DeepCopyJSONValue(values[0])
		default:
			m[name] = runtime.DeepCopyJSONValue(values[r.IntN(len(values))])
		}
	}
	return m
}

func unknown(map[string]any) bool { return false }

func TestTidyMetadataIsWhatTheLibraryMakesOfIt(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	plain, tidied := 0, 0
	for range 8000 {
		m := random(r, 12)
		obj := map[string]any{"metadata": runtime.DeepCopyJSONValue(m)}
		was := Plain(m, unknown)
		switch tidy := Tidy(m, unknown); {
		case was && !tidy || !was && !tidy && !reflect.DeepEqual(any(m), obj["metadata"]) || tidy && !Plain(m, unknown):
			t.Fatalf("%v: plain %v, tidy %v, now %v", obj, was, tidy, m)
		case !tidy:
			continue
		case !was:
			tidied++
		}
		plain++
		meta, found, unknown, err := objectmeta.GetObjectMetaWithOptions(obj, objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true})
		if err != nil || !found || len(unknown) > 0 {
			t.Fatalf("%v: %v, %v", m, unknown, err)
		}
		if err := objectmeta.SetObjectMeta(obj, meta); err != nil || !reflect.DeepEqual(obj["metadata"], any(m)) {
			t.Fatalf("not plain, %v: %#v becomes %#v", err, m, obj["metadata"])
		}
	}
	if plain < 800 || tidied < 100 {
		t.Errorf("only %d were plain or became so, %d became", plain, tidied)
	}
}

func typed(t *testing.T, m map[string]any) *metav1.ObjectMeta {
	t.Helper()
	out := &metav1.ObjectMeta{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(m, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestMetadataIsLawfulOnlyIfTheLibrarySaysSo(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	path := field.NewPath("metadata")
	counts := map[string]int{}
	for range 8000 {
		m, old, namespaced := random(r, 12), random(r, 25), r.IntN(4) > 0
		if !namespaced && r.IntN(2) == 0 {
			delete(m, "namespace")
		}
		if Born(m, namespaced, apivalidation.NameIsDNSSubdomain) {
			counts["born"]++
			errs := apivalidation.ValidateObjectMeta(typed(t, m), namespaced, apivalidation.NameIsDNSSubdomain, path)
			errs = append(errs, apivalidation.ValidateObjectMetaDeclaratively(t.Context(), operation.Create, typed(t, m), nil, namespaced, apivalidation.NameIsDNSSubdomain, path, true)...)
			if len(errs) > 0 {
				t.Fatalf("%v: %v", m, errs)
			}
		}
		if r.IntN(2) == 0 {
			m["creationTimestamp"] = old["creationTimestamp"]
			if m["creationTimestamp"] == nil {
				delete(m, "creationTimestamp")
			}
		}
		now, was := &metav1.ObjectMeta{}, &metav1.ObjectMeta{}
		readable := errors.Join(runtime.DefaultUnstructuredConverter.FromUnstructured(m, now), runtime.DefaultUnstructuredConverter.FromUnstructured(old, was)) == nil
		if readable && Follows(now, was, namespaced, apivalidation.NameIsDNSSubdomain) {
			counts["follows"]++
			errs := apivalidation.ValidateObjectMetaAccessor(now, namespaced, apivalidation.NameIsDNSSubdomain, path)
			errs = append(errs, apivalidation.ValidateObjectMetaUpdate(now, was, path)...)
			if len(errs) > 0 {
				t.Fatalf("%v after %v: %v", m, old, errs)
			}
		}
		if Succeeds(m, old) {
			counts["succeeds"]++
			errs := apivalidation.ValidateObjectMetaUpdate(typed(t, m), typed(t, old), path)
			errs = append(errs, apivalidation.ValidateObjectMetaDeclaratively(t.Context(), operation.Update, typed(t, m), typed(t, old), namespaced, nil, path, true)...)
			if len(errs) > 0 {
				t.Fatalf("%v after %v: %v", m, old, errs)
			}
		}
	}
	if counts["born"] < 400 || counts["succeeds"] < 400 || counts["follows"] < 400 {
		t.Errorf("too few were lawful to say anything: %v", counts)
	}
}
