package pawl

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/pki"
	"github.com/pawl-dev/pawl/kv/local"
	"github.com/pawl-dev/pawl/kv/mvcc"
)

func TestWhatGoesWithASharedStore(t *testing.T) {
	down := errors.New("etcd is down")
	open := func(context.Context, SharedOptions) (SharedStore, error) { return nil, down }
	for _, c := range []struct {
		name   string
		config Config
		says   string
	}{
		{"another engine", Config{Shared: open, Engine: EngineLocal}, "the local engine keeps no shared store"},
		{"a data folder", Config{Shared: open, DataDir: "data"}, "leave out the data folder"},
		{"the engine without a store", Config{Engine: EngineShared}, "give Shared"},
		{"a store that does not open", Config{Shared: open, Engine: EngineShared}, "etcd is down"},
	} {
		c.config.Listen = "127.0.0.1:0"
		if _, err := Start(t.Context(), c.config); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", c.name, err, c.says)
		}
	}
}

// A drawer is a store that keeps things beside it; none of the rest is asked of it here.
type drawer struct {
	*local.Engine
	kept map[string][]byte
}

func (d drawer) Once(_ context.Context, name string, produce func() ([]byte, error)) ([]byte, error) {
	if d.kept[name] == nil {
		made, err := produce()
		if err != nil {
			return nil, err
		}
		d.kept[name] = made
	}
	return d.kept[name], nil
}

func (d drawer) Replace(_ context.Context, name string, was, by []byte) ([]byte, error) {
	if bytes.Equal(d.kept[name], was) {
		d.kept[name] = by
	}
	return d.kept[name], nil
}

func (drawer) Lead(context.Context, string, func(context.Context)) { panic("nobody is to lead") }
func (drawer) Measure() mvcc.Measures                              { return mvcc.Measures{} }

func TestKeysOfASharedStoreAreMadeOnce(t *testing.T) {
	d := drawer{kept: map[string][]byte{}}
	var tokens []string
	for range 2 {
		keys, err := sharedKeys(t.Context(), d, pki.Options{})
		if err != nil {
			t.Fatal(err)
		}
		tokens = append(tokens, keys.AdminToken())
	}
	if tokens[0] != tokens[1] {
		t.Error("two servers have two administrators")
	}
	for text, says := range map[string]string{`{"format":2}`: "knows only format 1", "x": "cannot be read"} {
		d.kept[identityName] = []byte(text)
		if _, err := sharedKeys(t.Context(), d, pki.Options{}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// An authority is renewed once for all servers on a store, whichever comes first: also if two come at once. The rest is what it was.
func TestARenewedAuthorityIsSharedToo(t *testing.T) {
	d := drawer{kept: map[string][]byte{}}
	first, err := sharedKeys(t.Context(), d, pki.Options{})
	if err != nil {
		t.Fatal(err)
	}
	before := string(d.kept[identityName])
	old := pki.Options{Now: func() time.Time { return time.Now().AddDate(8, 0, 0) }}
	if keys, err := sharedKeys(t.Context(), full{d}, old); err != nil || keys.Roots().Equal(first.Roots()) {
		t.Errorf("what cannot be kept is not renewed: %v", err)
	}
	var racing *pki.PKI
	second, err := sharedKeys(t.Context(), late{d, func() {
		if racing == nil {
			if racing, err = sharedKeys(t.Context(), d, old); err != nil {
				t.Fatal(err)
			}
		}
	}}, old)
	if err != nil {
		t.Fatal(err)
	}
	kept := string(d.kept[identityName])
	third, err := sharedKeys(t.Context(), d, old)
	if err != nil {
		t.Fatal(err)
	}
	if kept == before || kept != string(d.kept[identityName]) {
		t.Error("it is not kept once")
	}
	for name, other := range map[string]*pki.PKI{"the second": second, "the third": third} {
		if !other.Roots().Equal(racing.Roots()) || other.Roots().Equal(first.Roots()) {
			t.Errorf("%s has another authority", name)
		}
		if other.AdminToken() != first.AdminToken() {
			t.Errorf("%s has another administrator", name)
		}
	}
}

// late is a store where something happens before anything is replaced.
type late struct {
	drawer
	before func()
}

// full is a store without room.
type full struct{ drawer }

func (full) Replace(context.Context, string, []byte, []byte) ([]byte, error) {
	return nil, errors.New("no room")
}

func (l late) Replace(ctx context.Context, name string, was, by []byte) ([]byte, error) {
	l.before()
	return l.drawer.Replace(ctx, name, was, by)
}
