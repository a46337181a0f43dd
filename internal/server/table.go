package server

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pawl-dev/pawl/internal/table"
	"github.com/pawl-dev/pawl/storage"
)

// columns are those of what the call answers with: of a subresource that is a kind of its own,
// of the resource, or those that any kind has (rule H219).
func (c *call) columns() *table.Columns {
	if kind := c.form.GroupVersionKind(); kind != c.ver.Form.GroupVersionKind() {
		return table.Of(kind)
	}
	if c.ver.Columns != nil {
		return c.ver.Columns()
	}
	return table.Default()
}

// appendTableHead appends a table up to the bracket that opens its rows. The columns are
// described once: a client that watches knows them after the first event (rule H117).
func (c *call) appendTableHead(dst []byte, md metav1.ListMeta) ([]byte, error) {
	head := struct {
		Kind       string                         `json:"kind"`
		APIVersion string                         `json:"apiVersion"`
		Metadata   metav1.ListMeta                `json:"metadata"`
		Columns    []metav1.TableColumnDefinition `json:"columnDefinitions"`
	}{asTable, c.look.as.groupVersion().String(), md, nil}
	if !c.headed {
		head.Columns, c.headed = c.columns().Definitions, true
	}
	data, err := json.Marshal(head)
	if err != nil {
		return dst, err
	}
	dst = append(dst, data[:len(data)-1]...)
	return append(dst, `,"rows":[`...), nil
}

// appendTable appends the table of one version.
func (c *call) appendTable(dst []byte, v storage.Version) ([]byte, error) {
	md := metav1.ListMeta{}
	if v.Revision() != 0 {
		md.ResourceVersion = v.Revision().String()
	}
	dst, err := c.appendTableHead(dst, md)
	if err != nil {
		return dst, err
	}
	dst, err = c.appendRow(dst, v)
	return append(dst, "]}"...), err
}

// appendRow appends the row of a version (rule H218).
func (c *call) appendRow(dst []byte, v storage.Version) ([]byte, error) {
	obj, err := v.Object()
	if err != nil {
		return dst, err
	}
	return c.appendCells(dst, obj, func(dst []byte) ([]byte, error) {
		switch metav1.IncludeObjectPolicy(c.query.Get("includeObject")) {
		case metav1.IncludeNone:
			return append(dst, "null"...), nil
		case metav1.IncludeObject:
			return c.appendWhole(dst, v, false)
		}
		return c.appendPartial(dst, v)
	})
}

// appendTableOf appends the table of an object that is not stored. The mark at the end of the
// initial events is in its metadata, so that is there even if nobody asked for any.
func (c *call) appendTableOf(dst []byte, obj runtime.Object) ([]byte, error) {
	acc, err := meta.Accessor(obj)
	if err != nil {
		return dst, err
	}
	if dst, err = c.appendTableHead(dst, metav1.ListMeta{ResourceVersion: acc.GetResourceVersion()}); err != nil {
		return dst, err
	}
	dst, err = c.appendCells(dst, obj, func(dst []byte) ([]byte, error) {
		switch metav1.IncludeObjectPolicy(c.query.Get("includeObject")) {
		case metav1.IncludeObject:
			data, err := c.form.Encode(obj)
			return append(dst, data...), err
		case metav1.IncludeNone:
			if acc.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "" {
				return append(dst, "null"...), nil
			}
		}
		p, err := c.partialOf(obj)
		if err != nil {
			return dst, err
		}
		data, err := json.Marshal(p)
		return append(dst, data...), err
	})
	return append(dst, "]}"...), err
}

// appendCells appends a row with the cells of an object, and what stands beside them.
func (c *call) appendCells(dst []byte, obj runtime.Object, beside func([]byte) ([]byte, error)) ([]byte, error) {
	row := c.columns().Row(obj, c.s.now())
	cells, err := json.Marshal(row.Cells)
	if err != nil {
		return dst, err
	}
	dst = append(dst, `{"cells":`...)
	dst = append(dst, cells...)
	if len(row.Conditions) > 0 {
		conditions, err := json.Marshal(row.Conditions)
		if err != nil {
			return dst, err
		}
		dst = append(dst, `,"conditions":`...)
		dst = append(dst, conditions...)
	}
	dst = append(dst, `,"object":`...)
	dst, err = beside(dst)
	return append(dst, '}'), err
}
