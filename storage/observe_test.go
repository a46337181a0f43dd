package storage

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/pawl-dev/pawl/kv"
)

type observed []string

func (o *observed) Observe(what Contention, at Place, manager string) {
	names := map[Contention]string{Conflicted: "conflicted", Retried: "retried", Unchanged: "unchanged"}
	*o = append(*o, fmt.Sprintf("%s: %s %s/%s by %s", names[what], at.Resource, at.Namespace, at.Name, manager))
}

func TestTheObserverIsToldWhoGetsInWhoseWay(t *testing.T) {
	leave := func(context.Context, Version, *View) (Verdict, error) { return Verdict{}, nil }
	for _, tt := range []struct {
		name   string
		races  int // that are lost first
		judge  Judge
		dryRun bool
		want   []string
	}{
		{"a write that nobody is in the way of", 0, putting(thing("a", "one", "new")), false, nil},
		{"a write that loses two races", 2, putting(thing("a", "one", "new")), false, []string{"retried: configmaps a/one by kubectl", "retried: configmaps a/one by kubectl"}},
		{"a write that would change nothing", 0, putting(thing("a", "one", "first")), false, []string{"unchanged: configmaps a/one by kubectl"}},
		{"a dry run that would change nothing", 0, putting(thing("a", "one", "first")), true, nil},
		{"a verdict to leave it as it is", 0, leave, false, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t)
			var told observed
			f.observer = &told
			f.put(thing("a", "one", "first"))
			races := tt.races
			ctx := WithAuthor(t.Context(), kv.Author{Manager: "kubectl"})
			_, err := f.Modify(ctx, "a", "one", tt.dryRun, func(ctx context.Context, current Version, view *View) (Verdict, error) {
				if races > 0 {
					races--
					f.put(thing("a", "one", fmt.Sprint("other ", races)))
				}
				return tt.judge(ctx, current, view)
			})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(told, tt.want) {
				t.Errorf("told %q, want %q", told, tt.want)
			}
		})
	}
}
