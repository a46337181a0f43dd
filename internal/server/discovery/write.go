package discovery

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"sigs.k8s.io/yaml"

	"github.com/pawl-dev/pawl/internal/resource"
)

// encode writes obj, whose JSON is text, in one of the encodings.
func encode(obj runtime.Object, text []byte, as encoding, indent bool) ([]byte, error) {
	var out bytes.Buffer
	switch {
	case as == asYAML:
		return yaml.JSONToYAML(text)
	case as == asProtobuf:
		err := protobuf.NewSerializer(nil, nil).Encode(obj, &out)
		return out.Bytes(), err
	case indent:
		err := json.Indent(&out, text, "", "  ")
		return out.Bytes(), err
	}
	return text, nil
}

// send answers with obj, whose JSON is text. Params are those of the Content-Type.
func send(w http.ResponseWriter, r *http.Request, code int, obj runtime.Object, text []byte, as encoding, params string) {
	body, err := encode(obj, text, as, pretty(r))
	if err != nil {
		http.Error(w, fmt.Sprintf("discovery: %s cannot be written as %s: %v", r.URL.Path, as, err), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", string(as)+params)
	w.WriteHeader(code)
	w.Write(body) // a client that is gone needs no answer
}

// fail answers with a Status in the encoding that was asked for, JSON if that failed (rule H58).
func fail(w http.ResponseWriter, r *http.Request, status metav1.Status) {
	verdict, as := choose(r.Header.Get("Accept"), false)
	if verdict != plain {
		as = asJSON
	}
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	text, err := json.Marshal(&status)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	send(w, r, int(status.Code), &status, text, as, "")
}

// NotFound answers a request whose path, below /api or /apis, names nothing in c (rule H8).
func NotFound(w http.ResponseWriter, r *http.Request, c *resource.Catalogue) {
	segments := split(r.URL.Path)
	group := "" // the core group, whose paths are below /api
	if segments[0] == "apis" {
		if len(segments) == 1 {
			http.NotFound(w, r)
			return
		}
		group = segments[1]
	}
	if g := c.Group(group); g == nil || !g.Builtin() {
		http.NotFound(w, r)
		return
	}
	fail(w, r, generic(http.StatusNotFound))
}

// generic is the Status that says no more than the code does.
func generic(code int) metav1.Status {
	return apierrors.NewGenericServerResponse(code, "", schema.GroupResource{}, "", "", 0, false).Status()
}

// notAcceptable says that no clause could be served (rule H56). Paths of built-in groups are
// routed before the form is looked at; there, an encoding that nobody knows has words of its own.
func notAcceptable(verdict choice, routed bool) metav1.Status {
	var names []string
	for _, e := range encodings {
		names = append(names, string(e))
	}
	list := strings.Join(names, ", ")
	if verdict == noMatter && routed {
		s := generic(http.StatusNotAcceptable)
		s.Reason = metav1.StatusReasonNotAcceptable
		s.Message = "406: Not Acceptable\n\nAvailable representations: " + list
		s.Details = &metav1.StatusDetails{}
		return s
	}
	return metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusNotAcceptable,
		Reason:  metav1.StatusReasonNotAcceptable,
		Message: "only the following media types are accepted: " + list,
	}
}
