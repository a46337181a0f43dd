package storage

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestMarksFindTheParts(t *testing.T) {
	for _, c := range []struct{ name, json, types, metadata string }{
		{"kind before apiVersion", `{"kind":"A","apiVersion":"v1","metadata":{"name":"a"},"data":{}}`, `"kind":"A","apiVersion":"v1",`, `{"name":"a"}`},
		{"apiVersion before kind", `{"apiVersion":"v1","kind":"A","metadata":{"name":"a"}}`, `"apiVersion":"v1","kind":"A",`, `{"name":"a"}`},
		{"neither", `{"metadata":{"name":"a"}}`, ``, `{"name":"a"}`},
		{"metadata is empty", `{"kind":"A","metadata":{}}`, `"kind":"A",`, `{}`},
		{"brackets and quotes within strings", `{"kind":"}\"{","metadata":{"a":"]}\\","b":[{"c":"\"}"}]},"z":1}`, `"kind":"}\"{",`, `{"a":"]}\\","b":[{"c":"\"}"}]}`},
		{"numbers and literals before metadata", `{"kind":12,"apiVersion":null,"metadata":{}}`, `"kind":12,"apiVersion":null,`, `{}`},
		{"another metadata further down", `{"metadata":{"metadata":{}},"spec":{"metadata":{"x":1}}}`, ``, `{"metadata":{}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := mark([]byte(c.json))
			if err != nil {
				t.Fatal(err)
			}
			if got := string(d.json[1:d.typeEnd]); got != c.types {
				t.Errorf("types are %s, want %s", got, c.types)
			}
			if got := string(d.json[d.metaStart:d.metaEnd]); got != c.metadata {
				t.Errorf("metadata are %s, want %s", got, c.metadata)
			}
		})
	}
}

func TestMarksRefuseWhatIsNoObject(t *testing.T) {
	for _, c := range []struct{ name, json string }{
		{"nothing", ``},
		{"no object", `[]`},
		{"an empty object", `{}`},
		{"an object that never ends", `{"kind":"A","metadata":{"name":"a"`},
		{"one that ends with its metadata", `{"metadata":{}`},
		{"no metadata", `{"kind":"A","apiVersion":"v1"}`},
		{"something before metadata", `{"kind":"A","data":{},"metadata":{}}`},
		{"metadata that are no object", `{"kind":"A","metadata":[]}`},
		{"metadata that are null", `{"kind":"A","metadata":null}`},
		{"an open string", `{"kind":"A\`},
		{"three kinds", `{"kind":1,"kind":2,"kind":3,"metadata":{}}`},
		{"white space, which no codec makes", `{ "metadata":{}}`},
	} {
		if _, _, err := seal([]byte(c.json), 1); err == nil {
			t.Errorf("%s: seal(%s) did not fail", c.name, c.json)
		}
	}
}

// Whatever can be in an object's strings and whichever of its members there are, it comes
// back from its envelope, and is sent as decoding and encoding would send it.
func TestSealedObjectsAreSentAsIfEncoded(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		cm := randomConfigMap(rnd)
		data, fp, err := configMaps{print: 1 + Fingerprint(rnd.Uint64())>>1}.Encode(cm)
		if err != nil {
			t.Fatal(err)
		}
		value, sealed, err := seal(data, fp)
		if err != nil {
			t.Fatalf("seal(%s): %v", data, err)
		}
		d, err := unseal(value)
		if err != nil {
			t.Fatalf("unseal(seal(%s)): %v", data, err)
		}
		if !reflect.DeepEqual(d, sealed) || d.fingerprint != fp || !bytes.Equal(d.json, data) {
			t.Fatalf("%s came back as %+v", data, d)
		}
		want := members(t, data)
		want["metadata"].(map[string]any)["resourceVersion"] = "41"
		if got := members(t, d.appendTo(nil, 41, false)); !reflect.DeepEqual(got, want) {
			t.Fatalf("sent as %v, want %v", got, want)
		}
		if got := members(t, d.appendMetadata(nil, 41)); !reflect.DeepEqual(got, want["metadata"]) {
			t.Fatalf("metadata sent as %v, want %v", got, want["metadata"])
		}
		delete(want, "kind")
		delete(want, "apiVersion")
		if got := members(t, d.appendTo(nil, 41, true)); !reflect.DeepEqual(got, want) {
			t.Fatalf("as an item sent as %v, want %v", got, want)
		}
		if got := d.appendTo(nil, 0, false); !bytes.Equal(got, data) {
			t.Fatalf("without a version sent as %s, want %s", got, data)
		}
	}
}

func members(t *testing.T, data []byte) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	return m
}

func randomConfigMap(rnd *rand.Rand) *corev1.ConfigMap {
	text := func() string {
		var b strings.Builder
		alphabet := []rune(`ab{}[]",:\/<>&` + "\n\t\x00\u2028é日\U0001f600")
		for range rnd.IntN(8) {
			b.WriteRune(alphabet[rnd.IntN(len(alphabet))])
		}
		return b.String()
	}
	cm := &corev1.ConfigMap{}
	for range rnd.IntN(3) {
		metav1.SetMetaDataAnnotation(&cm.ObjectMeta, text(), text())
	}
	if rnd.IntN(2) == 0 {
		cm.Name, cm.Namespace = text(), text()
		cm.CreationTimestamp = metav1.NewTime(time.Unix(rnd.Int64N(1<<31), 0).UTC())
		cm.Finalizers = []string{text()}
	}
	if rnd.IntN(2) == 0 {
		cm.Data = map[string]string{text(): text(), "metadata": text()}
	}
	return cm
}

func TestUnsealRefusesWhatSealDidNotMake(t *testing.T) {
	good, _, err := seal([]byte(`{"kind":"A","metadata":{"name":"a"}}`), 9)
	if err != nil {
		t.Fatal(err)
	}
	for i := range good {
		if i < 12 || i == len(good)-1 {
			d, err := unseal(good[:i])
			if i < len(good)-1 && err == nil {
				t.Errorf("the first %d bytes were read as %+v", i, d)
			}
		}
	}
	for _, c := range []struct {
		name  string
		value []byte
	}{
		{"nothing", nil},
		{"another format", append([]byte{2}, good[1:]...)},
		{"marks beyond the end", append(append([]byte{}, good[:9]...), 0xff, 0x7f, 0xff, 0x7f, 0xff, 0x7f, '{', '}')},
		{"a mark that never ends", append(append([]byte{}, good[:9]...), bytes.Repeat([]byte{0xff}, 12)...)},
		{"marks in the wrong order", append(append([]byte{}, good[:9]...), 1, 9, 3, '{', '}')},
	} {
		if d, err := unseal(c.value); err == nil {
			t.Errorf("%s: read as %+v", c.name, d)
		}
	}
}

// inside fails unless d can be used without looking before.
func inside(t *testing.T, d document) {
	t.Helper()
	if !d.sound() {
		t.Fatalf("marks %d, %d, %d outside of %q", d.typeEnd, d.metaStart, d.metaEnd, d.json)
	}
	d.appendTo(nil, 7, true)
	d.appendTo(nil, 7, false)
	d.appendMetadata(nil, 7)
}

func FuzzUnseal(f *testing.F) {
	for _, s := range objects {
		value, _, err := seal([]byte(s), 3)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(value)
		f.Add(value[:len(value)-1])
	}
	f.Add([]byte{1, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, value []byte) {
		if d, err := unseal(value); err == nil {
			inside(t, d)
		}
	})
}

var objects = []string{
	`{"kind":"A","apiVersion":"v1","metadata":{"name":"a"},"data":{"a":"}"}}`,
	`{"apiVersion":"v1","kind":"A","metadata":{}}`,
	`{"metadata":{"name":"\"}\\"},"items":[{"metadata":{}}]}`,
}

func FuzzMark(f *testing.F) {
	for _, s := range objects {
		f.Add([]byte(s))
	}
	for _, s := range []string{``, `{`, `{"`, `{"\`, `{"kind":`, `{"kind":"\`, `{"kind":}}}`, `{"metadata":{]`, `{"metadata":[{}]}`, `{"kind":1]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		value, d, err := seal(data, 3)
		if err != nil {
			return
		}
		inside(t, d)
		again, err := unseal(value)
		if err != nil || !reflect.DeepEqual(again, d) {
			t.Fatalf("sealed as %+v, unsealed as %+v, %v", d, again, err)
		}
		var compact bytes.Buffer
		if json.Compact(&compact, data) != nil || !bytes.Equal(compact.Bytes(), data) {
			return // no codec makes this
		}
		for _, item := range []bool{true, false} {
			if sent := d.appendTo(nil, 7, item); !json.Valid(sent) {
				t.Fatalf("%q would be sent as %q", data, sent)
			}
		}
	})
}
