package certain

import (
	"encoding/json"
	"os"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/cel/common"
)

func copied(x any) any { return runtime.DeepCopyJSONValue(x) }

// A judged is what became of a comparison with the library.
type judged struct{ valid, found int } // that the library finds valid, and of those that were found to be

// compare judges value, which is a field of an object so that the library sees what it sees in earnest.
func (j *judged) compare(t *testing.T, s *Schema, v validation.SchemaValidator, value map[string]any) Verdict {
	t.Helper()
	errs := validation.ValidateCustomResource(nil, value, v)
	got := s.Judge(value)
	if got == Valid && len(errs) > 0 || got == Invalid && len(errs) == 0 {
		data, _ := json.Marshal(value)
		t.Fatalf("%s is judged %d, and the library says %v", data, got, errs)
	}
	if len(errs) == 0 {
		j.valid++
		if got == Valid {
			j.found++
		}
	}
	return got
}

func TestVerdictsAreThoseOfTheLibrary(t *testing.T) {
	var j judged
	for seed := range uint64(500) {
		m := newMaker(seed)
		props := apiextensions.JSONSchemaProps{Type: "object", Properties: map[string]apiextensions.JSONSchemaProps{"a": m.schema(3), "b": m.schema(2)}}
		v, open, err := validation.NewSchemaValidator(&props)
		if err != nil {
			t.Fatal(err)
		}
		s := NewSchema(open)
		for range 12 {
			value := m.valid(props, 3).(map[string]any)
			was := copied(value).(map[string]any)
			j.compare(t, s, v, value)
			for range 3 {
				value, _ = m.mutate(value).(map[string]any)
				if value == nil {
					break
				}
				if j.compare(t, s, v, value) == Valid {
					forgiven(t, props, v, value, was)
				}
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if j.found*100 < j.valid*95 {
		t.Errorf("of %d valid objects only %d are known to be", j.valid, j.found)
	}
}

// forgiven checks that an update to what is valid is not blamed for anything.
func forgiven(t *testing.T, props apiextensions.JSONSchemaProps, v validation.SchemaValidator, now, was map[string]any) {
	t.Helper()
	st, err := structuralschema.NewStructural(&props)
	if err != nil {
		return // the library's ratcheting is for structural schemas
	}
	both := common.NewCorrelatedObject(now, was, &model.Structural{Structural: st})
	if errs := validation.ValidateCustomResourceUpdate(nil, now, was, v, validation.WithRatcheting(both)); len(errs) > 0 {
		t.Fatalf("%v is valid, and an update to it is not: %v", now, errs)
	}
}

// widgets is the schema of the definition that the server's benchmarks and examples use.
func widgets(t testing.TB) apiextensions.JSONSchemaProps {
	t.Helper()
	data, err := os.ReadFile("../../../../testdata/widgets.json")
	if err != nil {
		t.Fatal(err)
	}
	var def apiextensionsv1.CustomResourceDefinition
	if err := json.Unmarshal(data, &def); err != nil {
		t.Fatal(err)
	}
	var props apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(def.Spec.Versions[0].Schema.OpenAPIV3Schema, &props, nil); err != nil {
		t.Fatal(err)
	}
	return props
}

func TestAnOrdinarySchemaLeavesNoDoubt(t *testing.T) {
	props := widgets(t)
	v, open, err := validation.NewSchemaValidator(&props)
	if err != nil {
		t.Fatal(err)
	}
	s, m, j := NewSchema(open), newMaker(3), judged{}
	for range 2000 {
		value := m.valid(props, 9).(map[string]any)
		j.compare(t, s, v, value)
		if value, ok := m.mutate(value).(map[string]any); ok {
			j.compare(t, s, v, value)
		}
	}
	if j.valid < 100 || j.found*1000 < j.valid*999 {
		t.Errorf("of %d valid objects %d are known to be", j.valid, j.found)
	}
}
