package table

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// core are the small kinds of the core group.
func core() kinds {
	return kinds{
		v1("", "Namespace"): columns(
			name,
			text("Status", "The status of the namespace", func(n *corev1.Namespace) string { return string(n.Status.Phase) }),
			age,
		),
		v1("", "ConfigMap"): columns(
			name,
			number("Data", swagger(corev1.ConfigMap{}, "data"), func(c *corev1.ConfigMap) int { return len(c.Data) + len(c.BinaryData) }).as("string"),
			age,
		),
		v1("", "Secret"): columns(
			name,
			text("Type", swagger(corev1.Secret{}, "type"), func(s *corev1.Secret) string { return string(s.Type) }),
			number("Data", swagger(corev1.Secret{}, "data"), func(s *corev1.Secret) int { return len(s.Data) }).as("string"),
			age,
		),
		v1("", "ServiceAccount"): columns(name, age),
		v1("", "ResourceQuota"): columns(
			name,
			text("Request", "Request represents a minimum amount of cpu/memory that a container may consume.", func(q *corev1.ResourceQuota) string {
				return used(q, false)
			}),
			text("Limit", "Limits control the maximum amount of cpu/memory that a container may use independent of contention on the node.",
				func(q *corev1.ResourceQuota) string { return used(q, true) }),
			age,
		),
	}
}

// used is how much of a quota is used, of limits or of all else.
func used(q *corev1.ResourceQuota, limits bool) string {
	var parts []string
	for resource, hard := range q.Status.Hard {
		if strings.HasPrefix(string(resource), "limits.") == limits {
			used := q.Status.Used[resource]
			parts = append(parts, fmt.Sprintf("%s: %s/%s", resource, used.String(), hard.String()))
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// events are the two kinds over the same stored events (rule B4).
func events() kinds {
	return kinds{
		v1("", "Event"): eventColumns(func(e *corev1.Event) happening {
			h := happening{
				name: e.Name, kind: e.Type, reason: e.Reason, object: e.InvolvedObject, message: e.Message, count: e.Count,
				first: e.FirstTimestamp, last: e.LastTimestamp, time: e.EventTime,
				component: or(e.Source.Component, e.ReportingController), instance: or(e.Source.Host, e.ReportingInstance),
			}
			if e.Series != nil {
				h.series(e.Series.Count, e.Series.LastObservedTime)
			}
			return h
		}),
		v1(eventsv1.GroupName, "Event"): eventColumns(func(e *eventsv1.Event) happening {
			h := happening{
				name: e.Name, kind: e.Type, reason: e.Reason, object: e.Regarding, message: e.Note, count: e.DeprecatedCount,
				first: e.DeprecatedFirstTimestamp, last: e.DeprecatedLastTimestamp, time: e.EventTime,
				component: or(e.DeprecatedSource.Component, e.ReportingController), instance: or(e.DeprecatedSource.Host, e.ReportingInstance),
			}
			if e.Series != nil {
				h.series(e.Series.Count, e.Series.LastObservedTime)
			}
			return h
		}),
	}
}

// A happening is what both kinds of events say.
type happening struct {
	name, kind, reason, message string
	object                      corev1.ObjectReference
	component, instance         string
	count                       int32
	first, last                 metav1.Time
	time                        metav1.MicroTime
}

// series takes in that the event happened often.
func (h *happening) series(count int32, last metav1.MicroTime) {
	h.count, h.last = count, metav1.Time(last)
}

// began is when it first happened, seen is when it last did.
func (h happening) began() metav1.Time {
	if h.first.IsZero() {
		return metav1.Time(h.time)
	}
	return h.first
}

func (h happening) seen() metav1.Time {
	if h.last.IsZero() {
		return h.began()
	}
	return h.last
}

func (h happening) about() string {
	kind := strings.ToLower(h.object.Kind)
	if h.object.Name == "" {
		return kind
	}
	return kind + "/" + h.object.Name
}

func (h happening) source() string {
	if h.instance == "" {
		return h.component
	}
	return h.component + ", " + h.instance
}

func eventColumns[T runtime.Object](of func(T) happening) *Columns {
	doc := func(field string) string { return swagger(corev1.Event{}, field) }
	says := func(name, doc string, cell func(happening) string) column {
		return text(name, doc, func(e T) string { return cell(of(e)) })
	}
	named := says("Name", swagger(metav1.ObjectMeta{}, "name"), func(h happening) string { return h.name }).wide()
	named.Format = "name"
	return columns(
		timed("Last Seen", doc("lastTimestamp"), func(e T, now time.Time) string { return since(of(e).seen(), now) }),
		says("Type", doc("type"), func(h happening) string { return h.kind }),
		says("Reason", doc("reason"), func(h happening) string { return h.reason }),
		says("Object", doc("involvedObject"), happening.about),
		says("Subobject", swagger(corev1.ObjectReference{}, "fieldPath"), func(h happening) string { return h.object.FieldPath }).wide(),
		says("Source", doc("source"), happening.source).wide(),
		says("Message", doc("message"), func(h happening) string { return strings.TrimSpace(h.message) }),
		timed("First Seen", doc("firstTimestamp"), func(e T, now time.Time) string { return since(of(e).began(), now) }).wide(),
		number("Count", doc("count"), func(e T) int32 { return max(of(e).count, 1) }).as("string").wide(),
		named,
	)
}
