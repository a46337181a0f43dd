package server

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/storage"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// listOf is a page as an object: of the resource's list type, or a list of metadata.
func (c *call) listOf(page *storage.Page) (runtime.Object, error) {
	if c.look.as.metadata() {
		return c.partialList(page)
	}
	kind := c.form.GroupVersionKind().GroupVersion().WithKind(c.listKind())
	list, err := c.s.scheme.New(kind)
	if err != nil {
		return nil, err
	}
	items := make([]runtime.Object, len(page.Items))
	for i, v := range page.Items {
		if items[i], err = v.Object(); err != nil {
			return nil, err
		}
	}
	if err := meta.SetList(list, items); err != nil {
		return nil, err
	}
	acc, err := meta.ListAccessor(list)
	if err != nil {
		return nil, err
	}
	md := pageMeta(page)
	acc.SetResourceVersion(md.ResourceVersion)
	acc.SetContinue(md.Continue)
	acc.SetRemainingItemCount(md.RemainingItemCount)
	list.GetObjectKind().SetGroupVersionKind(kind)
	return list, nil
}

// watchMedia is the Content-Type of a watch (rule H105).
func (c *call) watchMedia() string {
	if c.look.media == mediaProtobuf {
		return mediaProtobuf + ";stream=watch"
	}
	return mediaJSON
}

// appendProtobufEvent appends a watch event as protobuf streams have them: a length in four
// bytes, then the event without an envelope, with the object in one inside.
func (c *call) appendProtobufEvent(dst []byte, kind string, obj runtime.Object) ([]byte, error) {
	raw, err := c.protobuf(obj)
	if err != nil {
		return dst, err
	}
	e := metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: raw}}
	data, err := e.Marshal()
	if err != nil {
		return dst, err
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(data)))
	return append(dst, data...), nil
}

// protobuf is an object in its envelope (rule H52).
func (c *call) protobuf(obj runtime.Object) ([]byte, error) {
	if _, isStatus := obj.(*metav1.Status); !isStatus && obj.GetObjectKind().GroupVersionKind().Empty() {
		obj.GetObjectKind().SetGroupVersionKind(c.form.GroupVersionKind())
	}
	var buf bytes.Buffer
	err := c.s.protobuf.Encode(obj, &buf)
	return buf.Bytes(), err
}

// setBookmark makes an empty object a bookmark (rule H112).
func setBookmark(obj runtime.Object, rev kv.Revision, annotations map[string]string, kind schema.GroupVersionKind) error {
	acc, err := meta.Accessor(obj)
	if err != nil {
		return fmt.Errorf("a bookmark of %s: %w", kind, err)
	}
	obj.GetObjectKind().SetGroupVersionKind(kind)
	acc.SetResourceVersion(rev.String())
	acc.SetAnnotations(annotations)
	return nil
}
