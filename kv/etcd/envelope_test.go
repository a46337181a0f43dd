package etcd

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/kv"
)

var rewrite = flag.Bool("rewrite", false, "rewrite what testdata expects")

var ada = kv.Author{User: "ada", Manager: "kubectl", Verb: "patch", Subresource: "status"}

func envelopes() map[string]envelope {
	who := id{replica: 0x0102030405060708, number: 300}
	return map[string]envelope{
		"a value":                    {id: who, time: 1_900_000_000_123_456_789, author: encodeAuthor(ada), value: []byte("{}")},
		"a value that expires":       {id: who, time: 1_900_000_000_123_456_789, expires: 1_900_000_060_123_456_789, author: encodeAuthor(ada), value: []byte("{}")},
		"a value by nobody":          {id: who, time: 1, author: encodeAuthor(kv.Author{}), value: []byte("x")},
		"nothing but who deleted it": {id: who, time: 1, author: encodeAuthor(ada), value: []byte{}},
	}
}

// What was written once must be read for ever: the golden file is only ever added to.
func TestEnvelopesAreReadAsTheyWereWritten(t *testing.T) {
	const golden = "testdata/envelopes.txt"
	if *rewrite {
		var b strings.Builder
		all := envelopes()
		for _, name := range slices.Sorted(maps.Keys(all)) {
			fmt.Fprintf(&b, "%s: %x\n", name, all[name].encode())
		}
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	written := map[string][]byte{}
	for line := range strings.Lines(string(text)) {
		name, digits, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if written[name], err = hex.DecodeString(digits); err != nil {
			t.Fatal(err)
		}
	}
	for name, e := range envelopes() {
		if got := e.encode(); !bytes.Equal(got, written[name]) {
			t.Errorf("%s is written as %x, was %x", name, got, written[name])
		}
		got, err := decode(written[name])
		if err != nil || got.id != e.id || got.time != e.time || got.expires != e.expires || got.value == nil ||
			decodeAuthor(got.author) != decodeAuthor(e.author) || !bytes.Equal(got.value, e.value) {
			t.Errorf("%s is read as %+v, %v, want %+v", name, got, err, e)
		}
	}
}

func TestWhatIsNoEnvelopeIsNotRead(t *testing.T) {
	whole := envelopes()["a value that expires"]
	whole.value = nil
	b := whole.encode()
	for n := range b {
		if _, err := decode(b[:n]); err == nil {
			t.Errorf("%d of %d bytes are read as an envelope", n, len(b))
		}
	}
	for name, at := range map[string]struct {
		i  int
		to byte
	}{"a later format": {0, 2}, "flags that are not known": {1, 0x80}} {
		c := bytes.Clone(b)
		c[at.i] = at.to
		if _, err := decode(c); err == nil || !strings.Contains(err.Error(), "this pawl") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, foreign := range []string{"", "k8s\x00\n\x0f", `{"kind":"Pod"}`, "\x01\x00aaaaaaaa\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"} {
		if e, err := decode([]byte(foreign)); err == nil {
			t.Errorf("%q is read as %+v", foreign, e)
		}
	}
}

func FuzzEnvelope(f *testing.F) {
	for _, e := range envelopes() {
		f.Add(e.encode())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := decode(b)
		if err != nil {
			return
		}
		again, err := decode(e.encode())
		if err != nil || again.id != e.id || again.time != e.time || again.expires != e.expires || !bytes.Equal(again.author, e.author) || !bytes.Equal(again.value, e.value) {
			t.Errorf("%x is read as %+v, and that as %+v, %v", b, e, again, err)
		}
	})
}
