package objectjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	kjson "sigs.k8s.io/json"
)

// texts are documents that mean something, mean nothing, or mean it in an odd way.
var texts = []string{
	``, ` `, `{`, `}`, `{}`, ` { } `, "\t{\r\n}\n", `[]`, `null`, ` null `, `nul`, `true`, `7`, `"x"`, `{}{}`, `{} x`, `{},`, "{}\x00", "\x00{}", "{\x00}",
	`{"a":1}`, `{"a" : 1 , "b" : [ 1 , 2 ] }`, `{"a":1,}`, `{,"a":1}`, `{"a"}`, `{"a":}`, `{"a":1 "b":2}`, `{a:1}`, `{'a':1}`, `{"a":[1,]}`, `{"a":[,1]}`, `{"a":[1 2]}`, `{"a":[}`, `{"a":{]}`, `{"a":[]}`, `{"a":[[],{}]}`,
	`{"a":true,"b":false,"c":null}`, `{"a":True}`, `{"a":tru}`, `{"a":nulll}`, `{"a":truefalse}`,
	`{"a":0}`, `{"a":-0}`, `{"a":-}`, `{"a":+1}`, `{"a":01}`, `{"a":-01}`, `{"a":1.}`, `{"a":.1}`, `{"a":1.0}`, `{"a":1.5}`, `{"a":-1.5e3}`, `{"a":1e3}`, `{"a":1E+3}`, `{"a":1e-3}`, `{"a":1e}`, `{"a":1e+}`, `{"a":0e1}`, `{"a":0x1}`, `{"a":1_0}`, `{"a":Infinity}`, `{"a":NaN}`,
	`{"a":9223372036854775807}`, `{"a":9223372036854775808}`, `{"a":-9223372036854775808}`, `{"a":-9223372036854775809}`, `{"a":123456789012345678901234567890}`, `{"a":1e308}`, `{"a":1e309}`, `{"a":-1e400}`, `{"a":1e-400}`, `{"a":0.1e1}`, `{"a":1e400,"a":1}`,
	`{"a":1,"a":2}`, `{"a":{"b":1,"b":2},"a":3}`, `{"a":[{"x":1,"x":1},{"y":[{"z":1,"z":2}]}]}`, `{"a":1,"a":1,"a":1}`, `{"a":{"b":1},"a":{"c":1}}`, `{"":1,"":2}`, `{"A":1,"a":2}`, `{"a":null,"a":null}`, `{"a":1,"\u0061":2}`, `{"a":1,"a":2,`,
	`{"a":"\"\\\/\b\f\n\r\t"}`, `{"a":"\'"}`, `{"a":"\x"}`, `{"a":"\`, `{"a":"\"`, `{"a":"\u"}`, `{"a":"\u12"}`, `{"a":"\u12g4"}`, `{"a":"\u00e9\u20AC"}`, `{"a":"\u0000"}`, "{\"a\":\"\x00\"}", "{\"a\":\"\x1f\"}", "{\"a\":\"\n\"}", "{\"a\":\"\x7f\"}",
	`{"a":"\ud83d\ude00"}`, `{"a":"\ud83d"}`, `{"a":"\ude00"}`, `{"a":"\ud83d\u0041"}`, `{"a":"\ud83dx"}`, `{"a":"\ud83d\ud83d\ude00"}`, `{"a":"\ud83d\n"}`, `{"a":"\ud83d\u12"}`, `{"a":"\ude00\ud83d"}`, `{"\ud83d":1,"\ufffd":2}`,
	"{\"a\":\"\xff\"}", "{\"a\":\"\xed\xa0\x80\"}", "{\"a\":\"\xf0\x9f\x98\x80 \xe2\x80\xa8\"}", "{\"a\":\"\xc3\"}", "{\"\xff\":1,\"\xfe\":2}", "{\"a\":\"x\xffy\\n\"}", "{\"a\":\xff}", "\xef\xbb\xbf{}",
	`{"a":"<b>&amp;</b>"}`, `{"metadata":{"name":"x"},"kind":"K"}`, `{"kind":"K"`, `{"a":"unterminated}`, `{"a":1}//`,
	strings.Repeat(`{"a":`, 199) + `1` + strings.Repeat(`}`, 199), strings.Repeat(`{"a":`, 201) + `1` + strings.Repeat(`}`, 201), strings.Repeat(`{"a":`, 300) + `1`,
	`{"a":` + strings.Repeat(`[`, 10001) + strings.Repeat(`]`, 10001) + `}`, `{"a":` + strings.Repeat(`[`, 9999) + strings.Repeat(`]`, 9999) + `}`,
}

// decodesAsTheLibrary compares the result, the findings and the errors for one text.
func decodesAsTheLibrary(t *testing.T, data []byte) {
	t.Helper()
	want := map[string]any{}
	wantFindings, wantErr := kjson.UnmarshalStrict(data, &want)
	got, findings, err := Decode(bytes.Clone(data))
	if fmt.Sprint(err) != fmt.Sprint(wantErr) || !reflect.DeepEqual(got, want) || fmt.Sprint(findings) != fmt.Sprint(wantFindings) {
		t.Errorf("Decode(%.200q):\n got %#v, %v, %v\nwant %#v, %v, %v", data, got, findings, err, want, wantFindings, wantErr)
	}
	want = map[string]any{}
	wantErr = kjson.UnmarshalCaseSensitivePreserveInts(data, &want)
	got, err = DecodeLast(data)
	if fmt.Sprint(err) != fmt.Sprint(wantErr) || !reflect.DeepEqual(got, want) {
		t.Errorf("DecodeLast(%.200q):\n got %#v, %v\nwant %#v, %v", data, got, err, want, wantErr)
	}
}

// typedAsTheLibrary compares apiVersion and kind of one text, if they are known.
func typedAsTheLibrary(t *testing.T, data []byte) (known bool) {
	t.Helper()
	var want struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	err := kjson.UnmarshalCaseSensitivePreserveInts(data, &want)
	apiVersion, kind, known := Type(data)
	if known && (err != nil || apiVersion != want.APIVersion || kind != want.Kind) {
		t.Errorf("Type(%.200q): got %q and %q, want %q and %q, %v", data, apiVersion, kind, want.APIVersion, want.Kind, err)
	}
	return known
}

// encodesAsTheLibrary compares the bytes and the errors for one value.
func encodesAsTheLibrary(t *testing.T, value any) {
	t.Helper()
	want, wantErr := json.Marshal(value)
	got, err := Append([]byte("x"), value)
	if fmt.Sprint(err) != fmt.Sprint(wantErr) || err == nil && string(got) != "x"+string(want) {
		t.Errorf("Append(%.200v):\n got %s, %v\nwant x%s, %v", value, got, err, want, wantErr)
	}
}

func TestTextsAreReadAsTheLibraryReadsThem(t *testing.T) {
	for _, text := range texts {
		decodesAsTheLibrary(t, []byte(text))
		typedAsTheLibrary(t, []byte(text))
	}
}

func TestTheTypeOfAnObjectIsKnownWithoutReadingIt(t *testing.T) {
	for text, want := range map[string]bool{
		sample: true, `{}`: true, `{"kind":"K"}`: true, ` {"x":[1.5e3,[],{},{"kind":7}],"kind":"K\u0021","apiVersion":null,"apiVersion":"a/v1"} `: true,
		`{"kind":"A","kind":"B"}`: true, `{"kind":"A","kind":null}`: true, `{"Kind":"A"}`: true, `{"x":1e999,"kind":"K"}`: true,
		`{"kind":7}`: false, `{"kind":["K"]}`: false, `[]`: false, `null`: false, `{"kind":"K"`: false, `{"kind":"K","x":[1,]}`: false, `{"kind":"K"}x`: false, `{"kind":"K","x":{"y"}}`: false,
	} {
		if got := typedAsTheLibrary(t, []byte(text)); got != want {
			t.Errorf("%s: known is %v", text, got)
		}
	}
}

func TestWhatIsReadDoesNotHoldOnToTheText(t *testing.T) {
	data := []byte(`{"own":"text","esc":"a\nb","metadata":{}}`)
	object, _, err := Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	for i := range data {
		data[i] = 'x'
	}
	if want := (map[string]any{"own": "text", "esc": "a\nb", "metadata": map[string]any{}}); !reflect.DeepEqual(object, want) {
		t.Errorf("the object changed with the bytes it was read from: %v", object)
	}
}

func TestValuesAreWrittenAsTheLibraryWritesThem(t *testing.T) {
	var all []byte
	for c := range 256 {
		all = append(all, byte(c))
	}
	deep := any("x")
	for range depthMax + 5 {
		deep = []any{map[string]any{"a": deep}}
	}
	for _, value := range []any{
		nil, true, false, "", "plain", string(all), "<a href='x'>&</a>", "\u2028\u2029\u2030 é€😀", "\xed\xa0\x80",
		int64(0), int64(-1), int64(math.MaxInt64), int64(math.MinInt64), 7, uint8(7), int32(-7), float32(0.1), json.Number("12.50"),
		0.0, math.Copysign(0, -1), 1.0, -3.0, 0.1, 1e20, 1e21, 1e-6, 1e-7, 123456789.125, 1 << 53, 1<<53 - 1, -(1 << 53), math.MaxFloat64, math.SmallestNonzeroFloat64,
		math.NaN(), math.Inf(1), []any{1.5, math.Inf(-1)}, map[string]any{"a": math.NaN()}, map[string]any{"a": make(chan int)},
		map[string]any(nil), map[string]any{}, []any(nil), []any{}, []string{"a"}, map[string]string{"b": "1", "a": "2"}, map[string]any{"a": []string{"<"}, "b": map[string]int{"z": 1}},
		map[string]any{"b": int64(1), "a": int64(2), "": nil, "B": []any{map[string]any{"y": "1", "x": "2"}, nil}, "\xff": 1.5, "ä": "x", "<": true}, deep,
	} {
		encodesAsTheLibrary(t, value)
	}
}

func TestMembersAreWrittenWithoutThoseNamed(t *testing.T) {
	object := map[string]any{"kind": "K", "c": int64(1), "a": map[string]any{"kind": "inner"}, "apiVersion": "v1"}
	got, err := AppendMembers([]byte(`{"kind":"K"`), object, "kind", "apiVersion")
	if want := `{"kind":"K","a":{"kind":"inner"},"c":1`; string(got) != want || err != nil {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
}

// damage are bytes that mean something to a reader of JSON.
const damage = "{}[]\":,\\u0x1e-. \n\xff\x00"

func TestRandomTreesAndDamagedOnesAreReadAndWrittenAsTheLibraryDoes(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for range 3000 {
		tree := object(r, 4)
		encodesAsTheLibrary(t, tree)
		data, err := Append(nil, tree)
		if err != nil {
			t.Fatal(err)
		}
		for range 4 {
			decodesAsTheLibrary(t, data)
			typedAsTheLibrary(t, data)
			data[r.IntN(len(data))] = damage[r.IntN(len(damage))]
		}
	}
}

func TestEqualityIsThatOfTheLibrary(t *testing.T) {
	values := []any{
		nil, "", "a", true, false, int64(0), int64(1), 0.0, 1.0, 7, map[string]any{}, map[string]any(nil), []any{}, []any(nil),
		map[string]any{"a": nil}, map[string]any{"b": nil}, map[string]any{"a": map[string]any{}}, map[string]any{"a": map[string]any(nil)},
		[]any{nil}, []any{int64(1)}, []any{1.0}, []any{"a", "b"}, []any{"b", "a"}, []string{"a"}, map[string]any{"a": int64(1), "b": "x"},
	}
	r := rand.New(rand.NewPCG(8, 8))
	for range 40 {
		values = append(values, object(r, 1))
	}
	for _, a := range values {
		for _, b := range values {
			if got, want := Equal(a, b), equality.Semantic.DeepEqual(a, b); got != want {
				t.Errorf("Equal(%#v, %#v) is %v, and %v for the library", a, b, got, want)
			}
		}
	}
}

// object is a random object that nests so deep at most.
func object(r *rand.Rand, depth int) map[string]any {
	o := map[string]any{}
	for range r.IntN(5) {
		o[text(r)] = value(r, depth-1)
	}
	return o
}

func value(r *rand.Rand, depth int) any {
	kinds := 8
	if depth == 0 {
		kinds = 6
	}
	switch r.IntN(kinds) {
	case 0:
		return nil
	case 1:
		return r.IntN(2) == 0
	case 2:
		return int64(r.Uint64()) >> r.IntN(64)
	case 3:
		return math.Ldexp(r.NormFloat64(), r.IntN(200)-100)
	case 6:
		return object(r, depth)
	case 7:
		list := make([]any, r.IntN(4))
		for i := range list {
			list[i] = value(r, depth-1)
		}
		return list
	}
	return text(r)
}

var words = []string{"name", "spec", "f:spec", "a", "b", "c", "é", "<&>", "\u2028", "\xff", "\"", "\\", "\n", "\x01", "😀", " "}

func text(r *rand.Rand) string {
	s := ""
	for range 1 + r.IntN(3) {
		s += words[r.IntN(len(words))]
	}
	return s
}

func FuzzDecode(f *testing.F) {
	for _, text := range texts {
		if len(text) < 1000 {
			f.Add([]byte(text))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		decodesAsTheLibrary(t, data)
		typedAsTheLibrary(t, data)
		if tree, err := DecodeLast(data); err == nil {
			encodesAsTheLibrary(t, tree)
		}
	})
}

func FuzzAppendString(f *testing.F) {
	for _, w := range words {
		f.Add(w)
	}
	f.Fuzz(func(t *testing.T, s string) { encodesAsTheLibrary(t, s) })
}

// The claim: reading takes about half the time of the library's, writing a fifth.
func BenchmarkJSON(b *testing.B) {
	data := []byte(sample)
	tree, err := DecodeLast(data)
	if err != nil {
		b.Fatal(err)
	}
	for _, run := range []struct {
		name string
		do   func() error
	}{
		{"decode", func() error { _, _, err := Decode(data); return err }},
		{"decode/library", func() error { _, err := kjson.UnmarshalStrict(data, &map[string]any{}); return err }},
		{"type", func() error { Type(data); return nil }},
		{"append", func() error { _, err := Append(make([]byte, 0, 2*len(data)), tree); return err }},
		{"append/library", func() error { _, err := json.Marshal(tree); return err }},
	} {
		b.Run(run.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := run.do(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

const sample = `{"apiVersion":"bench.example.com/v1","kind":"Widget","metadata":{"name":"a","namespace":"default","resourceVersion":"17","labels":{"app":"bench","tier":"backend"},"annotations":{"bench.example.com/owner":"team-a"}},` +
	`"spec":{"seq":1000000,"counter":7,"replicas":3,"size":"medium","paused":false,"selector":{"matchLabels":{"app":"bench"}},` +
	`"containers":[{"name":"main","image":"registry.example.com/team/app:v1.2.3","ports":[{"name":"http","containerPort":8080,"protocol":"TCP"}],` +
	`"env":[{"name":"MODE","value":"production"},{"name":"LOG_LEVEL","value":"info"}],` +
	`"resources":{"limits":{"cpu":"500m","memory":"256Mi"},"requests":{"cpu":100,"memory":"128Mi"}}}],` +
	`"config":{"feature.a":"true","feature.b":"false","endpoint":"https://service.example.com/api"},"tags":["alpha","beta","gamma"],` +
	`"description":"the quick brown fox jumps over the lazy dog the quick brown fox jumps over the lazy dog the quick brown fox jumps over the lazy dog"}}`
