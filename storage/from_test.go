package storage

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pawl-dev/pawl/kv"
)

// outcome puts what came of parsing into words.
func outcome(from any, err error) string {
	var e *Error
	switch {
	case errors.As(err, &e):
		return e.Kind.String() + ": " + e.Err.Error()
	case err != nil:
		return "error: " + err.Error()
	}
	return fmt.Sprintf("%T%+v", from, from)
}

// A meaning is what one row of a table says of options; "*" stands for every value.
type meaning struct {
	options []string
	want    string
}

const every = "*"

func (m meaning) fits(chosen []string) bool {
	for i, o := range m.options {
		if o != every && o != chosen[i] {
			return false
		}
	}
	return true
}

// combine calls each with all combinations of values, and with the first of rows that fits. It
// fails the test if none does, or if a row fits nothing.
func combine(t *testing.T, values [][]string, rows []meaning, each func(options []string, want string)) {
	t.Helper()
	used, n := make([]bool, len(rows)), 0
	var choose func(chosen []string)
	choose = func(chosen []string) {
		if len(chosen) < len(values) {
			for _, v := range values[len(chosen)] {
				choose(append(slices.Clone(chosen), v))
			}
			return
		}
		i := slices.IndexFunc(rows, func(r meaning) bool { return r.fits(chosen) })
		if i < 0 {
			t.Fatalf("no row says what %q means", chosen)
		}
		used[i], n = true, n+1
		each(chosen, rows[i].want)
	}
	choose(nil)
	if i := slices.Index(used, false); i >= 0 {
		t.Errorf("nothing fits the row %q", rows[i].options)
	}
	t.Logf("%d combinations", n)
}

// truth is sendInitialEvents as a query says it: "unset", "true" or "false".
func truth(s string) *bool {
	if s == "unset" {
		return nil
	}
	b := s == "true"
	return &b
}

const (
	needsVersion = "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided"
	notBoth      = "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided"
	noInitial    = "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list"
	noMatch      = `resourceVersionMatch: Unsupported value: "Newest": supported values: "Exact", "NotOlderThan", ""`
	exactlyZero  = `resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"`
	badOptions   = "options that do not go together: "
	notVersion   = `resourceVersion: Invalid value: "x": strconv.ParseUint: parsing "x": invalid syntax`
	negative     = `resourceVersion: Invalid value: "-1": strconv.ParseUint: parsing "-1": invalid syntax`
	notWithToken = "bad request: specifying resource version is not allowed when using continue"
)

// Every combination of the options of a list. What does not go together comes first (rule
// K47), then the token (K49), then the version (K50), and what is left is the table of rule K52.
func TestWhatTheOptionsOfAListMeanTogether(t *testing.T) {
	tokens := map[string]string{
		"none": "", "good": encodeContinue("a/one", 9), "newest": encodeToken("a/two", -1),
		"newer still": encodeToken("a/two", -7), "broken": "!", "empty": encodeToken("", 9),
	}
	values := [][]string{
		{"", "0", "7", "x", "-1"}, {"", "NotOlderThan", "Exact", "Newest"}, {"0", "3", "-2"},
		{"none", "good", "newest", "newer still", "broken", "empty"}, {"unset", "true", "false"},
	}
	together := func(errs ...string) string {
		if len(errs) == 1 {
			return badOptions + errs[0]
		}
		text := badOptions + "["
		for i, e := range errs {
			if i > 0 {
				text += ", "
			}
			text += e
		}
		return text + "]"
	}
	var rows []meaning
	row := func(rv, match, limit, token, initial, want string) {
		rows = append(rows, meaning{[]string{rv, match, limit, token, initial}, want})
	}
	for _, initial := range values[4] {
		// with adds what is said of initial events to what is wrong besides.
		with := func(errs ...string) string {
			if initial != "unset" {
				errs = append(errs, noInitial)
			}
			return together(errs...)
		}
		for _, match := range []string{"NotOlderThan", "Exact"} {
			row("", match, every, "none", initial, with(needsVersion))
			row("", match, every, every, initial, with(needsVersion, notBoth))
		}
		row("", "Newest", every, "none", initial, with(needsVersion, noMatch))
		row("", "Newest", every, every, initial, with(needsVersion, notBoth, noMatch))
		row("0", "Exact", every, "none", initial, with(exactlyZero))
		row("0", "Exact", every, every, initial, with(notBoth, exactlyZero))
		row(every, "Newest", every, "none", initial, with(noMatch))
		row(every, "Newest", every, every, initial, with(notBoth, noMatch))
		for _, match := range []string{"NotOlderThan", "Exact"} {
			for _, token := range values[3][1:] {
				row(every, match, every, token, initial, with(notBoth))
			}
		}
	}
	row(every, every, every, every, "true", together(noInitial))
	row(every, every, every, every, "false", together(noInitial))

	row(every, every, every, "broken", every, "bad request: invalid continue token: continue key is not valid: illegal base64 data at input byte 0")
	row(every, every, every, "empty", every, "bad request: invalid continue token: continue key is not valid: encoded start key empty (version meta.k8s.io/v1)")
	for _, rv := range []string{"", "0"} {
		row(rv, every, every, "good", every, `storage.ContinueAt{Revision:9 Start:a/one`+"\x00}")
		row(rv, every, every, "newest", every, `storage.ContinueLatest{Start:a/two}`)
		row(rv, every, every, "newer still", every, `storage.ContinueLatest{Start:a/two}`)
	}
	for _, token := range []string{"good", "newest", "newer still"} {
		row(every, every, every, token, every, notWithToken)
	}
	row("", every, every, every, every, "storage.Consistent{}")
	row("x", every, every, every, every, "bad request: invalid resource version: "+notVersion)
	row("-1", every, every, every, every, "bad request: invalid resource version: "+negative)
	row("0", every, every, every, every, "storage.AtHand{}")
	row("7", "Exact", every, every, every, "storage.Exactly{Revision:7}")
	row("7", "", "3", every, every, "storage.PagesAt{Revision:7}")
	row("7", every, every, every, every, "storage.NotOlder{Revision:7}")

	combine(t, values, rows, func(o []string, want string) {
		var limit int64
		if _, err := fmt.Sscan(o[2], &limit); err != nil {
			t.Fatal(err)
		}
		q := ListQuery{ResourceVersion: o[0], ResourceVersionMatch: o[1], Limit: limit, Continue: tokens[o[3]], SendInitialEvents: truth(o[4])}
		from, pages, err := q.Parse()
		if got := outcome(from, err); got != want {
			t.Errorf("%q: %s\nwant %s", o, got, want)
		}
		wantPages := max(limit, 0)
		if _, ok := from.(AtHand); ok || err != nil && from == nil {
			wantPages = 0
		}
		if err == nil && pages != wantPages {
			t.Errorf("%q: pages of %d, want %d (K52)", o, pages, wantPages)
		}
		reference := validation.ValidateListOptions(&internalversion.ListOptions{
			ResourceVersion: q.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatch(q.ResourceVersionMatch),
			Limit: q.Limit, Continue: q.Continue, SendInitialEvents: q.SendInitialEvents,
		}, true)
		if got, want := q.check().ToAggregate(), reference.ToAggregate(); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%q: %v, and apimachinery says %v (K47)", o, got, want)
		}
	})
}

const (
	needsMatch   = "resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
	needsInitial = "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
)

// Every combination of the options of a watch: what does not go together (rule K48), the
// version (K81), and the table of rule K88 with what rule K90 says of its end.
func TestWhatTheOptionsOfAWatchMeanTogether(t *testing.T) {
	values := [][]string{
		{"unset", "true", "false"}, {"", "0", "7", "x"}, {"", "NotOlderThan", "Exact", "Newest"}, {"no token", "token"}, {"no bookmarks", "bookmarks"},
	}
	only := func(match string) string {
		return fmt.Sprintf(`resourceVersionMatch: Unsupported value: %q: supported values: "NotOlderThan"`, match)
	}
	var rows []meaning
	row := func(initial, rv, match, token, marks, want string) {
		rows = append(rows, meaning{[]string{initial, rv, match, token, marks}, want})
	}
	row("unset", every, "NotOlderThan", "no token", every, badOptions+needsInitial)
	row("unset", every, "NotOlderThan", "token", every, badOptions+"["+needsInitial+", "+notBoth+"]")
	for _, match := range []string{"Exact", "Newest"} {
		row("unset", every, match, "no token", every, badOptions+"["+needsInitial+", "+only(match)+"]")
		row("unset", every, match, "token", every, badOptions+"["+needsInitial+", "+only(match)+", "+notBoth+"]")
		row(every, every, match, "no token", every, badOptions+"["+needsMatch+", "+only(match)+"]")
		row(every, every, match, "token", every, badOptions+"["+needsMatch+", "+only(match)+", "+notBoth+"]")
	}
	for _, initial := range []string{"true", "false"} {
		row(initial, every, "", every, every, badOptions+needsMatch)
		row(initial, every, "NotOlderThan", "token", every, badOptions+notBoth)
	}
	row(every, "x", every, every, every, "error: "+notVersion)
	row("unset", "", every, every, every, fmt.Sprintf("storage.State{At:%+v Mark:false}", kv.Any))
	row("unset", "0", every, every, every, fmt.Sprintf("storage.State{At:%+v Mark:false}", kv.Any))
	row("unset", "7", every, every, every, "storage.After{Revision:7}")
	for marks, marked := range map[string]bool{"no bookmarks": false, "bookmarks": true} {
		row("true", "", every, every, marks, fmt.Sprintf("storage.State{At:%+v Mark:%v}", kv.Latest, marked))
		row("true", "0", every, every, marks, fmt.Sprintf("storage.State{At:%+v Mark:%v}", kv.Any, marked))
		row("true", "7", every, every, marks, fmt.Sprintf("storage.State{At:%+v Mark:%v}", kv.AtLeast(7), marked))
	}
	row("false", "", every, every, every, fmt.Sprintf("storage.AfterState{At:%+v}", kv.Latest))
	row("false", "0", every, every, every, fmt.Sprintf("storage.AfterState{At:%+v}", kv.Any))
	row("false", "7", every, every, every, "storage.After{Revision:7}")

	combine(t, values, rows, func(o []string, want string) {
		q := WatchQuery{SendInitialEvents: truth(o[0]), ResourceVersion: o[1], ResourceVersionMatch: o[2], AllowBookmarks: o[4] == "bookmarks"}
		if o[3] == "token" {
			q.Continue = "a token"
		}
		if got := outcome(q.Parse()); got != want {
			t.Errorf("%q: %s\nwant %s", o, got, want)
		}
		reference := validation.ValidateListOptions(&internalversion.ListOptions{
			Watch: true, ResourceVersion: q.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatch(q.ResourceVersionMatch),
			Continue: q.Continue, SendInitialEvents: q.SendInitialEvents, AllowWatchBookmarks: q.AllowBookmarks,
		}, true)
		if got, want := q.check().ToAggregate(), reference.ToAggregate(); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%q: %v, and apimachinery says %v (K48)", o, got, want)
		}
	})
}
