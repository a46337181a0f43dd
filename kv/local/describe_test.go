package local_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/kv"
)

// describe tells all that can be read from e: what there is and was, by whom and when,
// and the events after a revision.
func describe(t *testing.T, e kv.Engine, after kv.Revision) string {
	t.Helper()
	var b strings.Builder
	_, newest := e.Revisions()
	fmt.Fprintf(&b, "newest %d\n", newest)
	snap, err := e.Read(t.Context(), kv.Latest)
	if err != nil {
		t.Fatal(err)
	}
	for v := range snap.Ascend("", "") {
		fmt.Fprintf(&b, "%s\n", v.Key)
		for ; v != nil && v.Revision > after; v = v.Prev() {
			fmt.Fprintf(&b, "    %s\n", version(v))
		}
	}
	for _, space := range []string{"default/", "other/"} {
		w, err := e.Watch(space, after)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range drain(t, w) {
			fmt.Fprintf(&b, "%s: %s\n", e.Version.Key, version(e.Version))
			if e.Prev != nil {
				fmt.Fprintf(&b, "    was %d\n", e.Prev.Revision)
			}
		}
		w.Stop()
	}
	return b.String()
}

func version(v *kv.Version) string {
	what := fmt.Sprintf("%q", v.Value)
	if v.Deleted {
		what = "deleted"
	}
	if !v.Expires.IsZero() {
		what += " until " + v.Expires.String()
	}
	return fmt.Sprintf("%d (made at %d) %s by %q %q %q %q: %s", v.Revision, v.Created, v.Time,
		v.By().User, v.By().Manager, v.By().Verb, v.By().Subresource, what)
}

func drain(t *testing.T, w kv.Watch) []kv.Event {
	t.Helper()
	var all []kv.Event
	for {
		e, ok, err := w.Next()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return all
		}
		all = append(all, e)
	}
}
