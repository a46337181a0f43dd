package registry

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/storage"
)

// A Past is one step in the history of the objects of one name.
type Past struct {
	// Type is [storage.Added] for an object that came to be, [storage.Modified] for one that was changed,
	// and [storage.Deleted] for one that went. What comes before an Added is another object.
	Type storage.EventType
	// Revision is the resourceVersion of the step.
	Revision kv.Revision
	// Version is the object as it was left; with Deleted as it last was, or none if that is no longer kept.
	Version storage.Version
	// Author is who did it, and as what; the user is not for everybody's eyes.
	Author kv.Author
	Time   time.Time
	// Fields are the paths of the fields that a Modified changed.
	Fields []string
	// Unknown says why nothing is known of the fields that a Modified changed; "" if they are known.
	Unknown string
}

// String reads like `7: MODIFIED by "ann" (update, 2026-12-01T12:00:00Z): .color .uses`.
func (p Past) String() string {
	who := p.Author.Manager
	if who == "" {
		who = p.Author.User
	}
	text := fmt.Sprintf("%d: %s by %q (%s, %s)", p.Revision, p.Type, who, p.Author.Verb, p.Time.UTC().Format(time.RFC3339))
	if p.Type == storage.Modified {
		text += ":"
	}
	for _, f := range p.Fields {
		text += " " + f
	}
	if p.Unknown != "" {
		text += " " + p.Unknown
	}
	return text
}

// History yields what is kept of the history of the objects of a name, the newest first: also of those
// that were deleted, and of those that were there before under the same name. It ends where what came
// before is no longer kept. The error is that of an object that is not known, of which nothing is kept.
func (s *Store) History(ctx context.Context, namespace, name string) iter.Seq2[Past, error] {
	return func(yield func(Past, error) bool) {
		v, err := s.last(ctx, namespace, name)
		if err != nil {
			yield(Past{}, s.refuse("get", name, err))
			return
		}
		w := walk{store: s}
		for v.Exists() {
			if ctx.Err() != nil {
				yield(Past{}, s.refuse("get", name, &storage.Error{Kind: storage.Timeout, Err: context.Cause(ctx)}))
				return
			}
			before := v.Prev() // once: what is forgotten meanwhile is gone for all that follows
			if !yield(w.step(v, before), nil) {
				return
			}
			v = before
		}
	}
}

func (s *Store) last(ctx context.Context, namespace, name string) (storage.Version, error) {
	if err := s.address(namespace, name); err != nil {
		return storage.Version{}, err
	}
	return s.table.Last(ctx, namespace, name)
}

// A walk goes back through a history. It reads each version once.
type walk struct {
	store *Store
	of    kv.Revision // the version that was read last
	read  map[string]any
}

// step is what made v of before.
func (w *walk) step(v, before storage.Version) Past {
	p := Past{Type: storage.Modified, Revision: v.Revision(), Version: v, Author: v.Author(), Time: v.Time()}
	switch {
	case v.Removed():
		p.Type, p.Version = storage.Deleted, storage.Version{}
		if before.Exists() {
			p.Version = before.As(v.Revision())
		}
	case v.Created() == v.Revision():
		p.Type = storage.Added
	case !before.Exists():
		p.Unknown = "what it was before is no longer kept"
	default:
		paths, err := w.compare(before, v)
		if err != nil {
			p.Unknown = err.Error()
		}
		p.Fields = texts(paths)
	}
	return p
}

// compare returns the fields in which v differs from the version before.
func (w *walk) compare(before, v storage.Version) ([]fieldpath.Path, error) {
	now, err := w.content(v)
	if err != nil {
		return nil, err
	}
	was, err := w.content(before)
	if err != nil {
		return nil, err
	}
	return compare(w.store.shapeOf(), was, now), nil
}

func (w *walk) content(v storage.Version) (map[string]any, error) {
	if w.read != nil && w.of == v.Revision() {
		return w.read, nil
	}
	content, err := contentOf(v)
	if err != nil {
		return nil, err
	}
	w.of, w.read = v.Revision(), content
	return content, nil
}

func texts(paths []fieldpath.Path) []string {
	var all []string
	for _, p := range paths {
		all = append(all, p.String())
	}
	slices.Sort(all)
	return all
}

// At returns an object as it was at a resourceVersion, be it one of its own or of any other object's. The
// error says that it was not there then, that such an old version is no longer kept
// (apierrors.IsResourceExpired), or that there is no such version yet.
func (s *Store) At(ctx context.Context, namespace, name, resourceVersion string) (storage.Version, error) {
	if err := s.address(namespace, name); err != nil {
		return storage.Version{}, err
	}
	rev, err := storage.ParseRevision(resourceVersion)
	if err != nil || rev == kv.Absent {
		return storage.Version{}, apierrors.NewBadRequest(fmt.Sprintf("a resourceVersion is needed to say when, and %q is none", resourceVersion))
	}
	v, err := s.table.Get(ctx, namespace, name, kv.Exactly(rev))
	if storage.IsKind(err, storage.Expired) {
		oldest, _ := s.table.Engine().Revisions()
		return storage.Version{}, apierrors.NewResourceExpired(fmt.Sprintf("what was there at resourceVersion %d is no longer kept: the oldest that is known is %d", rev, oldest))
	}
	return v, s.refuse("get", name, err)
}

// A PastOf is a [Past] of an object of a [Collection].
type PastOf[T any] struct {
	Past
	collection *Collection[T]
}

// Object returns the object as the step left it or, if it was deleted, as it last was; nil if that is no
// longer kept.
func (p PastOf[T]) Object() (*T, error) {
	if !p.Version.Exists() {
		return nil, nil
	}
	return p.collection.one("get", p.Version, nil)
}

// History yields what is kept of the history of the objects of a name, as [Store.History] does.
func (c *Collection[T]) History(ctx context.Context, name string) iter.Seq2[PastOf[T], error] {
	return func(yield func(PastOf[T], error) bool) {
		for p, err := range c.store.History(ctx, c.namespace, name) {
			if !yield(PastOf[T]{p, c}, err) {
				return
			}
		}
	}
}

// At returns an object as it was at a resourceVersion, as [Store.At] does.
func (c *Collection[T]) At(ctx context.Context, name, resourceVersion string) (*T, error) {
	v, err := c.store.At(ctx, c.namespace, name, resourceVersion)
	return c.one("get", v, err)
}
