package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/pawl-dev/pawl/internal/objectjson"
	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/storage"
)

// A ConflictError refuses a write that was made against an older version (rule S50). It is
// an API status like any other; what stands in the way is worked out when [ConflictError.Explain]
// is called, and not before.
type ConflictError struct {
	status  *apierrors.StatusError
	store   *Store
	seen    kv.Revision     // the version the writer had read
	current storage.Version // the version that exists
	sent    runtime.Object  // the object the writer wanted; nil of one who only looks
	patched bool            // it was computed from current, so what differs from that is what it changes
	removes bool            // the writer wanted the object gone; there is no sent
}

// Error is the reference's message.
func (e *ConflictError) Error() string { return e.status.Error() }

// Status is the reference's answer, without an explanation.
func (e *ConflictError) Status() metav1.Status { return e.status.Status() }

// Current returns the version that stood in the way.
func (e *ConflictError) Current() storage.Version { return e.current }

// Seen returns the version that the writer had read.
func (e *ConflictError) Seen() kv.Revision { return e.seen }

// contended tells the observer of the table if err is a conflict.
func (s *Store) contended(ctx context.Context, err error) {
	if c, ok := errors.AsType[*ConflictError](err); ok {
		s.table.Observe(storage.Conflicted, c.current.Namespace(), c.current.Name(), storage.AuthorFrom(ctx).Manager)
	}
}

const conflictText = "the object has been modified; please apply your changes to the latest version and try again"

func (s *Store) conflict(current storage.Version, seen kv.Revision, sent runtime.Object, patched bool) error {
	return &ConflictError{
		status: apierrors.NewConflict(s.resource, current.Name(), errors.New(conflictText)),
		store:  s, seen: seen, current: current, sent: sent, patched: patched,
	}
}

// CauseFieldChanged is the reason of the causes that explain a conflict.
const CauseFieldChanged metav1.CauseType = "FieldChanged"

// explainedFieldsMax is how many fields an explanation names.
const explainedFieldsMax = 20

// An Explanation says what changed between the version a refused writer had read and the one
// that exists.
type Explanation struct {
	// Unknown says why nothing can be said, in words for people; then Fields is empty.
	Unknown string
	// Fields are those that changed: first those that the refused write changes too, then
	// by path.
	Fields []FieldChange
}

// A FieldChange is one field that somebody else changed.
type FieldChange struct {
	Path        string // as in rule H143: .spec.containers[name="app"].image
	User        string // who changed it; not for everybody's eyes
	Manager     string // as whom
	Operation   string // Update, Apply or Delete
	Subresource string // "" for the object's own endpoint
	Time        time.Time
	Contended   bool // the refused write changes it too
}

// String reads like `changed by "kubectl-edit" (Update, 2026-11-30T12:00:00Z); this write
// changes it too`.
func (c FieldChange) String() string {
	sub := ""
	if c.Subresource != "" {
		sub = fmt.Sprintf(", subresource %q", c.Subresource)
	}
	touch := "this write does not touch it"
	if c.Contended {
		touch = "this write changes it too"
	}
	return fmt.Sprintf("changed by %q (%s%s, %s); %s", c.Manager, c.Operation, sub, c.Time.UTC().Format(time.RFC3339), touch)
}

// Causes are the explanation as causes of a Status.
func (x Explanation) Causes() []metav1.StatusCause {
	if x.Unknown != "" {
		return []metav1.StatusCause{{Type: CauseFieldChanged, Message: x.Unknown}}
	}
	shown := x.Fields[:min(len(x.Fields), explainedFieldsMax)]
	causes := make([]metav1.StatusCause, 0, len(shown)+1)
	for _, f := range shown {
		causes = append(causes, metav1.StatusCause{Type: CauseFieldChanged, Field: f.Path, Message: f.String()})
	}
	if more := len(x.Fields) - len(shown); more > 0 {
		causes = append(causes, metav1.StatusCause{Type: CauseFieldChanged, Message: fmt.Sprintf("and %d more fields", more)})
	}
	return causes
}

// Summary is the explanation in one line, for people who do not see causes; "" if there is
// nothing to say.
func (x Explanation) Summary() string {
	if x.Unknown != "" {
		return x.Unknown
	}
	if len(x.Fields) == 0 {
		return ""
	}
	const shownMax = 3
	var parts []string
	for _, f := range x.Fields[:min(len(x.Fields), shownMax)] {
		parts = append(parts, f.Path+" "+f.String())
	}
	text := strings.Join(parts, ". ")
	if more := len(x.Fields) - shownMax; more > 0 {
		text += fmt.Sprintf(". And %d more fields", more)
	}
	return "since you read it: " + text
}

// The reasons for which nothing can be said.
const (
	versionForgotten = "the version this write was based on is no longer kept, so what changed since is not known"
	objectRecreated  = "the object this write was based on was deleted, and another was created under its name"
	objectYounger    = "the version this write names is older than the object"
)

// Explain works out what changed since the writer read. It reads nothing but history that is
// kept in memory. A writer who named a version that never was gets an empty explanation.
func (e *ConflictError) Explain(ctx context.Context) (Explanation, error) {
	if e.seen > e.current.Revision() {
		return Explanation{}, nil
	}
	if e.seen < e.current.Created() {
		return Explanation{Unknown: e.beforeCreation()}, nil
	}
	seen := e.current.At(e.seen)
	switch {
	case !seen.Exists():
		return Explanation{Unknown: versionForgotten}, nil
	case seen.Revision() != e.seen:
		return Explanation{}, nil
	}
	net, err := e.store.compare(seen, e.current)
	if err != nil {
		return Explanation{}, err
	}
	var touched []fieldpath.Path // nothing, by who only looks
	switch {
	case e.removes:
		touched = net // a delete changes all there is
	case e.sent != nil:
		touched, err = e.touched(ctx, seen)
	}
	if err != nil {
		return Explanation{}, err
	}
	x := Explanation{}
	if x.Fields, err = e.store.attribute(ctx, net, e.current, e.seen); err != nil {
		return Explanation{}, err
	}
	if slices.ContainsFunc(x.Fields, func(c FieldChange) bool { return c.Operation == "" }) {
		return Explanation{Unknown: versionForgotten}, nil // history was cut while we walked it
	}
	for i, path := range net {
		x.Fields[i].Contended = slices.ContainsFunc(touched, func(p fieldpath.Path) bool { return related(p, path) })
	}
	slices.SortStableFunc(x.Fields, func(a, b FieldChange) int {
		return cmp.Or(compareBool(b.Contended, a.Contended), cmp.Compare(a.Path, b.Path))
	})
	return x, nil
}

// beforeCreation says what it means that the version seen is older than the object: that there
// was another of its name, unless history goes back that far and knows of none.
func (e *ConflictError) beforeCreation() string {
	v := e.current
	for v.Exists() && v.Revision() > e.current.Created() {
		v = v.Prev()
	}
	oldest, _ := e.store.table.Engine().Revisions()
	if known := v.Exists() && oldest <= e.seen; known && !v.Prev().Exists() {
		return objectYounger
	}
	return objectRecreated
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// touched returns the fields that the refused write changes: in the version it was based on
// or, if it is a patch, in the one that the patch was applied to. What this endpoint puts
// back whatever is sent is not touched.
func (e *ConflictError) touched(ctx context.Context, seen storage.Version) ([]fieldpath.Path, error) {
	if e.patched {
		seen = e.current
	}
	old, _, err := decode(seen)
	if err != nil {
		return nil, err
	}
	wanted := e.sent.DeepCopyObject()
	e.store.prepareSuccessor(ctx, wanted, old)
	a, err := fieldsOf(old)
	if err != nil {
		return nil, err
	}
	b, err := fieldsOf(wanted)
	if err != nil {
		return nil, err
	}
	return e.store.fields.Compare(a, b), nil
}

// compare returns the fields in which two versions of one object differ.
func (s *Store) compare(a, b storage.Version) ([]fieldpath.Path, error) {
	am, err := contentOf(a)
	if err != nil {
		return nil, err
	}
	bm, err := contentOf(b)
	if err != nil {
		return nil, err
	}
	return s.fields.Compare(am, bm), nil
}

func contentOf(v storage.Version) (map[string]any, error) {
	obj, err := v.Object()
	if err != nil {
		return nil, err
	}
	return fieldsOf(obj)
}

// fieldsOf is an object as decoded JSON, without what no writer owns (rule H149).
func fieldsOf(obj runtime.Object) (map[string]any, error) {
	obj = obj.DeepCopyObject()
	acc, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	acc.SetResourceVersion("")
	acc.SetGeneration(0)
	acc.SetManagedFields(nil)
	acc.SetSelfLink("")
	acc.SetUID("")
	acc.SetCreationTimestamp(metav1.Time{})
	m, err := objectjson.Of(obj)
	if err != nil {
		return nil, err
	}
	if md, ok := m["metadata"].(map[string]any); ok {
		delete(md, "creationTimestamp")
	}
	delete(m, "kind")
	delete(m, "apiVersion")
	return m, nil
}

// attribute finds, for each path, the last change to it on the way back from current to the
// version seen. It stops as soon as all have been found.
func (s *Store) attribute(ctx context.Context, paths []fieldpath.Path, current storage.Version, seen kv.Revision) ([]FieldChange, error) {
	found := make([]FieldChange, len(paths))
	for i, p := range paths {
		found[i].Path = p.String()
	}
	left := len(paths)
	for v := current; left > 0 && v.Revision() > seen; v = v.Prev() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		before := v.Prev()
		if !before.Exists() {
			break
		}
		changed, err := s.compare(before, v)
		if err != nil {
			return nil, err
		}
		for i, p := range paths {
			if found[i].Operation == "" && slices.ContainsFunc(changed, func(c fieldpath.Path) bool { return related(c, p) }) {
				found[i].by(v)
				left--
			}
		}
	}
	return found, nil
}

// by notes who made version v.
func (c *FieldChange) by(v storage.Version) {
	a := v.Author()
	c.User, c.Manager, c.Subresource, c.Time = a.User, a.Manager, a.Subresource, v.Time()
	switch a.Verb {
	case "apply":
		c.Operation = "Apply"
	case "delete":
		c.Operation = "Delete"
	default:
		c.Operation = "Update"
	}
}
