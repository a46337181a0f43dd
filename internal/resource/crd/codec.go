package crd

import (
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pawl-dev/pawl/internal/objectjson"
	"github.com/pawl-dev/pawl/internal/resource/crd/certain"
	"github.com/pawl-dev/pawl/storage"
)

// A codec reads and writes objects of one version, stored as objects of the storage version
// (rules C81 to C84).
type codec struct {
	*definition
	version string
}

// Encode writes the storage version. What is written may be sent as it is if it was this
// version, and reading it would fill in nothing: a default that is missing now (of a status
// that was just dropped, say) is shown by every reading, but not stored, so that another
// default can take its place later (rule C51).
func (c *codec) Encode(obj runtime.Object) ([]byte, storage.Fingerprint, error) {
	u, err := asUnstructured(obj)
	if err != nil {
		return nil, storage.Unfit, err
	}
	if c.version != c.storage {
		data, err := c.encodeConverted(u)
		return data, storage.Unfit, err
	}
	data, err := encode(c.gvk(c.storage), u.Object, c.trees)
	if err != nil {
		return nil, storage.Unfit, err
	}
	full, err := c.defaulted(u)
	if err != nil || !full {
		return data, storage.Unfit, err
	}
	return data, c.Fingerprint(), nil
}

func (c *codec) encodeConverted(u *unstructured.Unstructured) ([]byte, error) {
	content := u.DeepCopy().Object
	content["apiVersion"] = c.gvk(c.storage).GroupVersion().String()
	if err := c.schemas[c.storage].prune(content); err != nil {
		return nil, err
	}
	return encode(c.gvk(c.storage), content, c.trees)
}

// defaulted says whether u holds all its defaults.
func (c *codec) defaulted(u *unstructured.Unstructured) (bool, error) {
	st, err := c.schemas[c.version].structural()
	if err != nil {
		return false, err
	}
	if order := st.quick.Order(u.Object); order <= certain.Lacking {
		return order == certain.Full, nil
	}
	full := u.DeepCopy().Object
	defaulting.Default(full, st.Structural)
	return objectjson.EqualObjects(full, u.Object), nil
}

// Decode reads what was stored in any version of the definition: as that version, which prunes
// and defaults; another version then takes what it knows of that, and no more. Its own
// defaults fill in what clients send in it, not what it reads: so the reference does.
func (c *codec) Decode(data []byte) (runtime.Object, error) {
	content, err := c.trees.DecodeLast(data)
	if err != nil {
		return nil, err
	}
	stored, err := c.storedVersion(content)
	if err != nil {
		return nil, err
	}
	if _, err := c.schemas[stored].shape(content, store); err != nil {
		return nil, err
	}
	content["kind"] = c.names.Kind
	if stored != c.version {
		content["apiVersion"] = c.gvk(c.version).GroupVersion().String()
		if err := c.schemas[c.version].prune(content); err != nil {
			return nil, err
		}
	}
	return &unstructured.Unstructured{Object: content}, nil
}

// storedVersion returns the version that content was stored in.
func (c *codec) storedVersion(content map[string]any) (string, error) {
	text, _ := content["apiVersion"].(string)
	gv, err := schema.ParseGroupVersion(text)
	if err != nil {
		return "", err
	}
	if c.schemas[gv.Version] == nil || gv.Group != c.Spec.Group {
		return "", fmt.Errorf("crd: an object is stored as %q, which %s does not define; add that version, not served, to read it", text, c.Name)
	}
	return gv.Version, nil
}

// Fingerprint covers the kind and the schema of this version.
func (c *codec) Fingerprint() storage.Fingerprint {
	if c.version != c.storage {
		return storage.Unfit
	}
	fp, err := c.schemas[c.version].fingerprint()
	if err != nil {
		return storage.Unfit
	}
	return fp
}
