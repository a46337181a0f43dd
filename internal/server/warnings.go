package server

import (
	"net/http"
	"strings"
	"sync"
	"unicode/utf8"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// What a client can be told on the way (rule H73).
const (
	warningsMax = 4096 // characters of all warnings together
	warningMax  = 256  // characters of each, once all together are too many
)

// warnings collects what a client should be told beside the answer. It implements
// warning.Recorder.
type warnings struct {
	mu    sync.Mutex
	texts []string
	seen  map[string]bool
}

// AddWarning notes a warning; the same one again is left out.
func (w *warnings) AddWarning(_, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if text == "" || w.seen[text] {
		return
	}
	if w.seen == nil {
		w.seen = map[string]bool{}
	}
	w.seen[text] = true
	w.texts = append(w.texts, text)
}

// tell notes a warning that names fields. Their names may hold what no header can.
func (w *warnings) tell(text string) { w.AddWarning("", strings.Map(printable, text)) }

// send puts the warnings into the header, which must not have been sent yet.
func (w *warnings) send(h http.Header) {
	w.mu.Lock()
	defer w.mu.Unlock()
	total := 0
	for _, t := range w.texts {
		total += len(t)
	}
	room := warningsMax
	for _, t := range w.texts {
		if total > warningsMax {
			t = cutRunes(t, warningMax)
		}
		if room -= len(t); room < 0 {
			break
		}
		if header, err := utilnet.NewWarningHeader(299, "-", t); err == nil {
			h.Add("Warning", header)
		}
	}
	w.texts = nil
}

// cutRunes cuts a text to at most n bytes, between two characters.
func cutRunes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
