package pawl

import (
	"context"
	"errors"
	"strings"
	"testing"

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

func (drawer) Lead(context.Context, string, func(context.Context)) { panic("nobody is to lead") }
func (drawer) Measure() mvcc.Measures                              { return mvcc.Measures{} }

func TestKeysOfASharedStoreAreMadeOnce(t *testing.T) {
	d := drawer{kept: map[string][]byte{}}
	var tokens []string
	for range 2 {
		files, err := sharedKeys(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		keys, err := pki.Open(pki.Options{Kept: files})
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
		if _, err := sharedKeys(t.Context(), d); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
