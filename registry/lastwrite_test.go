package registry

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Two read a lamp that was used once, and one after the other writes that it was used once more. What names the
// version that was read, or reads again, loses neither use; what does not, loses one and nobody is told.
func TestWhatNamesNoVersionIsLastWriteWins(t *testing.T) {
	lax, strict := Policy{UnconditionalUpdate: true}, Policy{}
	anonymous := func(l lamp) *lamp { l.ResourceVersion = ""; l.Uses++; return &l }
	for _, c := range []struct {
		name   string
		policy Policy
		write  func(ctx context.Context, c *Collection[lamp], read lamp) error
		reason metav1.StatusReason // of the second's refusal
		uses   int
	}{
		{"Replace of what was read", lax, func(ctx context.Context, c *Collection[lamp], read lamp) error {
			read.Uses++
			_, err := c.Replace(ctx, &read)
			return err
		}, metav1.StatusReasonConflict, 2},
		{"Replace that names no version", lax, func(ctx context.Context, c *Collection[lamp], read lamp) error {
			_, err := c.Replace(ctx, anonymous(read))
			return err
		}, "", 2},
		{"Replace that names no version, and must", strict, func(ctx context.Context, c *Collection[lamp], read lamp) error {
			_, err := c.Replace(ctx, anonymous(read))
			return err
		}, metav1.StatusReasonInvalid, 1},
		{"Replace that may be rebased", lax, func(ctx context.Context, c *Collection[lamp], read lamp) error {
			read.Uses++
			_, err := c.Replace(ctx, &read, UpdateOptions{Rebase: true})
			return err
		}, metav1.StatusReasonConflict, 2},
		{"Update from what exists", strict, func(ctx context.Context, c *Collection[lamp], read lamp) error {
			_, err := c.Update(ctx, "one", func(l *lamp) error { l.Uses++; return nil })
			return err
		}, "", 3},
		{"Update to what was computed before", strict, func(ctx context.Context, c *Collection[lamp], read lamp) error {
			_, err := c.Update(ctx, "one", func(l *lamp) error { l.Uses = read.Uses + 1; return nil })
			return err
		}, "", 2},
		{"a transaction that replaces what was read", strict, func(ctx context.Context, c *Collection[lamp], read lamp) error {
			read.Uses++
			_, err := Transact(ctx, c.Replaces(&read))
			return err
		}, metav1.StatusReasonConflict, 2},
		{"a transaction that updates to what was computed before", strict, func(ctx context.Context, c *Collection[lamp], read lamp) error {
			_, err := Transact(ctx, c.Updates("one", func(l *lamp) error { l.Uses = read.Uses + 1; return nil }))
			return err
		}, "", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			all := Of(memory(t), DefaultFor[lamp]{Policies: c.policy})
			first := newLamp("one", "red")
			first.Uses = 1
			read := must(all.Create(t.Context(), first))
			if err := c.write(t.Context(), all, *read); err != nil && c.reason != metav1.StatusReasonInvalid {
				t.Fatalf("the first: %v", err)
			}
			if err := c.write(t.Context(), all, *read); apierrors.ReasonForError(err) != c.reason || (err == nil) != (c.reason == "") {
				t.Errorf("the second: %v, want %q", err, c.reason)
			}
			if got, err := all.Get(t.Context(), "one"); err != nil || got.Uses != c.uses {
				t.Errorf("used %d times, want %d; %v", got.Uses, c.uses, err)
			}
		})
	}
}
