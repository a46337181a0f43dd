package metadata

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Born says that ValidateObjectMetaAccessor finds nothing wrong with the metadata of an object, whose
// name is as valid says.
func Born(metadata map[string]any, namespaced bool, valid apivalidation.ValidateNameFunc) bool {
	if !plain(metadata, anything) {
		return false
	}
	name, _ := metadata["name"].(string)
	prefix, _ := metadata["generateName"].(string)
	if name == "" || len(valid(name, false)) > 0 || prefix != "" && len(valid(prefix, true)) > 0 {
		return false
	}
	namespace, _ := metadata["namespace"].(string)
	if namespaced != (namespace != "") || namespaced && len(apivalidation.ValidateNamespaceName(namespace, false)) > 0 {
		return false
	}
	finalizers, _ := metadata["finalizers"].([]any)
	for _, f := range finalizers {
		f := f.(string)
		if f == metav1.FinalizerOrphanDependents || f == metav1.FinalizerDeleteDependents || !isLabelKey(f) {
			return false
		}
	}
	generation, _ := metadata["generation"].(int64)
	return generation >= 0 && lawful(metadata)
}

// Succeeds says that ValidateObjectMetaAccessorUpdate finds nothing wrong with metadata in place of old.
func Succeeds(metadata, old map[string]any) bool {
	if !plain(metadata, anything) || !plain(old, anything) || metadata["resourceVersion"] == nil {
		return false
	}
	for _, name := range []string{"deletionTimestamp", "deletionGracePeriodSeconds"} {
		if metadata[name] != nil || old[name] != nil {
			return false
		}
	}
	for _, name := range []string{"name", "namespace", "uid", "creationTimestamp"} {
		if metadata[name] != old[name] {
			return false
		}
	}
	generation, _ := metadata["generation"].(int64)
	before, _ := old["generation"].(int64)
	return generation >= 0 && generation >= before && lawful(metadata)
}

// anything goes in a fieldsV1: the validation does not look into it.
func anything(map[string]any) bool { return true }

// lawful is about what is the same for new objects and for changed ones. Metadata is plain.
func lawful(metadata map[string]any) bool {
	labels, _ := metadata["labels"].(map[string]any)
	for name, value := range labels {
		if !isLabelKey(name) || !isLabelValue(value.(string)) {
			return false
		}
	}
	annotations, _ := metadata["annotations"].(map[string]any)
	size := 0
	for name, value := range annotations {
		size += len(name) + len(value.(string))
		if !isLabelKey(name) && !isLabelKey(strings.ToLower(name)) {
			return false
		}
	}
	owners, _ := metadata["ownerReferences"].([]any)
	entries, _ := metadata["managedFields"].([]any)
	return size <= apivalidation.TotalAnnotationSizeLimitB && lawfulOwners(owners) && lawfulEntries(entries)
}

func lawfulOwners(owners []any) bool {
	controllers := 0
	for _, o := range owners {
		o := o.(map[string]any)
		gv, err := schema.ParseGroupVersion(o["apiVersion"].(string))
		if err != nil || gv.Version == "" || o["kind"] == "" || o["kind"] == "Event" || o["name"] == "" || o["uid"] == "" {
			return false
		}
		if o["controller"] == true {
			controllers++
		}
	}
	return controllers <= 1
}

func lawfulEntries(entries []any) bool {
	for _, e := range entries {
		e := e.(map[string]any)
		if op := e["operation"]; op != "Apply" && op != "Update" {
			return false
		}
		if t := e["fieldsType"]; t != nil && t != "FieldsV1" {
			return false
		}
		manager, _ := e["manager"].(string)
		subresource, _ := e["subresource"].(string)
		if !isPrintable(manager) || len(manager) > metavalidation.FieldManagerMaxLength ||
			len(subresource) > metavalidation.MaxSubresourceNameLength {
			return false
		}
	}
	return true
}

// isPrintable is about ASCII; what else can be printed is left to the library.
func isPrintable(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// isLabelKey knows the shape that most keys have, and asks the library about others.
func isLabelKey(key string) bool {
	prefix, name, found := strings.Cut(key, "/")
	if !found {
		name = key
	}
	if isWord(name, labelMax, "-_.") && (!found || isDomain(prefix)) {
		return true
	}
	return len(content.IsLabelKey(key)) == 0
}

// isDomain knows domains in which nothing but letters, digits and single dots is, but not all.
func isDomain(s string) bool {
	if s == "" || len(s) > prefixMax || s[0] == '.' || s[len(s)-1] == '.' || strings.Contains(s, "..") {
		return false
	}
	for i := range len(s) {
		if c := s[i]; c != '.' && (!isAlphanumeric(c) || 'A' <= c && c <= 'Z') {
			return false
		}
	}
	return true
}

func isLabelValue(value string) bool {
	return value == "" || isWord(value, labelMax, "-_.") || len(content.IsLabelValue(value)) == 0
}

const (
	labelMax  = 63  // of the name in a key, and of a value
	prefixMax = 253 // of the domain before it
)

// isWord says whether s is made of letters and digits, with others only between them.
func isWord(s string, most int, others string) bool {
	if s == "" || len(s) > most || !isAlphanumeric(s[0]) || !isAlphanumeric(s[len(s)-1]) {
		return false
	}
	for i := range len(s) {
		if !isAlphanumeric(s[i]) && strings.IndexByte(others, s[i]) < 0 {
			return false
		}
	}
	return true
}

func isAlphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}
