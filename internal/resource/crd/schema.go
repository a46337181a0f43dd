package crd

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/pawl-dev/pawl/internal/metadata"
	"github.com/pawl-dev/pawl/internal/objectjson"
	"github.com/pawl-dev/pawl/internal/resource/crd/certain"
	"github.com/pawl-dev/pawl/storage"
)

// A versionSchema is the schema of one version, compiled step by step: each function does its
// work once, when it is first called, and may be called from any goroutine.
type versionSchema struct {
	structural  func() (*structure, error)
	whole       func() (*validator, error)     // of an object
	status      func() (*validator, error)     // of its status; nil if the schema says nothing of it
	rules       func() (*cel.Validator, error) // nil if there are none
	fingerprint func() (storage.Fingerprint, error)
	trees       *objectjson.Trees // of managedFields
}

// A structure is what is needed to read an object.
type structure struct {
	*structuralschema.Structural
	quick *certain.Structure
}

// A validator is the library's, whose words are final, and what knows without asking it that most
// objects are valid.
type validator struct {
	validation.SchemaValidator
	quick *certain.Schema
}

func newValidator(in *apiextensions.JSONSchemaProps) (*validator, error) {
	v, open, err := validation.NewSchemaValidator(in)
	if err != nil {
		return nil, err
	}
	return &validator{v, certain.NewSchema(open)}, nil
}

// readRevision goes up when pawl itself starts to read stored objects differently, so that
// what was stored before is no longer sent as it is.
const readRevision = 1

// newVersionSchema prepares the schema of one version of the resource called id. Props may be nil.
func newVersionSchema(id string, props *apiextensionsv1.JSONSchemaProps, trees *objectjson.Trees) *versionSchema {
	internal := sync.OnceValues(func() (*apiextensions.JSONSchemaProps, error) { return internalSchema(props) })
	s := &versionSchema{trees: trees}
	s.structural = sync.OnceValues(func() (*structure, error) {
		in, err := internal()
		if err != nil {
			return nil, err
		}
		return newStructure(in)
	})
	s.whole = sync.OnceValues(func() (*validator, error) {
		in, err := internal()
		if err != nil {
			return nil, err
		}
		return newValidator(in)
	})
	s.status = sync.OnceValues(func() (*validator, error) {
		in, err := internal()
		if err != nil || in == nil {
			return nil, err
		}
		status, ok := in.Properties["status"]
		if !ok {
			return nil, nil
		}
		return newValidator(&status)
	})
	s.rules = sync.OnceValues(func() (*cel.Validator, error) {
		st, err := s.structural()
		if err != nil {
			return nil, err
		}
		return cel.NewValidator(st.Structural, true, celconfig.PerCallLimit), nil
	})
	s.fingerprint = sync.OnceValues(func() (storage.Fingerprint, error) {
		h := fnv.New64a()
		fmt.Fprintf(h, "%d %s ", readRevision, id)
		if err := json.NewEncoder(h).Encode(props); err != nil {
			return storage.Unfit, err
		}
		return storage.Fingerprint(h.Sum64() | 1), nil // never Unfit
	})
	return s
}

func internalSchema(props *apiextensionsv1.JSONSchemaProps) (*apiextensions.JSONSchemaProps, error) {
	if props == nil {
		return nil, nil
	}
	out := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(props, out, nil); err != nil {
		return nil, fmt.Errorf("crd: the schema cannot be read: %w", err)
	}
	return out, nil
}

func newStructure(in *apiextensions.JSONSchemaProps) (*structure, error) {
	if in == nil {
		return &structure{}, nil
	}
	made, err := structuralschema.NewStructural(in)
	if err != nil {
		return nil, fmt.Errorf("crd: the schema is not structural: %w", err)
	}
	s := &structure{Structural: made.DeepCopy()} // its defaults are shared with in
	if err := defaulting.PruneDefaults(s.Structural); err != nil {
		return nil, fmt.Errorf("crd: the defaults of the schema cannot be pruned: %w", err)
	}
	s.quick = certain.NewStructure(s.Structural)
	return s, nil
}

// A source is where an object comes from: what is wrong with its metadata is an error when a
// client sent it, and dropped when it was stored (rule C50).
type source uint8

const (
	client source = iota
	store
)

// shape gives obj the form that the schema asks for, in place: metadata as ObjectMeta (rule
// C50), unknown fields pruned (C46 to C49), nulls dropped and defaults filled in (C51 to C53). It
// returns the paths of the fields of a client's object that it dropped.
//
// What comes as it should be, which is what most clients send and all that was stored under the
// same schema, is only looked at.
func (v *versionSchema) shape(obj map[string]any, from source) (unknown []string, err error) {
	st, err := v.structural()
	if err != nil || st.fill(obj, from, v.trees) {
		return nil, err
	}
	return st.reshape(obj, from)
}

// reshape is shape for objects about which nothing is known.
func (s *structure) reshape(obj map[string]any, from source) (unknown []string, err error) {
	lenient, track := from == store, from == client
	meta, found, unknown, err := objectmeta.GetObjectMetaWithOptions(obj, objectmeta.ObjectMetaOptions{
		DropMalformedFields: lenient, ReturnUnknownFieldPaths: track,
	})
	if err != nil {
		return nil, err
	}
	unknown = append(unknown, pruning.PruneWithOptions(obj, s.Structural, true,
		structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: track})...)
	defaulting.PruneNonNullableNullsWithoutDefaults(obj, s.Structural)
	wrong, paths := objectmeta.CoerceWithOptions(nil, obj, s.Structural, false, objectmeta.CoerceOptions{
		DropInvalidFields: lenient, ReturnUnknownFieldPaths: track,
	})
	if wrong != nil {
		return nil, wrong
	}
	unknown = append(unknown, paths...)
	if found {
		if lenient && meta.Generation == 0 {
			meta.Generation = 1 // rule C112
		}
		if err := objectmeta.SetObjectMeta(obj, meta); err != nil {
			return nil, err
		}
	}
	defaulting.Default(obj, s.Structural)
	return unknown, nil
}

// fill fills in what obj lacks and drops what says nothing, in place, and says whether that was all
// it needed. If not, it did nothing.
func (s *structure) fill(obj map[string]any, from source, trees *objectjson.Trees) bool {
	meta, found := obj["metadata"]
	order := s.quick.Order(obj)
	if order == certain.Disorder || found && !metadata.Tidy(meta, trees.Knows) {
		return false
	}
	if m, ok := meta.(map[string]any); ok && from == store && m["generation"] == nil {
		m["generation"] = int64(1) // rule C112
	}
	if order == certain.Spare {
		defaulting.PruneNonNullableNullsWithoutDefaults(obj, s.Structural)
	}
	if order != certain.Full {
		defaulting.Default(obj, s.Structural)
	}
	return true
}

// fits says that obj is as it would be read if it were written.
func (s *structure) fits(obj map[string]any, trees *objectjson.Trees) bool {
	if s.quick.Order(obj) != certain.Full || !metadata.Plain(obj["metadata"], trees.Knows) {
		return false
	}
	for name, value := range obj {
		if name != "metadata" && !objectjson.Stable(value) {
			return false
		}
	}
	return true
}

// prune drops from obj, in place, what the schema does not know; nothing is filled in.
func (v *versionSchema) prune(obj map[string]any) error {
	st, err := v.structural()
	if err != nil {
		return err
	}
	pruning.Prune(obj, st.Structural, true)
	defaulting.PruneNonNullableNullsWithoutDefaults(obj, st.Structural)
	return nil
}
