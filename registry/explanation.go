package registry

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/storage"
)

// CauseFieldChanged is the reason of the causes that explain a conflict.
const CauseFieldChanged metav1.CauseType = "FieldChanged"

// explainedFieldsMax is how many fields an explanation names.
const explainedFieldsMax = 20

// An Explanation says what changed between the version a refused writer had read and the one
// that exists.
type Explanation struct {
	// Unknown says why no field is named, in words for people; then Fields is empty.
	Unknown string
	// Fields are those that changed: first those that the refused write changes too, then
	// by path. Of a write that was to be rebased they are only those that it changes too.
	Fields []FieldChange
	// Deleted and Created say who removed the object that the writer had read, and who created the one
	// that exists, if it is another and that is still known.
	Deleted, Created Deed
}

// A Deed is who wrote something, and when.
type Deed struct {
	User        string // not for everybody's eyes
	Manager     string // as whom; "" for the server itself
	Operation   string // Update, Apply or Delete; "" if nothing is known
	Subresource string // "" for the object's own endpoint
	Time        time.Time
}

// A FieldChange is one field that somebody else changed.
type FieldChange struct {
	Path string // as in rule H143: .spec.containers[name="app"].image
	Deed
	Contended bool // the refused write changes it too
}

// deed is who made version v.
func deed(v storage.Version) Deed {
	a := v.Author()
	d := Deed{User: a.User, Manager: a.Manager, Subresource: a.Subresource, Time: v.Time(), Operation: "Update"}
	switch {
	case v.Removed() || a.Verb == "delete": // it may be a transaction that removed it
		d.Operation = "Delete"
	case a.Verb == "apply":
		d.Operation = "Apply"
	}
	return d
}

// manager is the manager's name for people.
func (d Deed) manager() string {
	if d.Manager == "" {
		return "the server"
	}
	return fmt.Sprintf("%q", d.Manager)
}

func (d Deed) when() string { return d.Time.UTC().Format(time.RFC3339) }

// String reads like `changed by "kubectl-edit" (Update, 2026-11-30T12:00:00Z); this write
// changes it too`.
func (c FieldChange) String() string {
	touch := "this write does not touch it"
	if c.Contended {
		touch = "this write changes it too"
	}
	if c.Operation == "" {
		return "changed so many versions ago that it is not known by whom; " + touch
	}
	sub := ""
	if c.Subresource != "" {
		sub = fmt.Sprintf(", subresource %q", c.Subresource)
	}
	return fmt.Sprintf("changed by %s (%s%s, %s); %s", c.manager(), c.Operation, sub, c.when(), touch)
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

// inOrder compares changes by their order in an explanation.
func inOrder(a, b FieldChange) int {
	if a.Contended != b.Contended {
		if a.Contended {
			return -1
		}
		return 1
	}
	return cmp.Compare(a.Path, b.Path)
}

// The reasons for which no field is named.
const (
	versionForgotten = "the version this write was based on is no longer kept, so what changed since is not known"
	versionNever     = "the version this write names never was one of this object; take it from the object, not from a list of objects"
	versionAhead     = "the version this write names is newer than the object: it was taken from a list or from another object, or was not read from this server since its data were restored"
	objectYounger    = "the version this write names is older than the object"
	objectAnother    = "the object that this write names by its uid is not the one that has this name now"
	objectGone       = "the object that this write names by its uid does not exist, and no other has its name"
	nothingLeft      = "no field differs from the version this write was based on: what was changed was changed back, or is nothing that a writer owns"
)

// recreated says that an object was deleted and another created under its name, and by whom if
// that is known.
func recreated(deleted, created Deed) string {
	by := func(d Deed) string {
		if d.Operation == "" {
			return ""
		}
		return fmt.Sprintf(" by %s (%s)", d.manager(), d.when())
	}
	return "the object this write was based on was deleted" + by(deleted) + ", and another was created under its name" + by(created)
}

// A relation is how the version that a writer names stands to the one that exists.
type relation uint8

const (
	earlier   relation = 1 + iota // it is an earlier one of the same object, and still kept
	forgotten                     // it is older than what is kept
	another                       // it was one of an object that was deleted
	unborn                        // it is older than the object, and there was none before
	never                         // the object had no such version
	ahead                         // it is newer than the one that exists
)

// A lineage is what is known of a version that is named and the object that exists.
type lineage struct {
	named            kv.Revision
	current, created kv.Revision // of the object that exists: its version, and its first
	found            kv.Revision // of the version that was there at the revision named; Absent if that is not known
	first            bool        // there is known to have been no object before
}

func (l lineage) relation() relation {
	switch {
	case l.named > l.current:
		return ahead
	case l.named < l.created && l.first:
		return unborn
	case l.named < l.created:
		return another
	case l.found == kv.Absent:
		return forgotten
	case l.found != l.named:
		return never
	}
	return earlier
}

// ancestor finds the version that a writer names in the history of the one that exists, and how it
// stands to it. Oldest is the oldest revision of which everything is known.
func ancestor(current storage.Version, named, oldest kv.Revision) (storage.Version, relation) {
	l := lineage{named: named, current: current.Revision(), created: current.Created()}
	if named < l.created {
		birth, before := origin(current)
		l.first = birth.Exists() && oldest <= named && !before.Exists()
	}
	found := current.At(named)
	l.found = revisionOf(found)
	return found, l.relation()
}

// origin returns the first version of an object, and what was under its name before: the mark of
// a removal. They do not exist if they are no longer kept, or nothing was.
func origin(v storage.Version) (first, before storage.Version) {
	for v.Exists() && v.Revision() > v.Created() {
		v = v.Prev()
	}
	if v.Exists() {
		before = v.Prev()
	}
	return v, before
}

func (s *Store) oldest() kv.Revision {
	oldest, _ := s.table.Engine().Revisions()
	return oldest
}

// explainRelation says why fields cannot be named.
func explainRelation(current storage.Version, how relation) Explanation {
	switch how {
	case forgotten:
		return Explanation{Unknown: versionForgotten}
	case another:
		return explainRecreated(origin(current))
	case unborn:
		return Explanation{Unknown: objectYounger}
	case ahead:
		return Explanation{Unknown: versionAhead}
	}
	return Explanation{Unknown: versionNever}
}

func explainRecreated(first, before storage.Version) Explanation {
	var x Explanation
	if first.Exists() {
		x.Created = deed(first)
	}
	if before.Exists() {
		x.Deleted = deed(before)
	}
	x.Unknown = recreated(x.Deleted, x.Created)
	return x
}

// explainIdentity says what became of the object that a write names by its UID.
func explainIdentity(current storage.Version, uid types.UID) Explanation {
	if !current.Exists() {
		return Explanation{Unknown: objectGone}
	}
	first, removal := origin(current)
	if !removal.Exists() || !removal.Prev().Exists() {
		return Explanation{Unknown: objectAnother}
	}
	if was, err := removal.Prev().Metadata(); err != nil || was.UID != uid {
		return Explanation{Unknown: objectAnother}
	}
	return explainRecreated(first, removal)
}

// marked are the changes in the order of an explanation, with those that touched holds marked.
// Nil touches everything.
func (c *changes) marked(touched *paths) []FieldChange {
	fields := slices.Clone(c.fields)
	for i := range fields {
		fields[i].Contended = touched == nil || touched.touch(c.net[i])
	}
	slices.SortStableFunc(fields, inOrder)
	return fields
}
