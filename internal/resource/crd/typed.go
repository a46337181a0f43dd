package crd

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"

	"github.com/pawl-dev/pawl/storage"
)

// DefinitionKind is what kind and apiVersion of a definition say.
var DefinitionKind = apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition")

// DefinitionResource is the resource of definitions.
var DefinitionResource = apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions").GroupResource()

// convert knows how the version that is stored becomes the one that the library checks, and back.
// It is made when it is first needed, and never changes.
var convert = sync.OnceValue(func() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{apiextensions.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(s); err != nil {
			panic(fmt.Sprintf("crd: the types of apiextensions.k8s.io do not register: %v", err))
		}
	}
	return s
})

// internal returns def as the library checks it. What it returns shares nothing with def that
// anybody changes.
func internal(def *apiextensionsv1.CustomResourceDefinition) (*apiextensions.CustomResourceDefinition, error) {
	out := &apiextensions.CustomResourceDefinition{}
	if err := convert().Convert(def.DeepCopy(), out, nil); err != nil {
		return nil, err
	}
	return out, nil
}

// normalize returns def as the reference stores it: its JSON values (defaults, enums,
// examples) in one spelling, so that two definitions that say the same are equal.
func normalize(def *apiextensionsv1.CustomResourceDefinition) (*apiextensionsv1.CustomResourceDefinition, error) {
	in, err := internal(def)
	if err != nil {
		return nil, err
	}
	out := &apiextensionsv1.CustomResourceDefinition{}
	if err := convert().Convert(in, out, nil); err != nil {
		return nil, err
	}
	out.SetGroupVersionKind(DefinitionKind)
	return out, nil
}

// DefinitionForm is how definitions look to clients.
type DefinitionForm struct{}

// GroupVersionKind returns [DefinitionKind].
func (DefinitionForm) GroupVersionKind() schema.GroupVersionKind { return DefinitionKind }

// New returns an empty definition.
func (DefinitionForm) New() runtime.Object { return &apiextensionsv1.CustomResourceDefinition{} }

// Typed returns an empty definition.
func (DefinitionForm) Typed() runtime.Object { return &apiextensionsv1.CustomResourceDefinition{} }

// Patches are those of every built-in.
func (DefinitionForm) Patches() []string {
	return []string{string(types.JSONPatchType), string(types.MergePatchType), string(types.StrategicMergePatchType), string(types.ApplyYAMLPatchType)}
}

// Decode fills in the defaults of rule C4.
func (DefinitionForm) Decode(data []byte) (runtime.Object, []string, error) {
	def := &apiextensionsv1.CustomResourceDefinition{}
	strict, err := kjson.UnmarshalStrict(data, def)
	if err != nil {
		return nil, nil, err
	}
	apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(def)
	def, err = normalize(def)
	if err != nil {
		return nil, nil, err
	}
	var findings []string
	for _, s := range strict {
		findings = append(findings, s.Error())
	}
	return def, findings, nil
}

// Encode writes kind and apiVersion first.
func (DefinitionForm) Encode(obj runtime.Object) ([]byte, error) { return encodeDefinition(obj) }

var errNoDefinition = errors.New("crd: the object is not a CustomResourceDefinition")

func encodeDefinition(obj runtime.Object) ([]byte, error) {
	def, ok := obj.(*apiextensionsv1.CustomResourceDefinition)
	if !ok {
		return nil, errNoDefinition
	}
	with := *def
	with.SetGroupVersionKind(DefinitionKind)
	return json.Marshal(&with)
}

// DefinitionCodec stores definitions as they are.
type DefinitionCodec struct{}

// definitionFingerprint goes up when stored definitions are read differently, in the defaults
// that are filled in, say.
const definitionFingerprint storage.Fingerprint = 1

// Encode writes the JSON that clients see.
func (DefinitionCodec) Encode(obj runtime.Object) ([]byte, storage.Fingerprint, error) {
	data, err := encodeDefinition(obj)
	return data, definitionFingerprint, err
}

// Decode fills in defaults, as every reading of a built-in does.
func (DefinitionCodec) Decode(data []byte) (runtime.Object, error) {
	def := &apiextensionsv1.CustomResourceDefinition{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, def); err != nil {
		return nil, err
	}
	apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(def)
	def.SetGroupVersionKind(DefinitionKind)
	return def, nil
}

// Fingerprint is the same for all definitions.
func (DefinitionCodec) Fingerprint() storage.Fingerprint { return definitionFingerprint }
