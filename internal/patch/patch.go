package patch

import (
	"encoding/json"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
)

// The media types of [Apply].
const (
	JSON           = "application/json-patch+json"
	Merge          = "application/merge-patch+json"
	StrategicMerge = "application/strategic-merge-patch+json"
)

// Apply returns current, the JSON of an object, as the patch document changes it. The findings
// are what strict field validation would refuse in the document, such as a field that stands
// there twice; what it would refuse in the result is for the decoder of the result to tell.
// The Go struct typed guides a strategic merge and is not changed; the other types need none.
//
// The error is an API status, with the texts of rules H133 and H134.
func Apply(mediaType string, current, document []byte, typed runtime.Object) (patched []byte, findings []string, err error) {
	if err := Check(mediaType, document); err != nil {
		return nil, nil, err
	}
	switch mediaType {
	case JSON:
		return applyJSON(current, document)
	case Merge:
		return applyMerge(current, document)
	default:
		return applyStrategic(current, document, typed)
	}
}

// Check refuses a document that cannot be a patch of that media type whatever the object. It
// finds what needs no object: that the type is one of ours, and that the document is JSON.
func Check(mediaType string, document []byte) error {
	switch mediaType {
	case JSON, Merge, StrategicMerge:
	default:
		return errors.NewInternalError(fmt.Errorf("patch: media type %q should have been refused by its route", mediaType))
	}
	if !json.Valid(document) {
		return errors.NewBadRequest("invalid JSON patch")
	}
	return nil
}

// Invalid is the answer when the patched object does not decode, or is refused for what strict
// field validation found: one cause, at field patch, with the text (rules H68, H133). What it
// shows is what the reference shows: the patched object, or of a strategic merge the document.
func Invalid(mediaType string, patched, document []byte, text string) error {
	shown := string(patched)
	if mediaType == StrategicMerge {
		var fields map[string]any
		if kjson.UnmarshalCaseSensitivePreserveInts(document, &fields) == nil {
			shown = fmt.Sprintf("%+v", fields)
		}
	}
	return errors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{
		field.Invalid(field.NewPath("patch"), shown, text),
	})
}

// misfit is the answer to a patch that is well formed and does not fit the object. The
// reference does not say why (rule H133).
func misfit() error {
	return errors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", "", 0, false)
}

// decode reads a patch document into v and returns what strict decoding finds in it, each
// finding with the prefix.
func decode(document []byte, v any, prefix string) (findings []string, err error) {
	strict, err := kjson.UnmarshalStrict(document, v)
	for _, e := range strict {
		findings = append(findings, prefix+e.Error())
	}
	return findings, err
}

// contained runs f, which calls into a patch library, and reports whether it came back: the
// libraries panic on some documents, such as a replacement of the whole object by nothing.
func contained(f func()) (returned bool) {
	defer func() { _ = recover() }()
	f()
	return true
}
