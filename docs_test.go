package pawl_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl"
)

// Each conversation in these documents is had with a server, in order: requests and answers in blocks
// of ```http. An answer is right if it has what the document shows of it. A $name stands for one text
// wherever it occurs, and is known from its first answer on; … stands for any text.
func TestDocumentedConversations(t *testing.T) {
	for _, file := range []string{"docs/conflicts.md"} {
		t.Run(file, func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			d := &dialogue{api: newAPI(t, pawl.Config{}), known: map[string]string{}}
			blocks := regexp.MustCompile("(?s)```http\n(.*?)```").FindAllStringSubmatch(string(text), -1)
			if len(blocks) == 0 {
				t.Fatal("there are none")
			}
			for _, b := range blocks {
				d.exchange(t, b[1])
			}
		})
	}
}

// A dialogue is what was said so far.
type dialogue struct {
	*api
	known map[string]string // what $names stand for
}

// exchange sends a request, and compares the answer with what is documented.
func (d *dialogue) exchange(t *testing.T, block string) {
	t.Helper()
	request, want, ok := strings.Cut(block, "\n\n")
	if !ok {
		t.Fatalf("no answer in %s", block)
	}
	line, header, body := parts(d.said(request))
	method, path, _ := strings.Cut(line, " ")
	got := d.do(method, path, []byte(body), header...)
	code, header, body := parts(want)
	wrong := d.differs(got, code, header, body)
	if wrong != "" {
		t.Fatalf("%s\n%s\nanswered with %d %v\n%s", request, wrong, got.code, got.header.Values("Warning"), got.text)
	}
}

// differs says what is not as documented; "" if nothing is.
func (d *dialogue) differs(got answer, code string, header []string, body string) string {
	if fmt.Sprint(got.code) != code {
		return "the code is another"
	}
	for i := 0; i < len(header); i += 2 {
		if has := got.header.Get(header[i]); !d.matches(header[i+1], has) {
			return fmt.Sprintf("%s is %s", header[i], has)
		}
	}
	var want, have any
	if err := json.Unmarshal([]byte(body), &want); err != nil {
		return fmt.Sprintf("the document has no JSON: %v", err)
	}
	if err := json.Unmarshal([]byte(got.text), &have); err != nil {
		return fmt.Sprintf("the answer is no JSON: %v", err)
	}
	return d.lacks("", want, have)
}

// parts are the first line, the headers in pairs, and the rest of a message.
func parts(message string) (first string, header []string, body string) {
	first, rest, _ := strings.Cut(message, "\n")
	for {
		line, below, _ := strings.Cut(rest, "\n")
		name, v, ok := strings.Cut(line, ": ")
		if !ok || strings.HasPrefix(line, "{") || strings.HasPrefix(line, "[") {
			return strings.TrimSpace(first), header, rest
		}
		header, rest = append(header, name, v), below
	}
}

var dollar = regexp.MustCompile(`\$[a-z]+`)

// said puts what names stand for in their place.
func (d *dialogue) said(text string) string {
	return dollar.ReplaceAllStringFunc(text, func(name string) string { return d.known[name] })
}

// matches reports whether a text is what is documented, and learns what a name stands for.
func (d *dialogue) matches(want, have string) bool {
	if _, known := d.known[want]; dollar.FindString(want) == want && want != "" && !known {
		d.known[want] = have
		return true
	}
	pattern := strings.ReplaceAll(regexp.QuoteMeta(d.said(want)), "…", ".*")
	return regexp.MustCompile("^" + pattern + "$").MatchString(have)
}

// lacks says where have is not what is documented; it may have more members.
func (d *dialogue) lacks(at string, want, have any) string {
	switch want := want.(type) {
	case map[string]any:
		have, _ := have.(map[string]any)
		for name, v := range want {
			if wrong := d.lacks(at+"."+name, v, have[name]); wrong != "" {
				return wrong
			}
		}
		return ""
	case []any:
		have, _ := have.([]any)
		if len(have) != len(want) {
			return fmt.Sprintf("%s has %d items", at, len(have))
		}
		for i := range want {
			if wrong := d.lacks(fmt.Sprintf("%s[%d]", at, i), want[i], have[i]); wrong != "" {
				return wrong
			}
		}
		return ""
	case string:
		if have, ok := have.(string); ok && d.matches(want, have) {
			return ""
		}
	default:
		if want == have {
			return ""
		}
	}
	return fmt.Sprintf("%s is %v, want %v", at, have, want)
}
