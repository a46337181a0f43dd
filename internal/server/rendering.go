package server

import (
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// What can be shown of objects in place of themselves (rules H54, H55).
const (
	asMetadata     = "PartialObjectMetadata"
	asMetadataList = "PartialObjectMetadataList"
	asTable        = "Table"
)

// A rendering is what is shown of objects: its zero value is the objects themselves.
type rendering struct {
	kind    string // asMetadata, asMetadataList or asTable
	version string // of meta.k8s.io: v1 or v1beta1
}

// metadata reports whether only metadata is shown.
func (a rendering) metadata() bool { return a.kind == asMetadata || a.kind == asMetadataList }

func (a rendering) groupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: metav1.GroupName, Version: a.version}
}

// rendering is what the clause asks to be shown, if that exists.
func (c clause) rendering() (a rendering, ok bool) {
	kind, asked := c.params["as"]
	group, grouped := c.params["g"]
	version, versioned := c.params["v"]
	if !asked && !grouped && !versioned {
		return rendering{}, true
	}
	a = rendering{kind: kind, version: version}
	known := a.metadata() || kind == asTable
	return a, known && group == metav1.GroupName && (version == "v1" || version == "v1beta1")
}

// The values of includeObject, which says what a row of a table has beside its cells (rule
// H218).
var included = []string{"", string(metav1.IncludeMetadata), string(metav1.IncludeObject), string(metav1.IncludeNone)}

// checkRendering says whether what the client asked for can be made of what the call answers
// with. It is asked before the call does anything.
func (c *call) checkRendering() error {
	list := c.rt.verb == "list" || c.rt.verb == "deletecollection"
	switch a := c.look.as; {
	case a.kind == asMetadata && list:
		return notAcceptable(fmt.Sprintf("you requested %s, but the requested object is a list (%s)", a.kind, c.goType(true)), nil)
	case a.kind == asMetadataList && !list:
		return notAcceptable(fmt.Sprintf("you requested %s, but the requested object is not a list (%s)", a.kind, c.goType(false)), nil)
	case a.kind == asTable:
		return checkIncluded(c.query["includeObject"])
	}
	return nil
}

func checkIncluded(values []string) error {
	if len(values) == 0 {
		return nil
	}
	for _, v := range included {
		if values[0] == v {
			return nil
		}
	}
	return apierrors.NewBadRequest(fmt.Sprintf(
		"Unable to convert to Table as requested: includeObject: Invalid value: %q: must be 'Metadata', 'Object', 'None', or empty", values[0]))
}

// goType is what the reference calls the type of an answer.
func (c *call) goType(list bool) string {
	suffix := ""
	if list {
		suffix = "List"
	}
	if c.res.Custom {
		return "*unstructured.Unstructured" + suffix
	}
	group, _, _ := strings.Cut(c.res.Group, ".")
	if group == "" {
		group = "core"
	}
	return "*" + group + "." + c.res.Kind + suffix
}
