package registry

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/storage"
)

func rotten(key string) kv.Txn { return kv.Txn{Ops: []kv.Op{kv.Put(key, []byte("rotten"))}} }

func picking(t *testing.T, s string) storage.Selector {
	t.Helper()
	sel, err := fields.ParseSelector(s)
	if err != nil {
		t.Fatal(err)
	}
	return storage.Selector{Fields: sel}
}

func TestGet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStand(t, namespaced)
		old := s.made(thing("a", "is=old"))
		s.lag()
		s.changed("a", func(cm *configMap) { cm.Data["is"] = "new" })
		for _, c := range []struct{ name, object, rv, want string }{
			{"the newest version", "a", "", "new"},
			{"whatever is at hand (H93)", "a", "0", "old"},
			{"a version at least that new (H93)", "a", old.ResourceVersion, "new"},
			{"one that is not there (S24)", "b", "", `404 NotFound: configmaps "b" not found`},
			{"a version that is no number (K21)", "a", "x", `raw: resourceVersion: Invalid value: "x": strconv.ParseUint: parsing "x": invalid syntax`},
			{"a version from the future (H102)", "a", "99", "504 Timeout: Timeout: Too large resource version: 99, current: 3"},
			{"no name", "", "", "400 BadRequest: Name parameter required."},
			{"a name with a slash", "a/b", "", `400 BadRequest: Name parameter invalid: "a/b": may not contain '/'`},
			{"a name that means here (K2)", ".", "", `400 BadRequest: Name parameter invalid: ".": may not be '.'`},
			{"a name that means one up (K2)", "..", "", `400 BadRequest: Name parameter invalid: "..": may not be '..'`},
			{"a name with dots in it is one like any other (K2)", "a..b", "", `404 NotFound: configmaps "a..b" not found`},
		} {
			v, err := s.Get(t.Context(), "ns", c.object, c.rv)
			if err == nil {
				if got := read(t, v).Data["is"]; got != c.want {
					t.Errorf("%s: got %s, want %s", c.name, got, c.want)
				}
				continue
			}
			told(t, err, c.want)
			if d := apierrors.ReasonForError(err); d == metav1.StatusReasonTimeout {
				var status apierrors.APIStatus
				errors.As(err, &status)
				details := status.Status().Details
				if details.RetryAfterSeconds != 1 || details.Causes[0].Type != metav1.CauseTypeResourceVersionTooLarge || details.Causes[0].Message != "Too large resource version" {
					t.Errorf("details are %+v (K13)", details)
				}
			}
		}
	})
}

func TestListAndWatchNarrow(t *testing.T) {
	s := newStand(t, namespaced)
	for _, ns := range []string{"one", "two"} {
		for _, name := range []string{"a", "b"} {
			if _, err := s.Create(t.Context(), ns, thing(name), CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct{ name, namespace, selector, want, ns, object string }{
		{"a namespace is pinned (S124)", "", "metadata.namespace=two", "two/a two/b", "two", ""},
		{"a namespace is pinned in a request that has another (S124)", "one", "metadata.namespace=two", "", "one", ""},
		{"what is pinned is no namespace (S124)", "", "metadata.namespace=A/B", "", "", ""},
		{"a name is pinned (S125)", "one", "metadata.name=b", "one/b", "one", "b"},
		{"both are pinned (S125)", "", "metadata.name=b,metadata.namespace=two", "two/b", "two", "b"},
		{"a name is pinned and no namespace is known: the whole collection (S125)", "", "metadata.name=b", "one/b two/b", "", ""},
		{"what is pinned is no name (S125)", "one", "metadata.name=..", "", "one", ""},
		{"a name is ruled out", "one", "metadata.name!=b", "one/a", "one", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			sel := picking(t, c.selector)
			if ns, name := s.narrow(c.namespace, sel.Fields); ns != c.ns || name != c.object {
				t.Errorf("narrowed to %q, %q", ns, name)
			}
			page, err := s.List(t.Context(), ListOptions{Namespace: c.namespace, Selector: sel})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, v := range page.Items {
				got = append(got, v.Namespace()+"/"+v.Name())
			}
			if strings.Join(got, " ") != c.want || page.Items == nil {
				t.Errorf("listed %q, want %s", got, c.want)
			}
			w, err := s.Watch(t.Context(), WatchOptions{Namespace: c.namespace, Selector: sel})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Stop()
			got = nil
			for e, ok, err := w.Next(); ok; e, ok, err = w.Next() {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, e.Version.Namespace()+"/"+e.Version.Name())
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("watched %q, want %s", got, c.want)
			}
		})
	}
}

// A list of one object has no pages, so a limit beside a version asks for nothing (K52).
func TestALimitMeansNothingToAListOfOneObject(t *testing.T) {
	s := newStand(t, namespaced)
	old := s.made(thing("a", "is=old"))
	s.changed("a", func(cm *configMap) { cm.Data["is"] = "new" })
	from, limit, err := storage.ListQuery{ResourceVersion: old.ResourceVersion, Limit: 1}.Parse()
	if err != nil {
		t.Fatal(err)
	}
	page, err := s.List(t.Context(), ListOptions{Namespace: "ns", From: from, Limit: limit, Selector: picking(t, "metadata.name=a")})
	if err != nil || len(page.Items) != 1 || read(t, page.Items[0]).Data["is"] != "new" {
		t.Errorf("%v, %v; want a version not older than that one", page, err)
	}
}

// Who asks for nothing in particular is given everything there is now, and at the least a list that
// is empty (rule S122).
func TestAListOfEverything(t *testing.T) {
	s := newStand(t, namespaced)
	page, err := s.List(t.Context(), ListOptions{})
	if err != nil || page.Items == nil || len(page.Items) != 0 || page.Revision != s.revision() {
		t.Errorf("%v, %v; want an empty list of now", page, err)
	}
	s.lag()
	for _, ns := range []string{"one", "two"} {
		if _, err := s.Create(t.Context(), ns, thing("a"), CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	page, err = s.List(t.Context(), ListOptions{})
	if err != nil || namesOf(page) != "a a" || page.Revision != s.revision() || page.Continue != "" || page.Remaining != nil {
		t.Errorf("%+v, %v", page, err)
	}
	page, err = s.List(t.Context(), ListOptions{Limit: 1})
	if err != nil || namesOf(page) != "a" || page.Continue == "" || *page.Remaining != 1 {
		t.Errorf("%+v, %v", page, err)
	}
	if page, err = s.List(t.Context(), ListOptions{From: storage.AtHand{}}); err != nil || len(page.Items) != 0 {
		t.Errorf("%+v, %v; want what is at hand (S123)", page, err)
	}
}

func TestErrorsOfListAndWatch(t *testing.T) {
	s := newStand(t, namespaced)
	s.made(thing("a"))
	for i := range 3 {
		s.changed("a", func(cm *configMap) { cm.Data["n"] = strings.Repeat("x", i) })
	}
	token, err := s.List(t.Context(), ListOptions{Namespace: "ns"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.engine.Engine.(kv.Compactor).Compact(t.Context(), token.Revision); err != nil {
		t.Fatal(err)
	}
	page, err := s.List(t.Context(), ListOptions{From: storage.Exactly{Revision: 2}})
	if told(t, err, "410 Expired: The resourceVersion for the provided list is too old."); page != nil {
		t.Errorf("beside the error there is a list: %v (S126)", page)
	}
	_, err = s.Watch(t.Context(), WatchOptions{From: storage.After{Revision: 2}})
	told(t, err, "410 Expired: too old resource version: 2 (5)")
	_, err = storage.WatchQuery{ResourceVersion: "x"}.Parse()
	told(t, s.WatchError(err), `raw: resourceVersion: Invalid value: "x": strconv.ParseUint: parsing "x": invalid syntax`)
	_, _, err = storage.ListQuery{ResourceVersion: "x"}.Parse()
	told(t, s.ListError(err), `400 BadRequest: invalid resource version: resourceVersion: Invalid value: "x": strconv.ParseUint: parsing "x": invalid syntax`)
	_, _, err = storage.ListQuery{ResourceVersionMatch: "Exact"}.Parse()
	told(t, s.ListError(err), `422 Invalid: ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided`)
	s.engine.Engine.Close()
	_, err = s.List(t.Context(), ListOptions{})
	told(t, err, "500 ServerTimeout: The list operation against configmaps could not be completed at this time, please try again. …")
}

func TestStorageErrorsBecomeStatuses(t *testing.T) {
	s := newStand(t, namespaced)
	s.made(thing("a"))
	for _, c := range []struct {
		kind error
		want string
	}{
		{kv.ErrReadOnly, `500 ServerTimeout: The create operation against configmaps could not be completed at this time, please try again. kv: commit: the store takes no more writes: disk full`},
		{kv.ErrUnknown, `504 Timeout: Timeout: whether the write was stored is not known: read the object again before you repeat it`},
		{kv.ErrInvalid, `400 BadRequest: kv: commit: invalid: disk full`},
	} {
		s.engine.fail = &kv.Error{Op: "commit", Kind: c.kind, Err: errors.New("disk full")}
		_, err := s.Create(t.Context(), "ns", thing("b"), CreateOptions{})
		told(t, err, c.want)
	}
}

// What cannot be reached is told with what was tried.
func TestWhatCannotBeReachedIsToldWithTheVerb(t *testing.T) { // rules S22, S23
	for _, c := range []struct {
		name, verb string
		do         func(s *stand) error
	}{
		{"a create", "create", func(s *stand) error {
			_, err := s.Create(s.Context(), "ns", thing("b"), CreateOptions{})
			return err
		}},
		{"a get", "get", func(s *stand) error { _, err := s.Get(s.Context(), "ns", "a", ""); return err }},
		{"a list", "list", func(s *stand) error { _, err := s.List(s.Context(), ListOptions{}); return err }},
		{"a watch", "watch", func(s *stand) error { _, err := s.Watch(s.Context(), WatchOptions{}); return err }},
		{"an update", "update", func(s *stand) error {
			_, err := s.Update(s.Context(), "ns", "a", Exactly(thing("a", "is=new")), UpdateOptions{})
			return err
		}},
		{"a delete", "delete", func(s *stand) error { _, err := s.Delete(s.Context(), "ns", "a", nil); return err }},
		{"a delete of what cannot be read", "delete", func(s *stand) error {
			_, err := s.Delete(s.Context(), "ns", "a", ignoring())
			return err
		}},
		{"a delete of a collection, which begins with a list", "list", func(s *stand) error {
			_, err := s.DeleteCollection(s.Context(), ListOptions{}, nil)
			return err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStand(t, Policy{Namespaced: true, UnconditionalUpdate: true})
			s.made(thing("a"))
			s.engine.Engine.Close()
			told(t, c.do(s), fmt.Sprintf("500 ServerTimeout: The %s operation against configmaps could not be completed at this time, please try again. …", c.verb))
		})
	}
}
