package server

import (
	"compress/gzip"
	"fmt"
	"io"
	"strings"
	"testing"
)

func TestLongAnswersAreCompressedForThoseWhoTakeThat(t *testing.T) { // rule H60
	w := newWorld(t, allowAll{})
	for i := range 4 {
		w.must("POST", configMaps, fmt.Sprintf(`{"metadata":{"name":"long%d","labels":{"is":"long"}},"data":{"k":"%s"}}`, i, strings.Repeat("long ", 28<<10)))
	}
	w.must("POST", configMaps, `{"metadata":{"name":"short","labels":{"is":"short"}}}`)
	for _, test := range []struct {
		name, target, encoding, accept string
		zipped                         bool
	}{
		{"a long list", configMaps, "gzip", mediaJSON, true},
		{"a long list with blanks", configMaps + "?pretty=true", "gzip", mediaJSON, true},
		{"a long list as YAML", configMaps, "gzip", mediaYAML, true},
		{"a long list in protobuf", configMaps, "gzip", mediaProtobuf, true},
		{"a long object", configMaps + "/long1", "deflate, gzip;q=0.5", mediaJSON, true},
		{"a long table", configMaps + "?includeObject=Object", "gzip", as(mediaJSON, asTable, "v1"), true},
		{"a table of long objects is short", configMaps, "gzip", as(mediaJSON, asTable, "v1"), false},
		{"a short list", configMaps + "?labelSelector=is%3Dshort", "gzip", mediaJSON, false},
		{"a short object", configMaps + "/short", "gzip", mediaJSON, false},
		{"a client that says nothing", configMaps, "", mediaJSON, false},
		{"a client that takes something else", configMaps, "br", mediaJSON, false},
		{"a client that rules it out", configMaps, "gzip;q=0", mediaJSON, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			want := w.must("GET", test.target, "", "Accept", test.accept)
			got := w.must("GET", test.target, "", "Accept", test.accept, "Accept-Encoding", test.encoding)
			if encoding := got.Header().Get("Content-Encoding"); (encoding == "gzip") != test.zipped {
				t.Fatalf("Content-Encoding is %q", encoding)
			}
			if got.Header().Get("Content-Type") != want.Header().Get("Content-Type") {
				t.Errorf("Content-Type is %q", got.Header().Get("Content-Type"))
			}
			body := io.Reader(got.Body)
			if test.zipped {
				if vary := got.Header().Get("Vary"); vary != "Accept-Encoding" {
					t.Errorf("Vary is %q", vary)
				}
				if length := got.Header().Get("Content-Length"); length != "" {
					t.Errorf("Content-Length is %s, of what is not sent", length)
				}
				z, err := gzip.NewReader(body)
				if err != nil {
					t.Fatal(err)
				}
				body = z
			}
			data, err := io.ReadAll(body)
			if err != nil || string(data) != want.Body.String() {
				t.Errorf("what arrives is not what is sent: %v", err)
			}
		})
	}
}
