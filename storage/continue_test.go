package storage

import (
	"encoding/base64"
	"strings"
	"testing"
)

func token(json string) string { return base64.RawURLEncoding.EncodeToString([]byte(json)) }

func TestContinueTokens(t *testing.T) {
	const v = `"v":"meta.k8s.io/v1"`
	for _, c := range []struct {
		name, token string
		start       string
		rev         int64
		err         string // a prefix
	}{
		{"what is encoded is the last key, and a zero byte so as to begin after it (K65)", encodeContinue("a/one", 7), "a/one\x00", 7, ""},
		{"a token of another server, with a slash first (K66)", token(`{` + v + `,"rv":7,"start":"/a/one\u0000"}`), "a/one\x00", 7, ""},
		{"a token of another server, without (K66)", token(`{` + v + `,"rv":7,"start":"a/one\u0000"}`), "a/one\x00", 7, ""},
		{"the newest state is asked for by -1 (K70)", token(`{` + v + `,"rv":-1,"start":"a"}`), "a", latestPage, ""},
		{"any other negative revision asks for it too (K52)", token(`{` + v + `,"rv":-9,"start":"a"}`), "a", latestPage, ""},
		{"not base64 (K67)", "!", "", 0, "continue key is not valid: illegal base64"},
		{"padded base64 (K65)", base64.URLEncoding.EncodeToString([]byte(`{` + v + `,"rv":7,"start":"abc"}`)), "", 0, "continue key is not valid: illegal base64"},
		{"not JSON (K67)", token("x"), "", 0, "continue key is not valid: invalid character"},
		{"JSON of another shape (K67)", token(`{"rv":"7"}`), "", 0, "continue key is not valid: json: "},
		{"no revision (K67)", token(`{` + v + `,"start":"a"}`), "", 0, "continue key is not valid: incorrect encoded start resourceVersion (version meta.k8s.io/v1)"},
		{"no start (K67)", token(`{` + v + `,"rv":7}`), "", 0, "continue key is not valid: encoded start key empty (version meta.k8s.io/v1)"},
		{"another version (K67)", token(`{"v":"v2","rv":7,"start":"a"}`), "", 0, "continue key is not valid: server does not recognize this encoded version v2"},
		{"no version (K67)", token(`{"rv":7,"start":"a"}`), "", 0, "continue key is not valid: server does not recognize this encoded version "},
		{"a way out of the prefix (K68)", token(`{` + v + `,"rv":7,"start":"../secrets/a"}`), "", 0, "continue key is not valid: ../secrets/a"},
		{"a way out in the middle (K68)", token(`{` + v + `,"rv":7,"start":"a/../../b"}`), "", 0, "continue key is not valid: a/../../b"},
		{"a dot (K68)", token(`{` + v + `,"rv":7,"start":"./a"}`), "", 0, "continue key is not valid: ./a"},
		{"two slashes (K68)", token(`{` + v + `,"rv":7,"start":"a//b"}`), "", 0, "continue key is not valid: a//b"},
		{"a slash at the end (K68)", token(`{` + v + `,"rv":7,"start":"a/"}`), "", 0, "continue key is not valid: a/"},
	} {
		t.Run(c.name, func(t *testing.T) {
			start, rev, err := decodeContinue(c.token)
			if c.err == "" {
				if err != nil || start != c.start || rev != c.rev {
					t.Fatalf("got %q at %d, %v; want %q at %d", start, rev, err, c.start, c.rev)
				}
				return
			}
			if err == nil || !strings.HasPrefix(err.Error(), c.err) {
				t.Fatalf("got %q at %d, %v; want %q", start, rev, err, c.err)
			}
		})
	}
}

// The form is public (K65): tokens that are out there must stay readable.
func TestContinueTokensKeepTheirForm(t *testing.T) {
	const want = "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6NDEsInN0YXJ0IjoiYS9vbmVcdTAwMDAifQ"
	if got := encodeContinue("a/one", 41); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func FuzzContinue(f *testing.F) {
	for _, s := range []string{
		encodeContinue("a/one", 7), encodeToken("a", latestPage), token(`{"v":"meta.k8s.io/v1","rv":7,"start":"a/../b"}`),
		token(`{"v":"meta.k8s.io/v1","rv":-7,"start":"/"}`), token(`[]`), "!", "",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		start, rev, err := decodeContinue(s)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "continue key is not valid") {
				t.Fatalf("unfamiliar error %q", err)
			}
			return
		}
		if rev == 0 || rev < latestPage {
			t.Fatalf("revision %d", rev)
		}
		for part := range strings.SplitSeq(start, "/") {
			if part == ".." || part == "." {
				t.Fatalf("%q leads out of its prefix", start)
			}
		}
		again, rev2, err := decodeContinue(encodeToken(start, rev))
		if start != "" && (err != nil || again != start || rev2 != rev) {
			t.Fatalf("%q at %d became %q at %d, %v", start, rev, again, rev2, err)
		}
	})
}
