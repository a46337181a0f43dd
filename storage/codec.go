package storage

import (
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
)

// A Fingerprint stands for everything that decides how stored JSON is read: the kind, its
// version, and what decoding prunes and fills in. Two codecs with equal fingerprints read
// the same bytes as the same object.
type Fingerprint uint64

// Unfit marks stored JSON that must be decoded before anyone may see it.
const Unfit Fingerprint = 0

// A Codec turns the objects of one version of one resource into JSON and back. It is safe
// for concurrent use.
type Codec interface {
	// Encode returns obj as it is to be stored, as JSON without white space that begins with
	// apiVersion and kind, in either order, and then metadata; and the fingerprint under
	// which that JSON may be sent as it is, [Unfit] if it may not. obj carries no
	// resourceVersion, and is not changed.
	Encode(obj runtime.Object) ([]byte, Fingerprint, error)

	// Decode returns the object that was stored as data, in this codec's version, pruned
	// and defaulted as reading asks for. Its resourceVersion is not set. The caller owns it.
	Decode(data []byte) (runtime.Object, error)

	// Fingerprint returns the fingerprint of stored JSON that is this codec's own form
	// already, so that it may be sent without decoding; [Unfit] if none is.
	Fingerprint() Fingerprint
}

// FieldsFunc returns the selectable fields of obj beyond metadata.name and
// metadata.namespace.
type FieldsFunc func(obj runtime.Object) (fields.Set, error)
