package server

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "sigs.k8s.io/json"

	"github.com/pawl-dev/pawl/internal/objectjson"
)

// readBody reads the body, if it is not too large (rule H74) and comes in time (rule H213).
func (c *call) readBody() ([]byte, error) {
	rc := http.NewResponseController(c.w)
	if by, ok := c.r.Context().Deadline(); ok {
		_ = rc.SetReadDeadline(by) // a writer that cannot has no client that can be slow
	}
	data, err := io.ReadAll(io.LimitReader(c.r.Body, bodyMax+1))
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, timedOut()
	case err != nil:
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the body of the request could not be read: %v", err))
	}
	_ = rc.SetReadDeadline(time.Time{})
	if len(data) > bodyMax {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", bodyMax))
	}
	return data, nil
}

// receive reads what a create or an update sends: first its encoding, then its size, then
// the query are checked, and only then what it says (rule H85).
func (c *call) receive() (runtime.Object, writing, error) {
	media, err := bodyMedia(c.r, true)
	if err != nil {
		return nil, writing{}, err
	}
	data, err := c.readBody()
	if err != nil {
		return nil, writing{}, err
	}
	o, err := c.writing()
	if err != nil {
		return nil, o, err
	}
	obj, err := c.decodeBody(media, data, o)
	return obj, o, err
}

// decodeBody reads the object in a body, and does with what strict validation finds in it
// what the sender asked for (rules H65 to H71).
func (c *call) decodeBody(media string, data []byte, o writing) (_ runtime.Object, err error) {
	if media == mediaProtobuf {
		return c.decodeProtobuf(data)
	}
	var findings []string
	if media == mediaYAML {
		if data, findings, err = fromYAML(data); err != nil {
			return nil, c.unrecognized(data, err)
		}
	}
	obj, more, err := c.decodeJSON(data)
	if err != nil {
		return nil, err
	}
	return obj, c.findings(append(findings, more...), o)
}

// decodeJSON reads an object that is of the kind that the path names. A custom resource says its kind
// itself, so that reading it comes first: what cannot be read, or is of another kind, is looked at
// again for what to say.
func (c *call) decodeJSON(data []byte) (obj runtime.Object, findings []string, err error) {
	c.received = data
	if c.res.Custom && c.scale == nil {
		obj, findings, err = c.form.Decode(data)
		if err == nil && obj.GetObjectKind().GroupVersionKind() == c.form.GroupVersionKind() {
			return obj, findings, nil
		}
	}
	if c.received, err = c.typeOf(data); err != nil {
		return nil, nil, err
	}
	if obj, findings, err = c.form.Decode(c.received); err != nil {
		return nil, nil, c.undecodable(err)
	}
	return obj, findings, nil
}

// findings warns of what strict validation found, or refuses it (rules H65, H66).
func (c *call) findings(found []string, o writing) error {
	if len(found) == 0 {
		return nil
	}
	switch o.validation {
	case metav1.FieldValidationStrict:
		return c.undecodable(errors.New(strictText(found)))
	case metav1.FieldValidationWarn:
		for _, f := range found {
			c.warnings.AddWarning("", f)
		}
	}
	return nil
}

func strictText(findings []string) string {
	return "strict decoding error: " + strings.Join(findings, ", ")
}

// typeOf checks that a document says it is what the path says, and returns it with kind and
// apiVersion, which a built-in may leave out (rule H71).
func (c *call) typeOf(data []byte) ([]byte, error) {
	want := c.form.GroupVersionKind()
	tm, err := typeMeta(data)
	if err != nil {
		return nil, c.unrecognized(data, fmt.Errorf("couldn't get version/kind; json parse error: %w", err))
	}
	if c.res.Custom && c.scale == nil && (tm.Kind == "" || tm.APIVersion == "") {
		return nil, c.missingType(data, tm.Kind == "")
	}
	have := schema.FromAPIVersionAndKind(tm.APIVersion, tm.Kind)
	if tm.APIVersion == "" {
		have.Group, have.Version = want.Group, want.Version
	}
	if tm.Kind == "" {
		have.Kind = want.Kind
	}
	switch {
	case have.GroupVersion() != want.GroupVersion():
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the API version in the data (%s) does not match the expected API version (%s)", have.GroupVersion(), want.GroupVersion()))
	case have.Kind != want.Kind && c.res.Custom:
		return data, nil // validation says so, with the field
	case have.Kind != want.Kind:
		return nil, c.otherKind(have)
	}
	return data, nil
}

// typeMeta reads what a document says it is.
func typeMeta(data []byte) (metav1.TypeMeta, error) {
	if version, kind, ok := objectjson.Type(data); ok {
		return metav1.TypeMeta{APIVersion: version, Kind: kind}, nil
	}
	var tm struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	err := utiljson.UnmarshalCaseSensitivePreserveInts(data, &tm)
	return metav1.TypeMeta{APIVersion: tm.APIVersion, Kind: tm.Kind}, err
}

// missingType is the answer to a custom resource that does not say what it is.
func (c *call) missingType(data []byte, kind bool) error {
	what := "apiVersion"
	if kind {
		what = "Kind"
	}
	return c.unrecognized(data, fmt.Errorf("Object '%s' is missing in '%s'", what, data))
}

// otherKind is the answer to an object of another kind. The reference says what its
// converter says, with the names of its internal types.
func (c *call) otherKind(have schema.GroupVersionKind) error {
	want := c.form.GroupVersionKind()
	group := want.Group
	if group == "" {
		group = "core"
	}
	group, _, _ = strings.Cut(group, ".")
	if !c.knows(have) {
		return apierrors.NewBadRequest(fmt.Sprintf("no kind %q is registered for version %q in scheme", have.Kind, have.GroupVersion()))
	}
	return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: converting (%s.%s) to (%s.%s): unknown conversion",
		have.Kind, have.Version, want.Kind, have.Version, have.Kind, group, want.Kind))
}

func (c *call) knows(kind schema.GroupVersionKind) bool {
	g := c.catalogue.Group(kind.Group)
	if g == nil {
		return false
	}
	for _, r := range g.Resources[kind.Version] {
		if r.Kind == kind.Kind {
			return true
		}
	}
	return false
}

// undecodable is the answer to a document whose kind could be read, but nothing else (H70).
func (c *call) undecodable(cause error) error {
	k := c.form.GroupVersionKind()
	return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", k.Kind, k.Version, k.Kind, cause))
}

// summaryMax is how many bytes of a body an error shows.
const summaryMax = 30

// unrecognized is the answer to a document whose kind could not be read (H70).
func (c *call) unrecognized(data []byte, cause error) error {
	return apierrors.NewBadRequest(fmt.Sprintf("the object provided is unrecognized (must be of type %s): %v (%s)", c.form.GroupVersionKind().Kind, cause, summary(data)))
}

func summary(data []byte) string {
	switch {
	case len(data) == 0:
		return "<empty>"
	case data[0] == '{':
		if len(data) > summaryMax {
			return string(data[:summaryMax]) + " ..."
		}
		return string(data)
	case len(data) > summaryMax:
		return hex.EncodeToString(data[:summaryMax]) + " ..."
	}
	return hex.EncodeToString(data)
}

// decodeProtobuf reads an object of a built-in, and gives it the defaults and the checks that
// the form gives to JSON.
func (c *call) decodeProtobuf(data []byte) (runtime.Object, error) {
	if c.form.Typed() == nil || c.s.protobuf == nil {
		return nil, unsupportedMedia("the body of the request was in an unknown format", []string{mediaJSON, mediaYAML})
	}
	want := c.form.GroupVersionKind()
	obj, have, err := c.s.protobuf.Decode(data, &want, c.form.New())
	if err != nil {
		return nil, c.undecodable(err)
	}
	if *have != want {
		return nil, c.otherKind(*have)
	}
	obj.GetObjectKind().SetGroupVersionKind(want)
	again, err := json.Marshal(obj)
	if err != nil {
		return nil, c.undecodable(err)
	}
	c.received = again
	obj, _, err = c.form.Decode(again)
	return obj, err
}
