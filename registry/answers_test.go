package registry

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pawl-dev/pawl/storage"
)

func TestAnAddress(t *testing.T) { // rules S16 to S19
	const noNamespace, noName = "400 BadRequest: Namespace parameter required.", "400 BadRequest: Name parameter required."
	for _, c := range []struct {
		name              string
		namespaced        bool
		namespace, object string
		want              string
	}{
		{"a place in a namespace", true, "ns", "a", ""},
		{"no namespace where there must be one (S16)", true, "", "a", noNamespace},
		{"no name (S17)", true, "ns", "", noName},
		{"neither: the namespace comes first (S17)", true, "", "", noNamespace},
		{"a bad name and no namespace: the namespace comes first", true, "", "..", noNamespace},
		{"a place outside of namespaces", false, "", "a", ""},
		{"a place outside of namespaces, and a namespace (S19)", false, "ns", "a", ""},
		{"no name outside of namespaces (S17)", false, "", "", noName},
		{"a name that means here (S18)", true, "ns", ".", `400 BadRequest: Name parameter invalid: ".": may not be '.'`},
		{"a name that means one up (S18)", true, "ns", "..", `400 BadRequest: Name parameter invalid: "..": may not be '..'`},
		{"a name outside of namespaces that means one up (S18)", false, "", "..", `400 BadRequest: Name parameter invalid: "..": may not be '..'`},
		{"a name with a slash (S18)", true, "ns", "a/b", `400 BadRequest: Name parameter invalid: "a/b": may not contain '/'`},
		{"a name with a percent sign (S18)", true, "ns", "a%b", `400 BadRequest: Name parameter invalid: "a%b": may not contain '%'`},
		{"a name with both (S18)", true, "ns", "a/b%c", `400 BadRequest: Name parameter invalid: "a/b%c": may not contain '/';may not contain '%'`},
		{"a name with dots in it is one like any other", true, "ns", "...a..", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStand(t, Policy{Namespaced: c.namespaced})
			told(t, s.address(c.namespace, c.object), c.want)
		})
	}
}

// What a client is told of each way in which storage says no. The table is complete: a kind that is
// not in it fails the test.
func TestEveryErrorOfStorageHasItsAnswer(t *testing.T) { // rules S21 to S24
	resource := schema.GroupResource{Group: "example.com", Resource: "lamps"}
	s := newStand(t, namespaced, func(c *Config) { c.Resource = resource })
	why := errors.New("why")
	wrong := field.ErrorList{field.Forbidden(field.NewPath("limit"), "not now")}
	answers := map[storage.Kind]string{
		storage.NotFound:    `404 NotFound: lamps.example.com "NAME" not found`,
		storage.Invalid:     `409 Conflict: Operation cannot be fulfilled on lamps.example.com "NAME": why`,
		storage.Corrupt:     `500 InternalError: Internal error occurred: storage: corrupt object: ns/a: asked for 9, have 7: why`,
		storage.TooNew:      `504 Timeout: Timeout: Too large resource version: 9, current: 7`,
		storage.Expired:     `410 Expired: why`,
		storage.BadRequest:  `400 BadRequest: why`,
		storage.BadOptions:  `422 Invalid: ListOptions.meta.k8s.io "" is invalid: limit: Forbidden: not now`,
		storage.Unavailable: `500 ServerTimeout: The VERB operation against lamps.example.com could not be completed at this time, please try again. why`,
		storage.Unknown:     `504 Timeout: Timeout: whether the write was stored is not known: read the object again before you repeat it`,
		storage.Timeout:     `504 Timeout: Timeout: request did not complete within the allotted timeout`,
		storage.TooLarge:    `413 RequestEntityTooLarge: Request entity too large: why`,
	}
	for kind := storage.NotFound; kind <= storage.TooLarge; kind++ {
		if answers[kind] == "" {
			t.Errorf("%v has no answer", kind)
		}
		for _, verb := range []string{"create", "get", "list", "update", "delete", "watch"} {
			name := "a"
			if verb == "list" || verb == "watch" {
				name = ""
			}
			e := &storage.Error{Kind: kind, Namespace: "ns", Name: "a", Want: 9, Have: 7, Continue: "token", Options: wrong, Err: why}
			err := s.refuse(verb, name, fmt.Errorf("whatever: %w", e))
			want := strings.NewReplacer("VERB", verb, "NAME", name).Replace(answers[kind])
			if kind == storage.Corrupt { // the one whose whole text is told
				want = strings.Replace(want, "storage:", "whatever: storage:", 1)
			}
			told(t, err, want)
			checkDetails(t, kind, verb, name, err)
		}
	}
	other := errors.New("no error of storage")
	if got := s.refuse("get", "a", other); got != other {
		t.Errorf("%v became %v", other, got)
	}
	forbidden := apierrors.NewForbidden(resource, "a", why)
	if got := s.refuse("update", "a", forbidden); got != error(forbidden) {
		t.Errorf("%v became %v: what is an answer already stays it (S22)", forbidden, got)
	}
	if got := s.refuse("get", "a", nil); got != nil {
		t.Errorf("nothing became %v", got)
	}
}

// checkDetails looks at what an answer says beside its text.
func checkDetails(t *testing.T, kind storage.Kind, verb, name string, err error) {
	t.Helper()
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		t.Fatalf("%T is no answer", err)
	}
	d := status.ErrStatus.Details
	if d == nil {
		d = &metav1.StatusDetails{}
	}
	var got []string
	for _, c := range d.Causes {
		got = append(got, string(c.Type)+" "+c.Field)
	}
	say := fmt.Sprintf("%s|%s|%s|%d|%s|%s", d.Group, d.Kind, d.Name, d.RetryAfterSeconds, strings.Join(got, ","), status.ErrStatus.Continue)
	want := map[storage.Kind]string{
		storage.NotFound: "example.com|lamps|" + name + "|0||", storage.Invalid: "example.com|lamps|" + name + "|0||", // S21
		storage.Corrupt: "|||0| |", storage.TooNew: "|||1|ResourceVersionTooLarge |", storage.Expired: "|||0||token",
		storage.BadRequest: "|||0||", storage.BadOptions: "meta.k8s.io|ListOptions||0|FieldValueForbidden limit|",
		storage.Unavailable: "example.com|lamps|" + verb + "|2||", // S23
		storage.Unknown:     "|||0||", storage.Timeout: "|||0||", storage.TooLarge: "|||0||",
	}[kind]
	if say != want {
		t.Errorf("details of %v when asked to %s are %s, want %s", kind, verb, say, want)
	}
}
