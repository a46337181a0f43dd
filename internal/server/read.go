package server

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pawl-dev/pawl/registry"
	"github.com/pawl-dev/pawl/storage"
)

var emptyKind schema.GroupVersionKind

// get answers with one object (rule H93).
func (c *call) get() error {
	v, err := c.store.Get(c.r.Context(), c.namespace(), c.rt.name, c.query.Get("resourceVersion"))
	if err != nil {
		return err
	}
	return c.sendVersion(http.StatusOK, v)
}

// list answers with the objects that the query picks (section 9 of the rules).
func (c *call) list() error {
	o, err := c.reading()
	if err != nil {
		return err
	}
	page, err := c.store.List(c.r.Context(), registry.ListOptions{
		Namespace: c.namespace(), From: o.from, Limit: o.limit, Selector: o.selector(),
	})
	if err != nil {
		return err
	}
	if err := page.Unreadable(); err != nil {
		return c.store.ListError(err)
	}
	return c.sendPage(page)
}

// sendPage answers with a list.
func (c *call) sendPage(page *storage.Page) error {
	c.warnings.send(c.w.Header())
	if c.look.media == mediaProtobuf {
		return c.sendProtobufPage(page)
	}
	if c.look.media == mediaJSON && !c.look.pretty {
		return c.streamPage(page)
	}
	data, err := c.appendHead(nil, page)
	if err != nil {
		return err
	}
	for i, v := range page.Items {
		if i > 0 {
			data = append(data, ',')
		}
		if data, err = c.appendItem(data, v); err != nil {
			return err
		}
	}
	c.s.respondJSON(c.w, c.look, http.StatusOK, append(data, "]}\n"...))
	return nil
}

// chunk is how much of a list is gathered before it is sent.
const chunk = 64 << 10

// streamPage sends a list piece by piece. Nothing is decoded where the stored form is the
// one asked for, and what is gathered does not grow with the list.
func (c *call) streamPage(page *storage.Page) error {
	data, err := c.appendHead(make([]byte, 0, chunk+chunk/4), page)
	if err != nil {
		return err
	}
	var body io.WriteCloser // nil until the answer has begun
	for i, v := range page.Items {
		if i > 0 {
			data = append(data, ',')
		}
		if data, err = c.appendItem(data, v); err != nil {
			if body != nil {
				panic(http.ErrAbortHandler) // a list that breaks off must not look whole
			}
			return err
		}
		if len(data) < chunk || body == nil && c.look.gzip && len(data) <= gzipLeast {
			continue
		}
		if body == nil {
			body = c.begin(len(data))
		}
		if _, err := body.Write(data); err != nil {
			return nil // the client has gone
		}
		data = data[:0]
	}
	data = append(data, "]}\n"...)
	if body == nil {
		send(c.w, c.look, mediaJSON, http.StatusOK, data)
		return nil
	}
	_, _ = body.Write(data)
	_ = body.Close()
	return nil
}

// begin begins the answer to a list that is at least so long.
func (c *call) begin(least int) io.WriteCloser {
	c.w.Header().Set("Content-Type", mediaJSON)
	if c.look.gzip && least > gzipLeast {
		return zipped(c.w)
	}
	return plain{c.w}
}

// appendHead appends a list up to the bracket that opens its items. A custom resource's list
// shows an empty continue where a built-in's leaves it out.
func (c *call) appendHead(dst []byte, page *storage.Page) ([]byte, error) {
	switch {
	case c.look.as.kind == asTable:
		return c.appendTableHead(dst, pageMeta(page))
	case c.look.as.metadata():
		return c.appendPartialHead(dst, page)
	}
	dst = append(dst, `{"kind":`...)
	dst = strconv.AppendQuote(dst, c.listKind())
	dst = append(dst, `,"apiVersion":`...)
	dst = strconv.AppendQuote(dst, c.form.GroupVersionKind().GroupVersion().String())
	dst = append(dst, `,"metadata":`...)
	var md any = pageMeta(page)
	if c.res.Custom {
		md = struct {
			Continue  string `json:"continue"`
			Remaining *int64 `json:"remainingItemCount,omitempty"`
			Version   string `json:"resourceVersion"`
		}{page.Continue, page.Remaining, page.Revision.String()}
	}
	head, err := json.Marshal(md)
	dst = append(dst, head...)
	return append(dst, `,"items":[`...), err
}

func pageMeta(page *storage.Page) metav1.ListMeta {
	return metav1.ListMeta{ResourceVersion: page.Revision.String(), Continue: page.Continue, RemainingItemCount: page.Remaining}
}

func (c *call) listKind() string {
	if c.res.ListKind != "" {
		return c.res.ListKind
	}
	return c.res.Kind + "List"
}

// sendProtobufPage answers with a list in protobuf: of a built-in, or of metadata.
func (c *call) sendProtobufPage(page *storage.Page) error {
	list, err := c.listOf(page)
	if err != nil {
		return err
	}
	return c.sendProtobuf(http.StatusOK, list)
}
