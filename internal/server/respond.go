package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/pawl-dev/pawl/registry"
	"github.com/pawl-dev/pawl/storage"
)

// fail answers with an error.
func (c *call) fail(err error) {
	st := statusOf(err)
	c.note(st, err)
	var conflict *registry.ConflictError
	if errors.As(err, &conflict) {
		st = c.withCauses(conflict, st)
		c.write.leave(c.r.Context(), err)
	}
	if c.warnings != nil {
		c.warnings.send(c.w.Header())
	}
	c.s.respondStatus(c.w, c.look, st)
	if c.write.holds() {
		http.NewResponseController(c.w).Flush() // what cannot be flushed is sent a little later
		c.write.told()
	}
}

func (s *Server) fail(w http.ResponseWriter, _ *http.Request, l look, err error) {
	s.respondStatus(w, l, statusOf(err))
}

// note writes down errors that are the server's own fault. A 500 without a reason is the
// reference's way to answer some bad input, and none of ours. When the store refuses everybody it is written down now and then.
func (c *call) note(st metav1.Status, err error) {
	const message = "request failed"
	args := []any{"method", c.r.Method, "path", c.r.URL.Path, "err", err}
	switch {
	case st.Code < http.StatusInternalServerError, st.Reason == "", st.Reason == metav1.StatusReasonTimeout:
	case st.Reason == metav1.StatusReasonServerTimeout:
		c.s.refusals.say(c.s.logger, message, args...)
	default:
		c.s.logger.Error(message, args...)
	}
}

// statusOf is the Status that tells a client of err. An error that is no API status is a 500
// with its text and no reason (rule H189).
func statusOf(err error) metav1.Status {
	var api apierrors.APIStatus
	if errors.As(err, &api) {
		st := api.Status()
		if st.Code == 0 {
			st.Code = http.StatusInternalServerError
		}
		return st
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return timedOut().Status()
	}
	return metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error()}
}

// timedOut is the answer to a request that took too long (rule H213).
func timedOut() *apierrors.StatusError {
	return apierrors.NewTimeoutError("request did not complete within the allotted timeout", 0)
}

// withCauses explains a conflict to those who may read the object: paths are data.
func (c *call) withCauses(conflict *registry.ConflictError, st metav1.Status) metav1.Status {
	may := c.rt
	may.verb = "get"
	if allowed, _ := c.s.authorizer.Authorize(may.attributes(c.user, nil)); !allowed {
		return st
	}
	x, err := conflict.Explain(c.r.Context())
	if err != nil {
		if !errors.Is(err, context.Canceled) { // somebody waits for it
			c.s.logger.Warn("a conflict could not be explained", "path", c.r.URL.Path, "err", err)
		}
		return st
	}
	causes := x.Causes()
	if len(causes) == 0 {
		return st
	}
	details := *st.Details
	details.Causes = append(details.Causes, causes...)
	st.Details = &details
	if c.warnings != nil && strings.HasPrefix(c.r.UserAgent(), "kubectl/") {
		c.warnings.tell(x.Summary())
	}
	return st
}

func (s *Server) respondStatus(w http.ResponseWriter, l look, st metav1.Status) {
	st.Kind, st.APIVersion = "Status", "v1"
	if st.Details != nil && st.Details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(st.Details.RetryAfterSeconds)))
	}
	code := int(st.Code)
	if code == 0 {
		code = http.StatusOK // a Success does not say
	}
	data, err := json.Marshal(&st)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if l.media == mediaProtobuf && s.protobuf != nil {
		var buf bytes.Buffer
		if err := s.protobuf.Encode(&st, &buf); err == nil {
			send(w, l, mediaProtobuf, code, buf.Bytes())
			return
		}
	}
	s.respondJSON(w, l, code, data)
}

// respondJSON sends JSON as it is, indented, or as YAML.
func (s *Server) respondJSON(w http.ResponseWriter, l look, code int, data []byte) {
	switch {
	case l.media == mediaYAML:
		if y, err := yaml.JSONToYAML(data); err == nil {
			send(w, l, mediaYAML, code, y)
			return
		}
	case l.pretty:
		var buf bytes.Buffer
		if err := json.Indent(&buf, data, "", "  "); err == nil {
			data = append(buf.Bytes(), '\n')
		}
	}
	send(w, l, mediaJSON, code, data)
}

// sendVersion answers with one version of an object.
func (c *call) sendVersion(code int, v storage.Version) error {
	if c.scale != nil {
		return c.sendScale(code, v)
	}
	c.warnings.send(c.w.Header())
	if c.look.media != mediaProtobuf {
		data, err := c.appendVersion(nil, v)
		if err != nil {
			return err
		}
		c.s.respondJSON(c.w, c.look, code, data)
		return nil
	}
	obj, err := c.shown(v)
	if err != nil {
		return err
	}
	return c.sendProtobuf(code, obj)
}

// sendObject answers with an object that is not stored.
func (c *call) sendObject(code int, obj runtime.Object) error {
	c.warnings.send(c.w.Header())
	if c.look.media == mediaProtobuf {
		obj, err := c.shownOf(obj)
		if err != nil {
			return err
		}
		return c.sendProtobuf(code, obj)
	}
	data, err := c.appendObject(nil, obj)
	if err != nil {
		return err
	}
	c.s.respondJSON(c.w, c.look, code, data)
	return nil
}

func (c *call) sendProtobuf(code int, obj runtime.Object) error {
	data, err := c.protobuf(obj)
	if err != nil {
		return err
	}
	send(c.w, c.look, mediaProtobuf, code, data)
	return nil
}

// shown is what is shown of a version, for protobuf.
func (c *call) shown(v storage.Version) (runtime.Object, error) {
	if c.look.as.metadata() {
		return c.partial(v)
	}
	return v.Object()
}

// shownOf is what is shown of an object that is not stored.
func (c *call) shownOf(obj runtime.Object) (runtime.Object, error) {
	if c.look.as.metadata() {
		return c.partialOf(obj)
	}
	return obj, nil
}

// appendVersion appends the JSON of what is shown of one version.
func (c *call) appendVersion(dst []byte, v storage.Version) ([]byte, error) {
	switch {
	case c.look.as.kind == asTable:
		return c.appendTable(dst, v)
	case c.look.as.metadata():
		return c.appendPartial(dst, v)
	}
	return c.appendWhole(dst, v, false)
}

// appendObject does so of an object that is not stored.
func (c *call) appendObject(dst []byte, obj runtime.Object) ([]byte, error) {
	if c.look.as.kind == asTable {
		return c.appendTableOf(dst, obj)
	}
	if c.look.as.metadata() {
		p, err := c.partialOf(obj)
		if err != nil {
			return dst, err
		}
		data, err := json.Marshal(p)
		return append(dst, data...), err
	}
	data, err := c.form.Encode(obj)
	return append(dst, data...), err
}

// appendItem appends the JSON of what a list shows of a version.
func (c *call) appendItem(dst []byte, v storage.Version) ([]byte, error) {
	switch {
	case c.look.as.kind == asTable:
		return c.appendRow(dst, v)
	case c.look.as.metadata():
		return c.appendPartial(dst, v)
	}
	return c.appendWhole(dst, v, !c.res.Custom)
}

// appendWhole appends a version's JSON: as stored if that is its form, made anew if not.
// An item of a built-in's list is without kind and apiVersion (rule H63).
func (c *call) appendWhole(dst []byte, v storage.Version, item bool) ([]byte, error) {
	if data, ok := v.AppendJSON(dst, item); ok {
		return data, nil
	}
	obj, err := v.Object()
	if err != nil {
		return dst, err
	}
	if item {
		obj.GetObjectKind().SetGroupVersionKind(emptyKind)
		data, err := json.Marshal(obj)
		return append(dst, data...), err
	}
	data, err := c.form.Encode(obj)
	return append(dst, data...), err
}
