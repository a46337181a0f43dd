package server

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The media types that objects travel in (rule H51).
const (
	mediaJSON     = "application/json"
	mediaYAML     = "application/yaml"
	mediaProtobuf = "application/vnd.kubernetes.protobuf"
)

var mediaTypes = []string{mediaJSON, mediaYAML, mediaProtobuf}

// A look is how an answer is to look.
type look struct {
	media  string
	pretty bool
	gzip   bool      // the client takes compressed answers
	as     rendering // what is shown of objects
}

// A clause is one alternative of an Accept header.
type clause struct {
	media   string
	params  map[string]string
	quality float64
}

// parseAccept returns the clauses of an Accept header, best first. A clause that does not
// parse is left out.
func parseAccept(header string) []clause {
	if strings.TrimSpace(header) == "" {
		return []clause{{media: "*/*", quality: 1}}
	}
	var clauses []clause
	for part := range strings.SplitSeq(header, ",") {
		if part = strings.TrimSpace(part); part == "*/*" || slices.Contains(mediaTypes, part) {
			clauses = append(clauses, clause{media: part, quality: 1}) // as most clients say it
			continue
		}
		media, params, err := mime.ParseMediaType(part)
		if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) {
			continue
		}
		c := clause{media: media, params: params, quality: 1}
		if q, err := strconv.ParseFloat(params["q"], 64); err == nil {
			c.quality = q
		}
		clauses = append(clauses, c)
	}
	slices.SortStableFunc(clauses, func(a, b clause) int {
		switch {
		case a.quality > b.quality:
			return -1
		case a.quality < b.quality:
			return 1
		}
		return 0
	})
	return clauses
}

// An offer is what there is to choose from.
type offer struct {
	protobuf bool // of the objects
	metadata bool // of metadata, in protobuf
	watch    bool
}

// serves reports whether a rendering is to be had in an encoding.
func (o offer) serves(media string, a rendering) bool {
	switch {
	case media == mediaYAML:
		return !o.watch
	case media != mediaProtobuf:
		return true
	case a.kind == asTable:
		return false
	case a.metadata():
		return o.metadata
	}
	return o.protobuf
}

// negotiate finds how the answer is to look: the first clause that can be served (rules H51
// to H56).
func negotiate(r *http.Request, o offer) (look, error) {
	clauses := parseAccept(r.Header.Get("Accept"))
	known := false
	for _, c := range clauses {
		media, ok := concrete(c.media)
		known = known || ok
		if a, exists := c.rendering(); ok && exists && o.serves(media, a) {
			return look{media: media, pretty: media == mediaJSON && wantsPretty(r, c), gzip: takesGzip(r), as: a}, nil
		}
	}
	if !known {
		return look{media: mediaJSON}, notAcceptable("406: Not Acceptable\n\nAvailable representations: "+strings.Join(mediaTypes, ", "), &metav1.StatusDetails{})
	}
	return look{media: errorMedia(clauses)}, notAcceptable("only the following media types are accepted: "+acceptedList(o.watch), nil)
}

// errorMedia is the encoding of the answer when no clause can be served: that of the first
// clause whose encoding is known (rule H58).
func errorMedia(clauses []clause) string {
	for _, c := range clauses {
		if media, ok := concrete(c.media); ok {
			return media
		}
	}
	return mediaJSON
}

func acceptedList(watch bool) string {
	if watch {
		return mediaJSON + ";stream=watch, " + mediaProtobuf + ";stream=watch"
	}
	return strings.Join(mediaTypes, ", ")
}

// concrete returns the media type that a clause means.
func concrete(media string) (string, bool) {
	if media == "*/*" || media == "application/*" {
		return mediaJSON, true
	}
	return media, slices.Contains(mediaTypes, media)
}

// wantsPretty reports whether JSON is to be indented (rule H59).
func wantsPretty(r *http.Request, c clause) bool {
	if p := r.URL.Query().Get("pretty"); p != "" {
		on, err := strconv.ParseBool(p)
		return err == nil && on
	}
	if p := c.params["pretty"]; p != "" {
		return p == "1" || p == "true"
	}
	agent := r.UserAgent()
	return strings.HasPrefix(agent, "curl") || strings.HasPrefix(agent, "Wget") || strings.HasPrefix(agent, "Mozilla/5.0")
}

func notAcceptable(text string, details *metav1.StatusDetails) error {
	return status(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable, text, details)
}

// status makes an API error of one kind.
func status(code int32, reason metav1.StatusReason, text string, details *metav1.StatusDetails) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: text, Details: details,
	}}
}

// bodyMedia says what a request's body is written in (rule H57).
func bodyMedia(r *http.Request, protobuf bool) (string, error) {
	header := r.Header.Get("Content-Type")
	if header == "" {
		return mediaJSON, nil
	}
	media, err := mediaOf(header)
	if err == nil && slices.Contains(mediaTypes, media) && (media != mediaProtobuf || protobuf) {
		return media, nil
	}
	return "", unsupportedMedia("the body of the request was in an unknown format", mediaTypes)
}

// mediaOf returns the media type that a Content-Type names.
func mediaOf(header string) (string, error) {
	if slices.Contains(mediaTypes, header) {
		return header, nil
	}
	media, _, err := mime.ParseMediaType(header)
	return media, err
}

func unsupportedMedia(what string, accepted []string) error {
	return status(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType,
		fmt.Sprintf("%s - accepted media types include: %s", what, strings.Join(accepted, ", ")), nil)
}
