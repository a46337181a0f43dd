package registry

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// A shout is a text that is written in its own way.
type shout string

func (s shout) MarshalText() ([]byte, error) { return []byte(strings.ToUpper(string(s))), nil }

func (s *shout) UnmarshalText(b []byte) error {
	*s = shout(strings.ToLower(string(b)))
	return nil
}

// An Inner is exported, as all have to be that are embedded in what is stored.
type Inner struct {
	Deep   string `json:"deep,omitempty"`
	Deeper *Inner `json:"deeper,omitempty"`
}

// A Motley has fields of all the sorts that JSON treats in ways of their own.
type Motley struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Inner
	Any     any                 `json:"any,omitempty"`
	Bytes   []byte              `json:"bytes,omitempty"`
	Fixed   [2]int              `json:"fixed"`
	Float   float32             `json:"float"`
	Keyed   map[int]string      `json:"keyed,omitempty"`
	Loud    map[shout]shout     `json:"loud,omitempty"`
	Digits  map[json.Number]int `json:"digits,omitempty"`
	Nested  map[string]*Inner   `json:"nested"`
	Pointer **int               `json:"pointer"`
	Quoted  int64               `json:"quoted,string"`
	Raw     json.RawMessage     `json:"raw,omitempty"`
	Slice   []Inner             `json:"slice"`
	Small   int8                `json:"small"`
	Unnamed string
	Where   intstr.IntOrString `json:"where"`
}

// Each of these has a number that is read in another way.
type (
	numbered struct {
		Motley
		Number json.Number `json:"number,omitempty"`
	}
	counted struct {
		Motley
		Counts []map[string]*[1]json.Number `json:"counts"`
	}
)

// What Go programs stored by encoding/json is read as encoding/json reads it, and what it refuses is refused.
func TestObjectsAreReadAsEncodingJSONReadsThem(t *testing.T) {
	for name, data := range map[string]string{
		"an empty one":                        `{}`,
		"null":                                `null`,
		"null everywhere":                     `{"metadata":null,"any":null,"bytes":null,"fixed":null,"float":null,"keyed":null,"nested":null,"pointer":null,"raw":null,"slice":null,"where":null,"Unnamed":null}`,
		"metadata":                            `{"metadata":{"name":"a","creationTimestamp":"2026-01-02T03:04:05Z","labels":{"x":"y"},"managedFields":[{"manager":"m","fieldsV1":{"f:a":{}}}],"deletionGracePeriodSeconds":3}}`,
		"a time that is none":                 `{"metadata":{"creationTimestamp":"yesterday"}}`,
		"names in another case":               `{"ANY":1,"Bytes":"AQID","unnamed":"u","DEEP":"d"}`,
		"the exact name first":                `{"Unnamed":"a","unnamed":"b","UNNAMED":"c"}`,
		"a name twice":                        `{"any":1,"any":2,"nested":{"a":{"deep":"1"}},"nested":{"b":{}},"slice":[{"deep":"1"},{}],"slice":[{}]}`,
		"names that nobody knows":             `{"unknown":{"a":[1,{"b":null}]}}`,
		"what is embedded":                    `{"deep":"d","kind":"K","apiVersion":"v"}`,
		"anything":                            `{"any":{"n":1,"f":1.5,"big":123456789012345678901234567890,"l":[true,null,"s"]}}`,
		"bytes that are none":                 `{"bytes":"?"}`,
		"an array that is short":              `{"fixed":[1]}`,
		"an array that is long":               `{"fixed":[1,2,3]}`,
		"keys that are numbers":               `{"keyed":{"1":"a","-2":"b"}}`,
		"keys of digits":                      `{"digits":{"1":2,"x":3}}`,
		"what holds itself":                   `{"slice":[{"deeper":{"deeper":{"deep":"d"}}}]}`,
		"keys that ought to be numbers":       `{"keyed":{"x":"a"}}`,
		"texts of their own":                  `{"loud":{"HEY":"YOU"}}`,
		"a number as it is":                   `{"number":1e400}`,
		"a number in quotes":                  `{"number":"12"}`,
		"numbers within":                      `{"counts":[{"a":[1],"b":["2"],"c":null}]}`,
		"no number in quotes":                 `{"number":"x"}`,
		"pointers":                            `{"pointer":7}`,
		"what is quoted":                      `{"quoted":"12"}`,
		"what ought to be quoted":             `{"quoted":12}`,
		"raw":                                 `{"raw":{"a" : [1, 2]}}`,
		"too large a number":                  `{"small":128}`,
		"a fraction for a whole number":       `{"small":1.0}`,
		"another kind of value":               `{"slice":{"deep":"x"}}`,
		"one bad value of many":               `{"small":"x","Unnamed":"still"}`,
		"numbers and texts":                   `{"where":80,"Unnamed":"\u00e9\ud83d\ude00\/"}`,
		"half a surrogate":                    `{"Unnamed":"\ud83d"}`,
		"bytes that are no text":              "{\"Unnamed\":\"a\xffb\"}",
		"a control character":                 "{\"Unnamed\":\"a\nb\"}",
		"half of it":                          `{"Unnamed":"a"`,
		"something behind":                    `{} {}`,
		"a comma too many":                    `{"small":1,}`,
		"a list":                              `[]`,
		"white space":                         " \t\r\n{ \"small\" : 1 } \n",
		"a number with a zero in front":       `{"small":01}`,
		"very deep, and nobody wants to know": `{"unknown":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `}`,
		"deeper than encoding/json goes":      `{"unknown":` + strings.Repeat("[", 11000) + strings.Repeat("]", 11000) + `}`,
		"nothing":                             ``,
		"what is added to what there is":      `{"nested":{"a":null,"b":{"deep":"x"}},"slice":[]}`,
		"a large float for a small one":       `{"float":1e300}`,
		"a float that is rounded":             `{"float":0.1}`,
	} {
		t.Run(name, func(t *testing.T) { readBoth[Motley](t, data); readBoth[numbered](t, data); readBoth[counted](t, data) })
	}
}

// readBoth reads data by the codec of T and by encoding/json.
func readBoth[T any](t *testing.T, data string) {
	codec, err := goTypeOf[T](schema.GroupVersionKind{Group: "test", Version: "v1", Kind: "Motley"})
	if err != nil {
		t.Fatal(err)
	}
	want := new(T)
	wantErr := json.Unmarshal([]byte(data), want)
	got, err := codec.Decode([]byte(data))
	if (err != nil) != (wantErr != nil) {
		t.Fatalf("it is read with %v, and by encoding/json with %v", err, wantErr)
	}
	if err != nil {
		return
	}
	object, err := unboxed[T](got)
	if err != nil || !reflect.DeepEqual(object, want) {
		t.Errorf("it is read as %+v, and by encoding/json as %+v (%v)", object, want, err)
	}
}
