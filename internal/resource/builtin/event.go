package builtin

import (
	"cmp"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pawl-dev/pawl/registry"
)

// eventLasts is how long an event is kept after its last write (rule B41).
const eventLasts = time.Hour

var eventPolicy = registry.Policy{
	Namespaced: true, CreateOnUpdate: true, UnconditionalUpdate: true, Name: registry.AnyPathSegment, Dependents: registry.Disallowed,
}

// oldEvents is what holds for events of the core group. Only those that have an eventTime are
// held to what the newer API asks for (rule B42).
var oldEvents = rules[*corev1.Event]{
	policy: eventPolicy,
	lasts:  eventLasts,
	wrong:  func(e *corev1.Event) field.ErrorList { return wrongEvent(e, "reportingComponent") },
}

// newEvents is what holds for events.k8s.io. What is wrong is told of the event as it is stored, as
// the reference does: its paths are those of the core group (rule B43).
var newEvents = rules[*eventsv1.Event]{
	policy: newEventPolicy(),
	lasts:  eventLasts,
	wrong: func(e *eventsv1.Event) field.ErrorList {
		return wrongEvent(storedEvent(e), "reportingController")
	},
	wrongNew: func(e *eventsv1.Event) field.ErrorList { return wrongNewEvent(storedEvent(e)) },
	wrongAfter: func(e, old *eventsv1.Event) field.ErrorList {
		return wrongEventAfter(storedEvent(e), storedEvent(old))
	},
}

// newEventPolicy makes errors name the kind of the core group, as the reference's do.
func newEventPolicy() registry.Policy {
	p := eventPolicy
	p.Name, p.Blames = nil, schema.GroupKind{Kind: "Event"}
	return p
}

// eventKinds are the two views of events: both read and write what is stored as events of the
// core group.
func eventKinds() []Kind {
	old := define(Kind{
		Version: "v1", Kind: "Event", Plural: "events", Singular: "event", ShortNames: []string{"ev"}, Revision: 1,
	}, oldEvents, eventFields("involvedObject", func(e *corev1.Event) *corev1.Event { return e }))
	labels := eventFields("regarding", storedEvent)
	labels["reportingController"] = labels["reportingComponent"]
	delete(labels, "reportingComponent")
	delete(labels, "source")
	seen := define(Kind{
		Group: eventsv1.GroupName, Version: "v1", Kind: "Event", Plural: "events", Singular: "event", ShortNames: []string{"ev"}, Revision: 1,
	}, newEvents, labels)
	seen.view = &view{
		of: old,
		store: func(obj runtime.Object) (runtime.Object, error) {
			e, ok := obj.(*eventsv1.Event)
			if !ok {
				return nil, seen.mistaken(obj)
			}
			return storedEvent(e), nil
		},
		see: func(obj runtime.Object) (runtime.Object, error) {
			e, ok := obj.(*corev1.Event)
			if !ok {
				return nil, old.mistaken(obj)
			}
			return seenEvent(e), nil
		},
	}
	return []Kind{old, seen}
}

// eventFields are the selectable fields of events (rule B15); object is what the view calls the
// object that an event is about.
func eventFields[P any](object string, of func(P) *corev1.Event) map[string]func(P) string {
	out := map[string]func(P) string{}
	for label, value := range map[string]func(e *corev1.Event) string{
		object + ".kind":            func(e *corev1.Event) string { return e.InvolvedObject.Kind },
		object + ".namespace":       func(e *corev1.Event) string { return e.InvolvedObject.Namespace },
		object + ".name":            func(e *corev1.Event) string { return e.InvolvedObject.Name },
		object + ".uid":             func(e *corev1.Event) string { return string(e.InvolvedObject.UID) },
		object + ".apiVersion":      func(e *corev1.Event) string { return e.InvolvedObject.APIVersion },
		object + ".resourceVersion": func(e *corev1.Event) string { return e.InvolvedObject.ResourceVersion },
		object + ".fieldPath":       func(e *corev1.Event) string { return e.InvolvedObject.FieldPath },
		"reason":                    func(e *corev1.Event) string { return e.Reason },
		"reportingComponent":        func(e *corev1.Event) string { return e.ReportingController },
		"source":                    func(e *corev1.Event) string { return cmp.Or(e.Source.Component, e.ReportingController) },
		"type":                      func(e *corev1.Event) string { return e.Type },
	} {
		out[label] = func(obj P) string { return value(of(obj)) }
	}
	return out
}

// storedEvent is an event of events.k8s.io as it is stored. It shares what is behind pointers.
func storedEvent(e *eventsv1.Event) *corev1.Event {
	out := &corev1.Event{
		ObjectMeta: e.ObjectMeta, InvolvedObject: e.Regarding, Reason: e.Reason, Message: e.Note, Type: e.Type,
		Source: e.DeprecatedSource, FirstTimestamp: e.DeprecatedFirstTimestamp, LastTimestamp: e.DeprecatedLastTimestamp,
		Count: e.DeprecatedCount, EventTime: e.EventTime, Action: e.Action, Related: e.Related,
		ReportingController: e.ReportingController, ReportingInstance: e.ReportingInstance,
	}
	if s := e.Series; s != nil {
		out.Series = &corev1.EventSeries{Count: s.Count, LastObservedTime: s.LastObservedTime}
	}
	return out
}

// seenEvent is a stored event as events.k8s.io shows it.
func seenEvent(e *corev1.Event) *eventsv1.Event {
	out := &eventsv1.Event{
		ObjectMeta: e.ObjectMeta, Regarding: e.InvolvedObject, Reason: e.Reason, Note: e.Message, Type: e.Type,
		DeprecatedSource: e.Source, DeprecatedFirstTimestamp: e.FirstTimestamp, DeprecatedLastTimestamp: e.LastTimestamp,
		DeprecatedCount: e.Count, EventTime: e.EventTime, Action: e.Action, Related: e.Related,
		ReportingController: e.ReportingController, ReportingInstance: e.ReportingInstance,
	}
	if s := e.Series; s != nil {
		out.Series = &eventsv1.EventSeries{Count: s.Count, LastObservedTime: s.LastObservedTime}
	}
	return out
}

// What texts of an event may hold, in bytes.
const (
	reportingInstanceMaxBytes = 128
	actionMaxBytes            = 128
	reasonMaxBytes            = 128
	messageMaxBytes           = 1024
)

// wrongEvent says what is wrong with an event through either view, in which the reporting
// controller is called reporter.
func wrongEvent(e *corev1.Event, reporter string) (errs field.ErrorList) {
	fits := e.Namespace == e.InvolvedObject.Namespace
	if e.InvolvedObject.Namespace == "" {
		fits = e.Namespace == "" || e.Namespace == metav1.NamespaceDefault || !e.EventTime.IsZero() && e.Namespace == metav1.NamespaceSystem
	} else if !e.EventTime.IsZero() {
		fits = true
	}
	if !fits {
		errs = append(errs, field.Invalid(field.NewPath("involvedObject", "namespace"), e.InvolvedObject.Namespace, "does not match event.namespace"))
	}
	if e.EventTime.IsZero() {
		return errs
	}
	path := field.NewPath(reporter)
	if e.ReportingController == "" {
		errs = append(errs, field.Required(path, ""))
	}
	errs = append(errs, metav1validation.ValidateLabelName(e.ReportingController, path)...)
	for _, text := range []struct {
		name, value string
		max         int
		required    bool
	}{
		{"reportingInstance", e.ReportingInstance, reportingInstanceMaxBytes, true},
		{"action", e.Action, actionMaxBytes, true},
		{"reason", e.Reason, reasonMaxBytes, true},
		{"message", e.Message, messageMaxBytes, false},
	} {
		if text.required && text.value == "" {
			errs = append(errs, field.Required(field.NewPath(text.name), ""))
		}
		if len(text.value) > text.max {
			errs = append(errs, field.Invalid(field.NewPath(text.name), "", fmt.Sprintf("can have at most %d characters", text.max)))
		}
	}
	return errs
}

// wrongNewEvent says what the newer API asks of a new event beyond that.
func wrongNewEvent(e *corev1.Event) field.ErrorList {
	errs := wrongSeries(e)
	if e.EventTime.IsZero() {
		errs = append(errs, field.Required(field.NewPath("eventTime"), ""))
	}
	if e.Type != corev1.EventTypeNormal && e.Type != corev1.EventTypeWarning {
		errs = append(errs, field.Invalid(field.NewPath("type"), "", fmt.Sprintf("has invalid value: %v", e.Type)))
	}
	for _, old := range []struct {
		name string
		set  bool
	}{
		{"firstTimestamp", !e.FirstTimestamp.IsZero()},
		{"lastTimestamp", !e.LastTimestamp.IsZero()},
		{"count", e.Count != 0},
		{"source", e.Source != corev1.EventSource{}},
	} {
		if old.set {
			errs = append(errs, field.Invalid(field.NewPath(old.name), "", "needs to be unset"))
		}
	}
	return errs
}

func wrongSeries(e *corev1.Event) (errs field.ErrorList) {
	if e.Series == nil {
		return nil
	}
	if e.Series.Count < 2 {
		errs = append(errs, field.Invalid(field.NewPath("series.count"), "", "should be at least 2"))
	}
	if e.Series.LastObservedTime.IsZero() {
		errs = append(errs, field.Required(field.NewPath("series.lastObservedTime"), ""))
	}
	return errs
}

// wrongEventAfter says what an update through the newer API must not change: all but the series
// and metadata.
func wrongEventAfter(e, old *corev1.Event) (errs field.ErrorList) {
	if !equality.Semantic.DeepEqual(e.Series, old.Series) {
		errs = append(errs, wrongSeries(e)...)
	}
	for _, part := range []struct {
		name    string
		is, was any
	}{
		{"involvedObject", e.InvolvedObject, old.InvolvedObject}, {"reason", e.Reason, old.Reason}, {"message", e.Message, old.Message},
		{"source", e.Source, old.Source}, {"firstTimestamp", e.FirstTimestamp, old.FirstTimestamp},
		{"lastTimestamp", e.LastTimestamp, old.LastTimestamp}, {"count", e.Count, old.Count}, {"type", e.Type, old.Type},
		{"eventTime", toMicroseconds(e.EventTime), toMicroseconds(old.EventTime)}, {"action", e.Action, old.Action}, {"related", e.Related, old.Related},
		{"reportingController", e.ReportingController, old.ReportingController}, {"reportingInstance", e.ReportingInstance, old.ReportingInstance},
	} {
		errs = append(errs, validation.ValidateImmutableField(part.is, part.was, field.NewPath(part.name))...)
	}
	return errs
}

// toMicroseconds is a time as far as JSON tells it: protobuf tells more.
func toMicroseconds(t metav1.MicroTime) metav1.MicroTime {
	return metav1.NewMicroTime(t.Truncate(time.Microsecond).UTC())
}
