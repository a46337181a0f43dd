package cutdisk

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/kv/local"
)

// A story is told to a disk; must fails the test.
type story struct {
	*testing.T
	d *Disk
}

func (s story) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s story) create(name string) local.File {
	s.Helper()
	f, err := s.d.Create(name)
	s.must(err)
	return f
}

func (s story) write(f local.File, text string) {
	s.Helper()
	_, err := io.WriteString(f, text)
	s.must(err)
}

// safe makes a file that survives.
func (s story) safe(name, text string) local.File {
	s.Helper()
	f := s.create(name)
	s.write(f, text)
	s.must(f.Sync())
	s.must(s.d.SyncDir("dir"))
	return f
}

// holds returns "name=text" of all files.
func holds(t *testing.T, d *Disk) string {
	t.Helper()
	var all []string
	for _, name := range d.Files() {
		b, err := d.Bytes(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%s=%s", strings.TrimPrefix(name, "dir/"), b))
	}
	return strings.Join(all, " ")
}

func begin(t *testing.T) story {
	s := story{t, New()}
	s.must(s.d.MkdirAll("dir"))
	s.must(s.d.SyncDir("."))
	return s
}

func TestWhatThePowerTakes(t *testing.T) {
	for _, c := range []struct {
		name           string
		tell           func(s story)
		nothing, at100 string
		shown          string   // if that is not what everything leaves
		between        []string // what may be found besides, in some runs of many
	}{
		{name: "a file that was synced, and its name, is there", tell: func(s story) { s.safe("dir/a", "1") }, nothing: "a=1", at100: "a=1"},
		{name: "a name that was not synced need not be", tell: func(s story) {
			f := s.create("dir/a")
			s.write(f, "1")
			s.must(f.Sync())
		}, nothing: "", at100: "a=1"},
		{name: "what was written since the last sync is there in part", tell: func(s story) {
			s.write(s.safe("dir/a", "old"), "new")
		}, nothing: "a=old", at100: "a=oldnew", between: []string{"a=old", "a=oldn", "a=oldne", "a=oldnew", "a=old\x00\x00\x00", "a=old\x00ew", "a=oldn\x00\x00"}},
		{name: "a file that replaces another is one or the other", tell: func(s story) {
			s.safe("dir/a", "old")
			f := s.create("dir/b")
			s.write(f, "newer")
			s.must(f.Sync())
			s.must(s.d.Rename("dir/b", "dir/a"))
		}, nothing: "a=old", at100: "a=newer", between: []string{"a=old", "a=newer"}},
		{name: "a removed file may be back", tell: func(s story) {
			s.safe("dir/a", "1")
			s.must(s.d.Remove("dir/a"))
		}, nothing: "a=1", at100: "", between: []string{"", "a=1"}},
		{name: "a removed file whose folder was synced is gone", tell: func(s story) {
			s.safe("dir/a", "1")
			s.must(s.d.Remove("dir/a"))
			s.must(s.d.SyncDir("dir"))
		}, nothing: "", at100: ""},
		{name: "a file that was cut may be as it was", tell: func(s story) {
			s.must(s.safe("dir/a", "long").Truncate(1))
		}, nothing: "a=long", at100: "a=l", between: []string{"a=long", "a=l"}},
		{name: "what is cut off without having been synced may be there", tell: func(s story) {
			f := s.safe("dir/a", "old")
			s.write(f, "new")
			s.must(f.Truncate(3))
		}, nothing: "a=old", at100: "a=old", between: []string{"a=old", "a=oldne"}},
		{name: "a file that was cut and synced is short, and goes on there", tell: func(s story) {
			f := s.safe("dir/a", "long")
			s.must(f.Truncate(1))
			s.must(f.Sync())
			s.write(f, "!")
		}, nothing: "a=l", at100: "a=l!"},
		{name: "what a sync that failed should have made safe is lost, whatever the next one says", tell: func(s story) {
			f := s.safe("dir/a", "old")
			s.write(f, "new")
			s.d.Before(From(1))
			if err := f.Sync(); err == nil {
				s.Error("it did not fail")
			}
			s.d.Before(nil)
			s.must(f.Sync())
		}, nothing: "a=old\x00\x00\x00", at100: "a=old\x00\x00\x00", shown: "a=oldnew"},
		{name: "unless it is written again", tell: func(s story) {
			f := s.safe("dir/a", "old")
			s.write(f, "new")
			s.d.Before(From(1))
			if err := f.Sync(); err == nil {
				s.Error("it did not fail")
			}
			s.d.Before(nil)
			_, err := f.WriteAt([]byte("new"), 3)
			s.must(err)
			s.must(f.Sync())
		}, nothing: "a=oldnew", at100: "a=oldnew"},
		{name: "what was written over is one or the other", tell: func(s story) {
			_, err := s.safe("dir/a", "old").WriteAt([]byte("new"), 0)
			s.must(err)
		}, nothing: "a=old", at100: "a=new", between: []string{"a=old", "a=new"}},
		{name: "a file opened again goes on at its end", tell: func(s story) {
			s.must(s.safe("dir/a", "1").Close())
			f, err := s.d.Append("dir/a")
			s.must(err)
			s.write(f, "2")
			s.must(f.Sync())
		}, nothing: "a=12", at100: "a=12"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := begin(t)
			c.tell(s)
			if got := holds(t, s.d.Cut(Nothing)); got != c.nothing {
				t.Errorf("with nothing that was not synced there is %q, want %q", got, c.nothing)
			}
			if got := holds(t, s.d.Cut(Everything)); got != c.at100 {
				t.Errorf("with everything there is %q, want %q", got, c.at100)
			}
			if shown := holds(t, s.d); shown != cmp.Or(c.shown, c.at100) {
				t.Errorf("without a cut there is %q, want %q", shown, cmp.Or(c.shown, c.at100))
			}
			seen := map[string]bool{}
			for seed := range uint64(300) {
				got := holds(t, s.d.Cut(Survival{50, rand.New(rand.NewPCG(seed, 0))}))
				seen[got] = true
				if again := holds(t, s.d.Cut(Survival{50, rand.New(rand.NewPCG(seed, 0))})); again != got {
					t.Fatalf("seed %d made %q, and then %q", seed, got, again)
				}
			}
			for _, want := range c.between {
				if !seen[want] {
					t.Errorf("%q was never found, only %v", want, seen)
				}
			}
		})
	}
}

func TestWhatACutLeavesIsSafe(t *testing.T) {
	s := begin(t)
	s.write(s.safe("dir/a", "old"), "new")
	once := s.d.Cut(Everything)
	if got := holds(t, once.Cut(Nothing)); got != "a=oldnew" {
		t.Errorf("after a second cut there is %q", got)
	}
}

func TestAnOperationFailsWhenItIsTold(t *testing.T) {
	s := begin(t)
	f := s.safe("dir/a", "")
	s.d.Before(Nth(2, Write))
	s.write(f, "1111")
	n, err := io.WriteString(f, "2222")
	if n != 2 || !errors.Is(err, ErrInjected) {
		t.Errorf("the second write wrote %d, %v", n, err)
	}
	s.write(f, "3333")
	s.d.Before(From(2))
	s.must(f.Sync())
	for range 2 {
		if err := f.Sync(); !errors.Is(err, ErrInjected) {
			t.Errorf("a later operation: %v", err)
		}
	}
	s.d.Before(nil)
	if got := holds(t, s.d); got != "a=1111223333" {
		t.Errorf("it holds %q", got)
	}
	if all, writes := s.d.Ops(), s.d.Ops(Write); writes != 4 || all <= writes {
		t.Errorf("%d operations, %d writes", all, writes)
	}
}

func TestADiskThatIsFull(t *testing.T) {
	s := begin(t)
	s.d.Limit(10)
	f := s.create("dir/a")
	s.must(f.Reserve(6))
	g := s.create("dir/b")
	n, err := io.WriteString(g, "12345")
	if n != 4 || !errors.Is(err, local.ErrFull) {
		t.Errorf("wrote %d into what is not reserved, %v", n, err)
	}
	s.write(f, "123456")
	if err := f.Reserve(7); !errors.Is(err, local.ErrFull) {
		t.Errorf("reserved what is not there: %v", err)
	}
	if _, err := s.d.Create("dir/c"); !errors.Is(err, local.ErrFull) {
		t.Errorf("made a file: %v", err)
	}
	if overs := s.d.Overruns(); len(overs) != 1 || overs[0] != (Overrun{"dir/b", 0}) {
		t.Errorf("what did not fit: %v", overs)
	}
	s.must(s.d.Remove("dir/b"))
	s.must(f.Reserve(10))
	s.must(f.Truncate(6))
	if used := s.d.Used(); used != 6 {
		t.Errorf("%d bytes are in use after what was reserved was given back", used)
	}
	s.d.Unreserving()
	if err := f.Reserve(8); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("reserved where that cannot be: %v", err)
	}
}

func TestABitFlips(t *testing.T) {
	s := begin(t)
	s.safe("dir/a", "aa")
	s.must(s.d.Flip("dir/a", 9))
	if got := holds(t, s.d.Cut(Nothing)); got != "a=ac" {
		t.Errorf("it holds %q", got)
	}
	if err := s.d.Flip("dir/a", 16); err == nil {
		t.Error("a bit flipped that is not there")
	}
}

func TestErrorsAndLocksAreThoseOfAFileSystem(t *testing.T) {
	s := begin(t)
	for name, f := range map[string]func() error{
		"open":   func() error { _, err := s.d.Open("dir/a"); return err },
		"append": func() error { _, err := s.d.Append("dir/a"); return err },
		"remove": func() error { return s.d.Remove("dir/a") },
		"rename": func() error { return s.d.Rename("dir/a", "dir/b") },
		"list":   func() error { _, err := s.d.List("other"); return err },
	} {
		if err := f(); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s what is not there: %v", name, err)
		}
	}
	lock, err := s.d.Lock("dir/lock")
	s.must(err)
	var inUse *local.InUseError
	if _, err := s.d.Lock("dir/lock"); !errors.As(err, &inUse) || inUse.Dir != "dir" {
		t.Errorf("locked twice: %v", err)
	}
	if other, err := s.d.Cut(Everything).Lock("dir/lock"); err != nil {
		t.Errorf("the lock outlived the power: %v", err)
	} else {
		s.must(other.Close())
	}
	s.must(lock.Close())
	if lock, err = s.d.Lock("dir/lock"); err != nil {
		t.Error(err)
	}
	s.must(lock.Close())
}
