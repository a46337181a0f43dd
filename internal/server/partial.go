package server

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1beta1 "k8s.io/apimachinery/pkg/apis/meta/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pawl-dev/pawl/storage"
)

// appendPartial appends the PartialObjectMetadata of a version, from its stored bytes: nothing
// is decoded.
func (c *call) appendPartial(dst []byte, v storage.Version) ([]byte, error) {
	dst = append(dst, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/`...)
	dst = append(dst, c.look.as.version...)
	dst = append(dst, `","metadata":`...)
	dst, err := v.AppendMetadata(dst)
	return append(dst, '}'), err
}

// partial is the PartialObjectMetadata of a version.
func (c *call) partial(v storage.Version) (*metav1.PartialObjectMetadata, error) {
	md, err := v.Metadata()
	if err != nil {
		return nil, err
	}
	p := &metav1.PartialObjectMetadata{ObjectMeta: md}
	p.SetGroupVersionKind(c.look.as.groupVersion().WithKind(asMetadata))
	return p, nil
}

// partialOf is that of an object.
func (c *call) partialOf(obj runtime.Object) (*metav1.PartialObjectMetadata, error) {
	acc, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	p := meta.AsPartialObjectMetadata(acc)
	p.SetGroupVersionKind(c.look.as.groupVersion().WithKind(asMetadata))
	return p, nil
}

// partialList is that of a page. In protobuf the versions number the fields differently.
func (c *call) partialList(page *storage.Page) (runtime.Object, error) {
	items := make([]metav1.PartialObjectMetadata, len(page.Items))
	for i, v := range page.Items {
		p, err := c.partial(v)
		if err != nil {
			return nil, err
		}
		items[i] = *p
	}
	kind := c.look.as.groupVersion().WithKind(asMetadataList)
	if c.look.as.version == "v1beta1" {
		list := &metav1beta1.PartialObjectMetadataList{ListMeta: pageMeta(page), Items: items}
		list.SetGroupVersionKind(kind)
		return list, nil
	}
	list := &metav1.PartialObjectMetadataList{ListMeta: pageMeta(page), Items: items}
	list.SetGroupVersionKind(kind)
	return list, nil
}

// appendPartialHead appends a list of metadata up to the bracket that opens its items.
func (c *call) appendPartialHead(dst []byte, page *storage.Page) ([]byte, error) {
	dst = append(dst, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/`...)
	dst = append(dst, c.look.as.version...)
	dst = append(dst, `","metadata":`...)
	md, err := json.Marshal(pageMeta(page))
	dst = append(dst, md...)
	return append(dst, `,"items":[`...), err
}
