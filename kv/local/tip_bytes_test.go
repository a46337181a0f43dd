package local

import (
	"bytes"
	"encoding/hex"
	"testing"
)

// The file is read by every later version.
func TestTheBytesOfATip(t *testing.T) {
	closed := tip{segment{id: 0x0102030405060708, first: 0x1112}, 0x2122}
	b := closed.append(nil)
	const want = "7061776c20746970010000006bd36819080706050403020112110000000000002221000000000000"
	if got := hex.EncodeToString(b); got != want {
		t.Errorf("it is written as\n%s, want\n%s", got, want)
	}
	if got, problem := parseTip(b); got != closed || problem != "" {
		t.Errorf("it is read as %+v, %s", got, problem)
	}
	for bit := range len(b) * 8 {
		bad := bytes.Clone(b)
		bad[bit/8] ^= 1 << (bit % 8)
		if got, problem := parseTip(bad); problem == "" {
			t.Errorf("with bit %d flipped it is read as %+v", bit, got)
		}
	}
	for n := range len(b) {
		if _, problem := parseTip(b[:n]); problem == "" {
			t.Errorf("%d bytes of it are taken for a tip", n)
		}
	}
	if _, problem := parseTip(append(b, 0)); problem == "" {
		t.Error("more than a tip is taken for one")
	}
}
