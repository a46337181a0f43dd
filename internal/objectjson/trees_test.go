package objectjson

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
)

const owned = `{"f:spec":{".":{},"f:list":{"k:{\"name\":\"a\"}":{".":{},"f:x":{}}},"f:replicas":{}}}`

func managed(fields ...string) string {
	var entries []string
	for _, f := range fields {
		entries = append(entries, `{"fieldsType":"FieldsV1","fieldsV1":`+f+`,"manager":"m"}`)
	}
	return `{"metadata":{"managedFields":[` + strings.Join(entries, ",") + `],"name":"a"},"spec":{"replicas":1}}`
}

func fieldsOf(t *testing.T, object map[string]any, entry int) map[string]any {
	t.Helper()
	list := object["metadata"].(map[string]any)["managedFields"].([]any)
	return list[entry].(map[string]any)["fieldsV1"].(map[string]any)
}

func TestObjectsShareWhatTheyHaveInCommon(t *testing.T) {
	trees := &Trees{}
	first, _, err := trees.Decode([]byte(managed(owned, `{"f:status":{}}`)))
	if err != nil {
		t.Fatal(err)
	}
	second, err := trees.DecodeLast([]byte(managed(`{"f:status":{}}`, owned)))
	if err != nil {
		t.Fatal(err)
	}
	if !Same(fieldsOf(t, first, 0), fieldsOf(t, second, 1)) {
		t.Error("two objects with the same fields do not share them")
	}
	if !trees.Knows(fieldsOf(t, first, 0)) || trees.Knows(first["spec"].(map[string]any)) {
		t.Error("a shared tree is not known, or one that is not is")
	}
	for _, object := range []map[string]any{first, second} {
		got, err := trees.Append(nil, object)
		want, _ := json.Marshal(object)
		if err != nil || string(got) != string(want) {
			t.Errorf("written as %s, %v; want %s", got, err, want)
		}
	}
}

func TestDecodingWithTreesIsDecoding(t *testing.T) {
	long := `{"f:a":{` + strings.Repeat(`"f:b":{},`, 1) + `"f:` + strings.Repeat("c", treeMost) + `":{}}}`
	for name, doc := range map[string]string{
		"usual":                       managed(owned),
		"spaces":                      managed(`{ "f:spec" : { "f:a": {} } }`),
		"a member that comes twice":   managed(`{"f:spec":{},"f:spec":{"f:a":{}}}`),
		"members out of order":        managed(`{"f:status":{"f:b":{},"f:a":{}},"f:spec":{}}`),
		"something else than objects": managed(`{"f:spec":{"f:a":1,"f:b":null}}`),
		"braces in a text":            managed(`{"k:{\"a\":\"}\\\\\"}":{"f:a":{}}}`),
		"an escape that is not as it would be written": managed(`{"f:\u0061bcdefghijkl":{}}`),
		"very long":           managed(long),
		"null":                managed(`null`),
		"a text":              managed(`"x"`),
		"no entries":          `{"metadata":{"managedFields":[]}}`,
		"fields elsewhere":    `{"spec":{"managedFields":[{"fieldsV1":` + owned + `}]}}`,
		"fields further down": `{"metadata":{"managedFields":[{"x":{"fieldsV1":` + owned + `}}]}}`,
		"cut off":             managed(owned)[:90],
		"cut off in a text":   `{"metadata":{"managedFields":[{"fieldsV1":{"f:a`,
		"closed too often":    managed(`{"f:abcdefghijklmnop":{}}}`),
	} {
		trees := &Trees{}
		want, wantDuplicates, wantErr := Decode([]byte(doc))
		for range 3 {
			got, duplicates, err := trees.Decode([]byte(doc))
			if !reflect.DeepEqual(got, want) || fmt.Sprint(duplicates, err) != fmt.Sprint(wantDuplicates, wantErr) {
				t.Errorf("%s: %v, %v, %v; want %v, %v, %v", name, got, duplicates, err, want, wantDuplicates, wantErr)
			}
			if err != nil {
				continue
			}
			written, err := trees.Append(nil, got)
			if plain, _ := Append(nil, want); err != nil || string(written) != string(plain) {
				t.Errorf("%s: written as %s, %v; want %s", name, written, err, plain)
			}
		}
	}
}

func TestOnlyManagedFieldsOfAnObjectAreShared(t *testing.T) {
	trees := &Trees{}
	for _, doc := range []string{
		`{"spec":{"managedFields":[{"fieldsV1":` + owned + `}]}}`,
		`{"metadata":{"x":[{"fieldsV1":` + owned + `}]}}`,
		`{"metadata":{"managedFields":[{"x":{"fieldsV1":` + owned + `}}]}}`,
		`{"spec":{"metadata":{"managedFields":[{"fieldsV1":` + owned + `}]}}}`,
	} {
		if _, _, err := trees.Decode([]byte(doc)); err != nil {
			t.Fatal(err)
		}
		if len(trees.byText) > 0 {
			t.Fatalf("of %s something is shared, which others may change in place", doc)
		}
	}
}

func TestTreesAreBounded(t *testing.T) {
	trees := &Trees{}
	for n := range 20000 {
		doc := managed(fmt.Sprintf(`{"f:spec":{"f:number-%d":{}}}`, n))
		object, _, err := trees.Decode([]byte(doc))
		if err != nil {
			t.Fatal(err)
		}
		if written, err := trees.Append(nil, object); err != nil || string(written) != doc {
			t.Fatalf("%s is written as %s, %v", doc, written, err)
		}
		if trees.size > treesMost || len(trees.byText) != len(trees.texts) {
			t.Fatalf("%d bytes of %d texts and %d trees are remembered", trees.size, len(trees.byText), len(trees.texts))
		}
	}
}

func TestTreesMayBeUsedByMany(t *testing.T) {
	trees := &Trees{}
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for n := range 300 {
				doc := managed(owned, fmt.Sprintf(`{"f:spec":{"f:number-%d":{}}}`, (n+g)%40))
				object, err := trees.DecodeLast([]byte(doc))
				if err != nil {
					t.Error(err)
					return
				}
				if written, err := trees.Append(nil, object); err != nil || string(written) != doc {
					t.Errorf("%s is written as %s, %v", doc, written, err)
				}
			}
		})
	}
	all.Wait()
}

func TestStableIsWhatComesBackAsItWas(t *testing.T) {
	for _, v := range []any{nil, "a", true, int64(1), 1.5, -0.25, 1e-7, map[string]any{"a": []any{1.5, "x"}}, []any{}, map[string]any{}} {
		if !Stable(v) {
			t.Errorf("%#v is not stable", v)
			continue
		}
		doc, err := Append(nil, map[string]any{"v": v})
		if err != nil {
			t.Fatal(err)
		}
		if got, _, err := Decode(doc); err != nil || !reflect.DeepEqual(got["v"], v) {
			t.Errorf("%#v comes back as %#v, %v", v, got["v"], err)
		}
	}
	for _, v := range []any{1.0, 1e30, 1, int32(1), map[string]any(nil), []any(nil), []any{2.0}, map[string]any{"a": 3}, []string{"a"}} {
		if Stable(v) {
			t.Errorf("%#v is stable", v)
		}
	}
}
