package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestAMeterIsQuietForASecondAndThenEverLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		began := time.Now()
		m := process{stderr: &out, clock: time.Now}.meter("reading", sized)
		var at []string
		for i := range int64(600) { // a minute
			before := out.Len()
			m.tell(i<<20, 600<<20)
			if out.Len() > before {
				at = append(at, time.Since(began).String())
			}
			time.Sleep(100 * time.Millisecond)
		}
		if got, want := strings.Join(at, " "), "1s 2s 4s 8s 16s 26s 36s 46s 56s"; got != want {
			t.Errorf("it speaks at %s, want %s", got, want)
		}
		if first, want := strings.SplitAfter(out.String(), "\n")[0], "reading: 1% of 600.0 MiB\n"; first != want {
			t.Errorf("it says %q, want %q", first, want)
		}
	})
}

func TestAMeterSaysNothingOfNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		m := process{stderr: &out, clock: time.Now}.meter("reading", objects)
		m.tell(0, 0)
		time.Sleep(time.Minute)
		m.tell(0, 0)
		if out.Len() > 0 {
			t.Errorf("it says %q", out.String())
		}
	})
}

func TestNumbersForPeople(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{sized(0), "0 bytes"}, {sized(1023), "1023 bytes"}, {sized(1024), "1.0 KiB"}, {sized(3 << 19), "1.5 MiB"}, {sized(5 << 30), "5.0 GiB"}, {sized(7 << 50), "7168.0 TiB"},
		{objects(1), "1 object"}, {objects(0), "0 objects"}, {objects(999), "999 objects"}, {objects(1000), "1,000 objects"}, {objects(1234567), "1,234,567 objects"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

// A server that takes long to open its store says so, in its log.
func TestServeTellsHowOpeningGetsOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := func(_ context.Context, s settings) (server, error) {
			for i := range int64(10) {
				s.opening(i, 10)
				time.Sleep(time.Second)
			}
			return nil, errors.New("enough")
		}
		said := say(process{build: aBuild, start: start}, []string{"serve", "--log-format", "json"})
		if n := strings.Count(said, `"msg":"reading the store","data":"./pawl-data","percent":`); n != 4 {
			t.Errorf("it speaks %d times, want 4 (after 1, 2, 4 and 8 seconds):\n%s", n, said)
		}
	})
}
