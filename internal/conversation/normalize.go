package conversation

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A normalizer makes the answers of one run comparable with a recording. It
// lives as long as the conversation, because uids and versions are numbered by
// their first appearance in the whole of it.
type normalizer struct {
	unique        string
	managedFields bool // keep and sort them
	now           func() time.Time

	uids      numbering
	versions  numbering
	names     numbering         // of generated names
	generated map[string]string // generated name to its prefix
	newest    uint64            // the largest version of an object seen so far
}

func newNormalizer(unique string, managedFields bool) *normalizer {
	return &normalizer{
		unique: unique, managedFields: managedFields, now: time.Now,
		uids: numbering{}, versions: numbering{}, names: numbering{}, generated: map[string]string{},
	}
}

// A numbering gives each text a number, by first appearance from 1.
type numbering map[string]int

func (n numbering) of(text string) int {
	if _, ok := n[text]; !ok {
		n[text] = len(n) + 1
	}
	return n[text]
}

// A version is the resourceVersion of an object, marked to be numbered.
type version string

// What the versions of collections become. Every other text fails.
const (
	listVersion     = "<list-rv>"
	tableVersion    = "<table-rv>"
	bookmarkVersion = "<bookmark-rv>"
)

// mark returns a copy of an answer, or of the object of an event, in which
// versions are marked and what is never compared is gone.
func (n *normalizer) mark(tree any, bookmark bool) any {
	marked := n.copy(tree)
	top, _ := marked.(map[string]any)
	meta, _ := top["metadata"].(map[string]any)
	kind, _ := top["kind"].(string)
	_, hasItems := top["items"]
	switch {
	case bookmark:
		markCollection(meta, bookmarkVersion, n.newest, "an object seen before")
	case kind == "Table":
		markCollection(meta, tableVersion, newestIn(top["rows"]), "one of its rows")
	case hasItems || strings.HasSuffix(kind, "List"):
		markCollection(meta, listVersion, newestIn(top["items"]), "one of its items")
	case kind == "Status":
		dropExplanation(top)
	}
	n.newest = max(n.newest, newestIn(marked))
	return marked
}

// copy copies a tree and marks the metadata of every object in it.
func (n *normalizer) copy(tree any) any {
	switch t := tree.(type) {
	case map[string]any:
		m := make(map[string]any, len(t))
		for name, v := range t {
			m[name] = n.copy(v)
		}
		if meta, ok := m["metadata"].(map[string]any); ok {
			n.markMetadata(meta)
		}
		return m
	case []any:
		l := make([]any, len(t))
		for i, v := range t {
			l[i] = n.copy(v)
		}
		return l
	}
	return tree
}

func (n *normalizer) markMetadata(meta map[string]any) {
	if v, _ := meta["resourceVersion"].(string); v != "" && v != "0" {
		meta["resourceVersion"] = version(v)
	}
	prefix, _ := meta["generateName"].(string)
	name, _ := meta["name"].(string)
	if prefix != "" && strings.HasPrefix(name, prefix) && len(name) == len(prefix)+generatedLength {
		n.generated[name] = prefix
	}
	if !n.managedFields {
		delete(meta, "managedFields")
	} else if fields, ok := meta["managedFields"].([]any); ok {
		slices.SortStableFunc(fields, byManager)
	}
}

// generatedLength is how many characters a server adds to generateName.
const generatedLength = 5

func byManager(a, b any) int {
	for _, name := range []string{"operation", "manager", "apiVersion", "subresource"} {
		x, _ := a.(map[string]any)[name].(string)
		y, _ := b.(map[string]any)[name].(string)
		if c := cmp.Compare(x, y); c != 0 {
			return c
		}
	}
	return 0
}

// markCollection says what the version of a collection is, and if it is older
// than something that it must know.
func markCollection(meta map[string]any, is string, newest uint64, than string) {
	v, ok := meta["resourceVersion"].(version)
	if ok {
		meta["resourceVersion"] = is
		if own, err := strconv.ParseUint(string(v), 10, 64); err != nil {
			meta["resourceVersion"] = fmt.Sprintf("%s is %q, not a number", is, string(v))
		} else if own < newest {
			meta["resourceVersion"] = fmt.Sprintf("%s is %d, older than %s, which has %d", is, own, than, newest)
		}
	}
	if token, _ := meta["continue"].(string); token != "" {
		meta["continue"] = "<continue>"
	}
}

// newestIn returns the largest version marked in a tree.
func newestIn(tree any) uint64 {
	var newest uint64
	switch t := tree.(type) {
	case map[string]any:
		for _, v := range t {
			newest = max(newest, newestIn(v))
		}
	case []any:
		for _, v := range t {
			newest = max(newest, newestIn(v))
		}
	case version:
		newest, _ = strconv.ParseUint(string(t), 10, 64)
	}
	return newest
}

// dropExplanation takes out of a Status the causes that pawl adds on purpose to
// explain a conflict. The reference has no such causes.
func dropExplanation(status map[string]any) {
	details, _ := status["details"].(map[string]any)
	causes, ok := details["causes"].([]any)
	if !ok {
		return
	}
	rest := slices.DeleteFunc(causes, func(cause any) bool {
		m, _ := cause.(map[string]any)
		return m["reason"] == "FieldChanged"
	})
	switch {
	case len(rest) == len(causes):
	case len(rest) == 0:
		delete(details, "causes")
	default:
		details["causes"] = rest
	}
}

// number returns a tree with everything that differs from run to run replaced,
// members being visited in the order of their names.
func (n *normalizer) number(tree any) any {
	switch t := tree.(type) {
	case map[string]any:
		m := make(map[string]any, len(t))
		for _, name := range slices.Sorted(maps.Keys(t)) {
			m[n.plain(name)] = n.number(t[name])
		}
		return m
	case []any:
		l := make([]any, len(t))
		for i, v := range t {
			l[i] = n.number(v)
		}
		return l
	case version:
		return n.versionName(string(t))
	case string:
		return n.text(t)
	}
	return tree
}

func (n *normalizer) versionName(v string) string {
	return fmt.Sprintf("<rv %d>", n.versions.of(v))
}

var (
	uidPattern          = regexp.MustCompile(`(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`)
	preconditionPattern = regexp.MustCompile(`(ResourceVersion in (?:the precondition|record) \()([1-9][0-9]*)(\))`)
	tooOldPattern       = regexp.MustCompile(`(?i)(too old resource version: )[0-9]+( \()[0-9]+(\))`)
	tooLargePattern     = regexp.MustCompile(`(?i)(too large resource version: )[0-9]+(, current: )[0-9]+`)
)

// text normalizes a string.
func (n *normalizer) text(s string) string {
	if t, ok := n.time(s); ok {
		return t
	}
	s = n.plain(s)
	s = uidPattern.ReplaceAllStringFunc(s, func(uid string) string {
		return fmt.Sprintf("<uid %d>", n.uids.of(strings.ToLower(uid)))
	})
	s = preconditionPattern.ReplaceAllStringFunc(s, func(found string) string {
		part := preconditionPattern.FindStringSubmatch(found)
		return part[1] + n.versionName(part[2]) + part[3]
	})
	s = tooOldPattern.ReplaceAllString(s, "${1}<n>${2}<n>${3}")
	return tooLargePattern.ReplaceAllString(s, "${1}<n>${2}<n>")
}

// plain replaces what may be in keys as well: the token and generated names.
func (n *normalizer) plain(s string) string {
	for _, name := range slices.Sorted(maps.Keys(n.generated)) {
		if strings.Contains(s, name) {
			s = strings.ReplaceAll(s, name, fmt.Sprintf("%s<generated %d>", n.generated[name], n.names.of(name)))
		}
	}
	return strings.ReplaceAll(s, n.unique, "${unique}")
}

// recent is how far from now a time may be to count as one of this run.
const recent = 48 * time.Hour

func (n *normalizer) time(s string) (string, bool) {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil || t.Sub(n.now()).Abs() > recent {
		return "", false
	}
	_, fraction, found := strings.Cut(s, ".")
	if !found {
		return "<time>", true
	}
	digits := len(fraction) - len(strings.TrimLeft(fraction, "0123456789"))
	return fmt.Sprintf("<time .%d>", digits), true
}

// kinds replaces each value by the kind of value it is.
func kinds(tree any) any {
	switch t := tree.(type) {
	case map[string]any:
		m := make(map[string]any, len(t))
		for name, v := range t {
			m[name] = kinds(v)
		}
		return m
	case []any:
		l := make([]any, len(t))
		for i, v := range t {
			l[i] = kinds(v)
		}
		return l
	case string, version:
		return "<string>"
	case json.Number:
		return "<number>"
	case bool:
		return "<bool>"
	}
	return tree
}

// sorted returns tree with its lists sorted. The order does not depend on what
// is numbered later, so that an answer and its recording are sorted alike.
func (n *normalizer) sorted(tree any) any {
	switch t := tree.(type) {
	case map[string]any:
		m := make(map[string]any, len(t))
		for name, v := range t {
			m[name] = n.sorted(v)
		}
		return m
	case []any:
		l := make([]any, len(t))
		for i, v := range t {
			l[i] = n.sorted(v)
		}
		slices.SortStableFunc(l, func(a, b any) int { return cmp.Compare(n.sortKey(a), n.sortKey(b)) })
		return l
	}
	return tree
}

var numbered = regexp.MustCompile(`<(uid|rv|generated) [0-9]+>`)

// sortKey is the text of a tree in which all uids are one, and all versions.
func (n *normalizer) sortKey(tree any) string {
	blind := *n
	blind.uids, blind.versions, blind.names = numbering{}, numbering{}, numbering{}
	return numbered.ReplaceAllString(asJSON(blind.number(tree)), "<$1>")
}
