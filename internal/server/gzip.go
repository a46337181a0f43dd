package server

import (
	"compress/gzip"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// Answers longer than gzipLeast are worth compressing (rule H60), quickly rather than well:
// the client is seldom far away.
const (
	gzipLeast = 128 << 10
	gzipLevel = gzip.BestSpeed
)

// takesGzip reports whether a client takes compressed answers.
func takesGzip(r *http.Request) bool {
	for _, header := range r.Header.Values("Accept-Encoding") {
		for part := range strings.SplitSeq(header, ",") {
			encoding, params, _ := strings.Cut(part, ";")
			if strings.EqualFold(strings.TrimSpace(encoding), "gzip") && !ruledOut(params) {
				return true
			}
		}
	}
	return false
}

// ruledOut reports whether the quality of an encoding is nought: it is named to rule it out.
func ruledOut(params string) bool {
	name, value, _ := strings.Cut(strings.TrimSpace(params), "=")
	q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
	return strings.TrimSpace(name) == "q" && err == nil && q == 0
}

// zipped begins a compressed answer: what is written to the result is compressed into w. It
// has to be closed.
func zipped(w http.ResponseWriter) io.WriteCloser {
	w.Header().Set("Content-Encoding", "gzip")
	w.Header().Add("Vary", "Accept-Encoding")
	z, err := gzip.NewWriterLevel(w, gzipLevel)
	if err != nil {
		panic(err) // no such level: a bug
	}
	return z
}

// send sends a whole body, compressed if it is long and the client takes that.
func send(w http.ResponseWriter, l look, media string, code int, data []byte) {
	w.Header().Set("Content-Type", media)
	if l.gzip && len(data) > gzipLeast {
		z := zipped(w)
		w.WriteHeader(code)
		_, _ = z.Write(data) // a client that has gone needs no answer
		_ = z.Close()
		return
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	w.WriteHeader(code)
	_, _ = w.Write(data) // a client that has gone needs no answer
}

// A plain body ends by itself.
type plain struct{ io.Writer }

func (plain) Close() error { return nil }
