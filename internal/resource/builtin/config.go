package builtin

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pawl-dev/pawl/registry"
)

// dataMaxBytes is how much the values of one ConfigMap or Secret may hold (rule B33).
const dataMaxBytes = 1 << 20

const frozen = "field is immutable when `immutable` is set"

// redacted stands in error texts where the reference keeps contents to itself.
const redacted = "<secret contents redacted>"

var dataPath = field.NewPath("data")

// configMaps is what holds for ConfigMaps (rules B33, B36).
var configMaps = rules[*corev1.ConfigMap]{
	policy: registry.Policy{Namespaced: true, UnconditionalUpdate: true},
	wrong:  wrongConfigMap,
	wrongAfter: func(cm, old *corev1.ConfigMap) (errs field.ErrorList) {
		if !is(old.Immutable) {
			return nil
		}
		errs = thawed(cm.Immutable)
		if !maps.Equal(cm.Data, old.Data) {
			errs = append(errs, field.Forbidden(dataPath, frozen))
		}
		if !maps.EqualFunc(cm.BinaryData, old.BinaryData, bytes.Equal) {
			errs = append(errs, field.Forbidden(field.NewPath("binaryData"), frozen))
		}
		return errs
	},
}

func wrongConfigMap(cm *corev1.ConfigMap) field.ErrorList {
	errs, size := wrongFinalizers(cm), 0
	for _, key := range slices.Sorted(maps.Keys(cm.Data)) {
		errs = append(errs, wrongKey(key, dataPath)...)
		if _, twice := cm.BinaryData[key]; twice {
			errs = append(errs, field.Invalid(dataPath.Key(key), key, "duplicate of key present in binaryData"))
		}
		size += len(cm.Data[key])
	}
	for _, key := range slices.Sorted(maps.Keys(cm.BinaryData)) {
		errs = append(errs, wrongKey(key, field.NewPath("binaryData"))...)
		size += len(cm.BinaryData[key])
	}
	if size > dataMaxBytes {
		// The empty path is the whole object; clients see it as [].
		errs = append(errs, field.TooLong(field.NewPath(""), "", dataMaxBytes))
	}
	return errs
}

// secrets is what holds for Secrets (rules B33 to B37).
var secrets = rules[*corev1.Secret]{
	policy: registry.Policy{Namespaced: true, UnconditionalUpdate: true, Sensitive: true},
	defaults: func(s *corev1.Secret) {
		if s.Type == "" {
			s.Type = corev1.SecretTypeOpaque
		}
		if len(s.StringData) > 0 && s.Data == nil {
			s.Data = make(map[string][]byte, len(s.StringData))
		}
		for key, value := range s.StringData {
			s.Data[key] = []byte(value)
		}
		s.StringData = nil
	},
	wrong: func(s *corev1.Secret) field.ErrorList {
		errs, size := wrongFinalizers(s), 0
		for _, key := range slices.Sorted(maps.Keys(s.Data)) {
			errs = append(errs, wrongKey(key, dataPath)...)
			size += len(s.Data[key])
		}
		if size > dataMaxBytes {
			errs = append(errs, field.TooLong(dataPath, "", dataMaxBytes))
		}
		return append(errs, wrongContents(s)...)
	},
	wrongAfter: func(s, old *corev1.Secret) (errs field.ErrorList) {
		if s.Type != old.Type {
			errs = append(errs, field.Invalid(field.NewPath("type"), s.Type, validation.FieldImmutableErrorMsg))
		}
		if !is(old.Immutable) {
			return errs
		}
		errs = append(errs, thawed(s.Immutable)...)
		if !maps.EqualFunc(s.Data, old.Data, bytes.Equal) {
			errs = append(errs, field.Forbidden(dataPath, frozen))
		}
		return errs
	},
	warn: func(s *corev1.Secret) []string {
		if s.Type != corev1.SecretTypeTLS {
			return nil
		}
		if _, err := tls.X509KeyPair(s.Data[corev1.TLSCertKey], s.Data[corev1.TLSPrivateKeyKey]); err != nil {
			return []string{err.Error()}
		}
		return nil
	},
}

// wrongContents says what a secret lacks for its type (rule B35).
func wrongContents(s *corev1.Secret) field.ErrorList {
	switch s.Type {
	case corev1.SecretTypeServiceAccountToken:
		if s.Annotations[corev1.ServiceAccountNameKey] == "" {
			path := field.NewPath("metadata", "annotations").Key(corev1.ServiceAccountNameKey)
			return field.ErrorList{field.Required(path, "")}
		}
	case corev1.SecretTypeDockercfg:
		return wrongObject(s, corev1.DockerConfigKey)
	case corev1.SecretTypeDockerConfigJson:
		return wrongObject(s, corev1.DockerConfigJsonKey)
	case corev1.SecretTypeBasicAuth:
		if missing := lacking(s, corev1.BasicAuthUsernameKey, corev1.BasicAuthPasswordKey); len(missing) == 2 {
			return missing
		}
	case corev1.SecretTypeSSHAuth:
		if len(s.Data[corev1.SSHAuthPrivateKey]) == 0 {
			return field.ErrorList{field.Required(dataPath.Key(corev1.SSHAuthPrivateKey), "")}
		}
	case corev1.SecretTypeTLS:
		return lacking(s, corev1.TLSCertKey, corev1.TLSPrivateKeyKey)
	}
	return nil
}

// lacking says which of the keys a secret does not have; empty values count as there.
func lacking(s *corev1.Secret, keys ...string) (errs field.ErrorList) {
	for _, key := range keys {
		if _, there := s.Data[key]; !there {
			errs = append(errs, field.Required(dataPath.Key(key), ""))
		}
	}
	return errs
}

// wrongObject says that the value of key is missing, or no JSON object.
func wrongObject(s *corev1.Secret, key string) field.ErrorList {
	if missing := lacking(s, key); missing != nil {
		return missing
	}
	var object map[string]any
	if err := json.Unmarshal(s.Data[key], &object); err != nil {
		return field.ErrorList{field.Invalid(dataPath.Key(key), redacted, err.Error())}
	}
	return nil
}

// wrongKey says why a key cannot be a file name.
func wrongKey(key string, path *field.Path) (errs field.ErrorList) {
	for _, why := range utilvalidation.IsConfigMapKey(key) {
		errs = append(errs, field.Invalid(path.Key(key), key, why))
	}
	return errs
}

// thawed says that an object that was immutable no longer wants to be.
func thawed(immutable *bool) field.ErrorList {
	if is(immutable) {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("immutable"), frozen)}
}

func is(b *bool) bool { return b != nil && *b }
