package builtin

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pawl-dev/pawl/kv/local"
	"github.com/pawl-dev/pawl/registry"
	"github.com/pawl-dev/pawl/storage"
)

const (
	// newEvent is an event of events.k8s.io that says all that there is to say, and oldEvent is
	// the same as the core group shows it.
	newEvent = `{"metadata":{"name":"a","namespace":"b"},"eventTime":"2020-01-02T03:04:05.123456Z","series":{"count":2,"lastObservedTime":"2020-01-02T03:04:06.000000Z"},` +
		`"reportingController":"x.example/y","reportingInstance":"i","action":"Act","reason":"Why","regarding":{"kind":"Pod","namespace":"b","name":"p"},` +
		`"related":{"kind":"Node","name":"n"},"note":"said","type":"Normal","deprecatedSource":{"component":"c","host":"h"},` +
		`"deprecatedFirstTimestamp":"2020-01-01T00:00:00Z","deprecatedLastTimestamp":"2020-01-02T00:00:00Z","deprecatedCount":3}`
	oldEvent = `{"kind":"Event","apiVersion":"v1","metadata":{"name":"a","namespace":"b"},"involvedObject":{"kind":"Pod","namespace":"b","name":"p"},"reason":"Why","message":"said",` +
		`"source":{"component":"c","host":"h"},"firstTimestamp":"2020-01-01T00:00:00Z","lastTimestamp":"2020-01-02T00:00:00Z","count":3,"type":"Normal",` +
		`"eventTime":"2020-01-02T03:04:05.123456Z","series":{"count":2,"lastObservedTime":"2020-01-02T03:04:06.000000Z"},"action":"Act",` +
		`"related":{"kind":"Node","name":"n"},"reportingComponent":"x.example/y","reportingInstance":"i"}`
)

func TestEventsAreStoredOnce(t *testing.T) { // rules B4, B42
	seen, old := kindOf(t, "Event.events.k8s.io"), kindOf(t, "Event")
	if seen.TableResource() != old.GroupResource() {
		t.Errorf("events.k8s.io is stored as %v", seen.TableResource())
	}
	event := read(t, "Event.events.k8s.io", newEvent)
	stored, print, err := seen.Codec().Encode(event)
	if err != nil || string(stored) != oldEvent {
		t.Errorf("stored:\n got %s, %v\nwant %s", stored, err, oldEvent)
	}
	if print != old.Codec().Fingerprint() || seen.Codec().Fingerprint() != storage.Unfit {
		t.Error("what is stored is not what the core group sends, or is what events.k8s.io sends")
	}
	back, err := seen.Codec().Decode(stored)
	if err != nil || !equality.Semantic.DeepEqual(back, event) {
		t.Errorf("read back:\n got %v, %v\nwant %v", back, err, event)
	}
	if _, _, err := seen.Codec().Encode(&corev1.Event{}); err == nil {
		t.Error("an event of the core group passes for one of events.k8s.io")
	}
}

func TestEventsOfOneViewAreWatchedThroughTheOther(t *testing.T) { // rules B4, B44
	engine, err := local.Open(t.Context(), local.Options{Memory: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { engine.Close() })
	old, seen := wireOver(t, engine, "Event").Versions[0], wireOver(t, engine, "Event.events.k8s.io").Versions[0]
	ctx := t.Context()
	w, err := seen.Store.Watch(ctx, registry.WatchOptions{Namespace: "b"})
	if err != nil {
		t.Fatal(err)
	}
	written, err := old.Store.Create(ctx, "b", read(t, "Event", oldEvent), registry.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	event, ok, err := w.Next()
	if err != nil || !ok {
		t.Fatalf("nothing to see: %v", err)
	}
	obj, err := event.Version.Object()
	if err != nil {
		t.Fatal(err)
	}
	if got := obj.(*eventsv1.Event); got.Note != "said" || got.ResourceVersion != written.Revision().String() {
		t.Errorf("got %v, which was written at %v", got, written.Revision())
	}
	selector := fields.SelectorFromSet(fields.Set{"regarding.name": "p"})
	page, err := seen.Store.List(ctx, registry.ListOptions{Namespace: "b", Selector: storage.Selector{Fields: selector}})
	if err != nil || len(page.Items) != 1 {
		t.Errorf("listed: %v, %v", page, err)
	}
	if _, err := seen.Store.Delete(ctx, "b", "a", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := old.Store.Get(ctx, "b", "a", ""); !apierrors.IsNotFound(err) {
		t.Errorf("after a deletion through the other view: %v", err)
	}
}

func TestEventsAreSelected(t *testing.T) { // rule B15
	for _, tt := range []struct {
		kind, object, reporter string
		obj                    runtime.Object
	}{
		{"Event", "involvedObject", "reportingComponent", read(t, "Event", oldEvent)},
		{"Event.events.k8s.io", "regarding", "reportingController", read(t, "Event.events.k8s.io", newEvent)},
	} {
		set, err := kindOf(t, tt.kind).Fields(tt.obj)
		if err != nil || set.Get(tt.object+".name") != "p" || set.Get("reason") != "Why" || set.Get(tt.reporter) != "x.example/y" {
			t.Errorf("%s: %v, %v", tt.kind, set, err)
		}
	}
	set, err := kindOf(t, "Event").Fields(&corev1.Event{ReportingController: "r"})
	if err != nil || set.Get("source") != "r" {
		t.Errorf("the source of an event that names none: %v, %v", set, err)
	}
	if _, err := kindOf(t, "Event").Fields(&eventsv1.Event{}); err == nil {
		t.Error("an event of events.k8s.io passes for one of the core group")
	}
}

func TestWhatIsWrongWithEvents(t *testing.T) { // rules B42, B43
	const api = "Event.events.k8s.io"
	fresh := strings.NewReplacer(`,"deprecatedSource":{"component":"c","host":"h"}`, "", `,"deprecatedFirstTimestamp":"2020-01-01T00:00:00Z"`, "",
		`,"deprecatedLastTimestamp":"2020-01-02T00:00:00Z","deprecatedCount":3`, "").Replace(newEvent)
	with := func(change ...string) string { return strings.NewReplacer(change...).Replace(fresh) }
	old := func(namespace, of string) string {
		return `{"metadata":{"namespace":"` + namespace + `"},"involvedObject":{"namespace":"` + of + `"}}`
	}
	refusals(t, []write{
		{"an old event is about an object in its namespace", "Event", "", "", old("a", "a"), ""},
		{"not one elsewhere", "Event", "", "", old("a", "b"), `involvedObject.namespace: Invalid value: "b": does not match event.namespace`},
		{"about no namespace it is in default", "Event", "", "", old("default", ""), ""},
		{"and nowhere else", "Event", "", "", old("kube-system", ""), `involvedObject.namespace: Invalid value: "": does not match event.namespace`},
		{"a new event in the core group is held to what is new", "Event", "", "", `{"eventTime":"2020-01-02T03:04:05.123456Z","metadata":{"namespace":"kube-system"}}`,
			"[reportingComponent: Required value, reportingComponent: Invalid value: \"\": name part must be non-empty, " +
				"reportingComponent: Invalid value: \"\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character " +
				"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]'), " +
				"reportingInstance: Required value, action: Required value, reason: Required value]"},

		{"a new event that is as it should be", api, "", "", fresh, ""},
		{"it says when", api, "", "", `{"metadata":{"namespace":"a"},"regarding":{"namespace":"a"},"type":"Normal"}`, "eventTime: Required value"},
		{"it is normal, or a warning", api, "", "", with(`"Normal"`, `"Odd"`), `type: Invalid value: "": has invalid value: Odd`},
		{"it does not use what is old", api, "", "", newEvent, `[firstTimestamp: Invalid value: "": needs to be unset, lastTimestamp: Invalid value: "": needs to be unset, ` +
			`count: Invalid value: "": needs to be unset, source: Invalid value: "": needs to be unset]`},
		{"a series is of two at least", api, "", "", with(`"count":2,"lastObservedTime":"2020-01-02T03:04:06.000000Z"`, `"count":1`),
			`[series.count: Invalid value: "": should be at least 2, series.lastObservedTime: Required value]`},
		{"texts have a limit", api, "", "", with(`"said"`, `"`+strings.Repeat("s", 1025)+`"`), `message: Invalid value: "": can have at most 1024 characters`},
		{"the series of an event that is stored may change", api, "", newEvent, strings.Replace(newEvent, `"count":2`, `"count":3`, 1), ""},
		{"the rest may not", api, "", newEvent, strings.Replace(newEvent, `"said"`, `"unsaid"`, 1), `message: Invalid value: "unsaid": field is immutable`},
		{"through the core group it may", "Event", "", oldEvent, strings.Replace(oldEvent, `"said"`, `"unsaid"`, 1), ""},
	})
}
