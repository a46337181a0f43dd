package counting

import (
	"context"
	"errors"
	"runtime"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/registry"
)

// A gauge has a number that all count up, and parts that have one owner each.
type gauge struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	N                 int            `json:"n"`
	Parts             map[string]int `json:"parts,omitempty"`
}

// DeepCopyObject makes a gauge a runtime.Object.
func (g *gauge) DeepCopyObject() kruntime.Object {
	c := *g
	g.DeepCopyInto(&c.ObjectMeta)
	c.Parts = map[string]int{}
	for name, n := range g.Parts {
		c.Parts[name] = n
	}
	return &c
}

// Two collections of gauges are two stores of one engine.
type two struct{ left, right *registry.Collection[gauge] }

// turned are the same two, the other way round.
func (s two) turned() two { return two{s.right, s.left} }

// lax lets an update name no version.
type lax struct{ registry.DefaultFor[gauge] }

func storesOf(engine kv.Engine) two {
	strategy := lax{registry.DefaultFor[gauge]{Policies: registry.Policy{UnconditionalUpdate: true}}}
	return two{
		registry.Of(engine, strategy, registry.CollectionOptions[gauge]{Plural: "lefts"}),
		registry.Of(engine, strategy, registry.CollectionOptions[gauge]{Plural: "rights"}),
	}
}

// attempts is how often an update is tried that reads again: a store that is broken may refuse forever.
const attempts = 100

// A way counts up the number of an object of the left store.
type way struct {
	name string
	pair bool // and that of the right store with it
	up   counting
}

// A counting returns the numbers that it made: of the left store, and of the right one if there is a pair.
type counting func(ctx context.Context, s two, name string) ([]int, error)

// errMoved is what a patch says that finds another number than the one it tests for.
var errMoved = errors.New("the number is another by now")

// get reads an object, and lets others write before it returns.
func get(ctx context.Context, c *registry.Collection[gauge], name string) (*gauge, error) {
	g, err := c.Get(ctx, name)
	runtime.Gosched()
	return g, err
}

// update is a way that has the left store update what exists.
func update(o registry.UpdateOptions, desire func(read, current *gauge) (*gauge, error)) counting {
	o.Attempts = attempts
	return func(ctx context.Context, s two, name string) ([]int, error) {
		read, err := get(ctx, s.left, name)
		if err != nil {
			return nil, err
		}
		did, err := s.left.Store().Update(ctx, "", name, func(_ context.Context, current kruntime.Object) (kruntime.Object, error) {
			return desire(read.DeepCopyObject().(*gauge), current.(*gauge))
		}, o)
		if err != nil {
			return nil, err
		}
		obj, err := did.Version.Object()
		if err != nil {
			return nil, err
		}
		return []int{obj.(*gauge).N}, nil
	}
}

// whole is what was read with the next number, and so with the version that was read.
func whole(read, _ *gauge) (*gauge, error) {
	read.N++
	return read, nil
}

// patched is what exists with the number after the one that was read, and with the version that was.
func patched(read, current *gauge) (*gauge, error) {
	current.N, current.ResourceVersion = read.N+1, read.ResourceVersion
	return current, nil
}

// again counts from what exists.
func again(_, current *gauge) (*gauge, error) {
	current.N++
	return current, nil
}

// tested is what exists with the next number, if that is still the one that was read.
func tested(read, current *gauge) (*gauge, error) {
	if current.N != read.N {
		return nil, errMoved
	}
	return again(read, current)
}

// replace is a way that puts what was read in its place, with the next number.
func replace(o registry.UpdateOptions) counting {
	return func(ctx context.Context, s two, name string) ([]int, error) {
		read, err := get(ctx, s.left, name)
		if err != nil {
			return nil, err
		}
		read.N++
		return number(s.left.Replace(ctx, read, o))
	}
}

func number(g *gauge, err error) ([]int, error) {
	if err != nil {
		return nil, err
	}
	return []int{g.N}, nil
}

// up is a change for those who read again.
func up(g *gauge) error { g.N++; return nil }

// transact is a way that makes a transaction.
func transact(members func(ctx context.Context, s two, name string) ([]registry.Member, error)) counting {
	return func(ctx context.Context, s two, name string) ([]int, error) {
		all, err := members(ctx, s, name)
		if err != nil {
			return nil, err
		}
		done, err := registry.Transact(ctx, all...)
		if err != nil {
			return nil, err
		}
		var made []int
		for i := range done.Members {
			g, err := s.left.Transacted(done, i)
			if err != nil {
				return nil, err
			}
			made = append(made, g.N)
		}
		return made, nil
	}
}

// bothRead reads an object of each store, one after the other.
func bothRead(ctx context.Context, s two, name string) (l, r *gauge, err error) {
	if l, err = s.left.Get(ctx, name); err == nil {
		r, err = get(ctx, s.right, name)
	}
	return l, r, err
}

var limited = registry.UpdateOptions{Attempts: attempts}

// ways are those that name what was read, or read it again.
var ways = []way{
	{"Replace of what was read", false, replace(registry.UpdateOptions{})},
	{"Replace that may be rebased", false, replace(registry.UpdateOptions{Rebase: true})},
	{"Update of a collection", false, func(ctx context.Context, s two, name string) ([]int, error) {
		return number(s.left.Update(ctx, name, up, limited))
	}},
	{"Update to what was read", false, update(registry.UpdateOptions{}, whole)},
	{"Update to what was read that may be rebased", false, update(registry.UpdateOptions{Rebase: true}, whole)},
	{"Update from what exists", false, update(registry.UpdateOptions{}, again)},
	{"a patch that names a version", false, update(registry.UpdateOptions{Patch: true}, patched)},
	{"a patch that names a version and may be rebased", false, update(registry.UpdateOptions{Patch: true, Rebase: true}, patched)},
	{"a patch that tests the number", false, update(registry.UpdateOptions{Patch: true}, tested)},
	{"a transaction of one", false, transact(func(ctx context.Context, s two, name string) ([]registry.Member, error) {
		return []registry.Member{s.left.Updates(name, up, limited)}, nil
	})},
	{"a transaction beside a check", false, transact(func(ctx context.Context, s two, name string) ([]registry.Member, error) {
		read, err := get(ctx, s.left, name)
		if err != nil {
			return nil, err
		}
		read.N++
		exists := func(g *gauge) error {
			if g == nil {
				return errMoved
			}
			return nil
		}
		return []registry.Member{s.left.Replaces(read), s.right.Checks(paired, exists)}, nil
	})},
	{"updates in both stores", true, transact(func(ctx context.Context, s two, name string) ([]registry.Member, error) {
		return []registry.Member{s.left.Updates(name, up, limited), s.right.Updates(name, up, limited)}, nil
	})},
	{"replaces in both stores", true, transact(func(ctx context.Context, s two, name string) ([]registry.Member, error) {
		l, r, err := bothRead(ctx, s, name)
		if err != nil {
			return nil, err
		}
		l.N++
		r.N++
		return []registry.Member{s.left.Replaces(l), s.right.Replaces(r)}, nil
	})},
	{"an update in one and a replace in the other", true, transact(func(ctx context.Context, s two, name string) ([]registry.Member, error) {
		r, err := get(ctx, s.right, name)
		if err != nil {
			return nil, err
		}
		r.N++
		return []registry.Member{s.left.Updates(name, up, limited), s.right.Replaces(r)}, nil
	})},
	{"an update by what the member before it did", true, transact(func(ctx context.Context, s two, name string) ([]registry.Member, error) {
		step := 0
		return []registry.Member{
			s.left.Updates(name, func(g *gauge) error { step = 1; return up(g) }, limited),
			s.right.Updates(name, func(g *gauge) error { g.N, step = g.N+step, 0; return nil }, limited),
		}, nil
	})},
}

// blind is a way that reads a number and then writes the next, whatever exists by then.
var blind = way{"Replace that names no version", false, func(ctx context.Context, s two, name string) ([]int, error) {
	read, err := get(ctx, s.left, name)
	if err != nil {
		return nil, err
	}
	read.N, read.ResourceVersion = read.N+1, ""
	return number(s.left.Replace(ctx, read))
}}
