package registry

import (
	"testing"

	"github.com/pawl-dev/pawl/kv"
)

func TestDecide(t *testing.T) {
	lax := leave{unconditional: true}
	strict := leave{}
	creative := leave{create: true}
	anything := leave{create: true, unconditional: true}
	for _, c := range []struct {
		name          string
		stored, named kv.Revision
		may           leave
		want          outcome
	}{
		{"nothing is stored and an update may not create (S44)", kv.Absent, unnamed, strict, notFound},
		{"nothing is stored, and naming a version does not help", kv.Absent, 7, strict, notFound},
		{"nothing is stored, and leave to write unconditionally is no leave to create", kv.Absent, unnamed, lax, notFound},
		{"nothing is stored and an update may create (S46)", kv.Absent, unnamed, creative, creates},
		{"nothing is stored, an update may create, and the version named is ignored (S46a)", kv.Absent, 7, creative, creates},
		{"nothing is stored and everything is allowed", kv.Absent, 7, anything, creates},
		{"nobody wrote in between", 7, 7, strict, updates},
		{"nobody wrote in between, and all leave is given", 7, 7, anything, updates},
		{"the sender names no version and need not (S48)", 7, unnamed, lax, updates},
		{"the sender names no version and must (S49)", 7, unnamed, strict, invalid},
		{"leave to create is no leave to write unconditionally", 7, unnamed, creative, invalid},
		{"somebody did write in between (S50)", 7, 5, strict, conflict},
		{"leave to write unconditionally does not excuse a version that is named and wrong", 7, 5, lax, conflict},
		{"leave to create does not excuse a version that is named and wrong", 7, 5, anything, conflict},
		{"a version from the future is as wrong as one from the past", 7, 9, strict, conflict},
		{"somebody did write in between, and the sender wants its change done all the same", 7, 5, leave{rebase: true}, rebases},
		{"leave to be rebased does not matter to who is up to date", 7, 7, leave{rebase: true}, updates},
		{"who wants to be rebased must say from where", 7, unnamed, leave{rebase: true}, invalid},
		{"who wants to be rebased must say from where, even who could write unconditionally", 7, unnamed, leave{rebase: true, unconditional: true}, invalid},
		{"leave to be rebased creates nothing", kv.Absent, 5, leave{rebase: true}, notFound},
	} {
		if got := decide(c.stored, c.named, c.may); got != c.want {
			t.Errorf("%s: decide(%d, %d, %+v) = %d, want %d", c.name, c.stored, c.named, c.may, got, c.want)
		}
	}
}

// The table of decide is complete: every combination of what it looks at has one outcome,
// and it is the one that the four sentences of DESIGN give.
func TestDecideIsTotal(t *testing.T) {
	for _, stored := range []kv.Revision{kv.Absent, 7} {
		for _, named := range []kv.Revision{unnamed, 5, 7, 9} {
			for _, may := range []leave{
				{}, {create: true}, {unconditional: true}, {create: true, unconditional: true},
				{rebase: true}, {create: true, rebase: true}, {unconditional: true, rebase: true}, {true, true, true},
			} {
				want := map[bool]outcome{true: creates, false: notFound}[may.create]
				if stored != kv.Absent {
					want = map[bool]outcome{true: rebases, false: conflict}[may.rebase]
					if named == stored {
						want = updates
					}
					if named == unnamed {
						want = map[bool]outcome{true: updates, false: invalid}[may.unconditional && !may.rebase]
					}
				}
				if got := decide(stored, named, may); got != want {
					t.Errorf("decide(%d, %d, %+v) = %d, want %d", stored, named, may, got, want)
				}
			}
		}
	}
}

func TestSettle(t *testing.T) {
	for _, c := range []struct {
		name string
		h    holding
		want aftermath
	}{
		{"an ordinary object stays", holding{}, replaces},
		{"an ordinary object without finalizers stays, held or not", holding{held: true}, replaces},
		{"an ordinary object with finalizers stays", holding{finalizers: 2}, replaces},
		{"the last finalizer of an object being deleted went (S70)", holding{deleting: true}, removes},
		{"a finalizer is left", holding{deleting: true, finalizers: 1}, replaces},
		{"its strategy holds it", holding{deleting: true, held: true}, replaces},
		{"its grace period is not over (S71)", holding{deleting: true, grace: 30}, replaces},
		{"both a finalizer and the strategy hold it", holding{deleting: true, finalizers: 1, held: true}, replaces},
	} {
		if got := settle(c.h); got != c.want {
			t.Errorf("%s: settle(%+v) = %d, want %d", c.name, c.h, got, c.want)
		}
	}
}

func TestDoom(t *testing.T) {
	for _, c := range []struct {
		name    string
		h       holding
		changes bool
		want    fate
	}{
		{"nothing holds it (S100)", holding{}, false, goes},
		{"nothing holds it once the delete has dropped a finalizer (S100)", holding{}, true, goes},
		{"it was being deleted, and nothing holds it any more (S87)", holding{deleting: true}, false, goes},
		{"a finalizer holds it (S97)", holding{finalizers: 1}, false, marked},
		{"the strategy holds it", holding{held: true}, false, marked},
		{"it is being deleted already (S98)", holding{deleting: true, finalizers: 1}, false, lingers},
		{"it is being deleted already and its strategy holds it", holding{deleting: true, held: true}, false, lingers},
		{"it is being deleted already, and the delete drops one of its finalizers (S93)", holding{deleting: true, finalizers: 1}, true, rewritten},
	} {
		if got := doom(c.h, c.changes); got != c.want {
			t.Errorf("%s: doom(%+v, %v) = %d, want %d", c.name, c.h, c.changes, got, c.want)
		}
	}
}
