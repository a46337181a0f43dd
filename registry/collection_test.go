package registry

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/local"
	"github.com/pawl-dev/pawl/storage"
)

// A lamp is a Go type that has nothing but what it needs.
type lamp struct {
	metav1.ObjectMeta `json:"metadata"`
	Color             string   `json:"color"`
	Tags              []string `json:"tags,omitempty"`
	Uses              int      `json:"uses"`
}

func newLamp(name, color string) *lamp {
	return &lamp{ObjectMeta: metav1.ObjectMeta{Name: name}, Color: color}
}

func memory(t testing.TB) kv.Engine {
	t.Helper()
	engine, err := local.Open(context.Background(), local.Options{Memory: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { engine.Close() })
	return engine
}

// must returns what a call that may not fail returned.
func must[V any](v V, err error) V {
	if err != nil {
		panic(err)
	}
	return v
}

// A whole is a type that is a runtime.Object by itself.
type whole struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Is                string `json:"is"`
	copies            *int
}

func (w *whole) DeepCopyObject() runtime.Object {
	c := *w
	w.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	if w.copies != nil {
		*w.copies++
	}
	return &c
}

// Half has kind and apiVersion, and does not know how it is copied.
type half struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Is                string `json:"is"`
}

func TestObjectsOfGoTypesLiveAsOthersDo(t *testing.T) {
	lives(t, "nothing but metadata", func(o *lamp) *string { return &o.Color }, `{"kind":"lamp","apiVersion":"v1","metadata":`)
	lives(t, "a runtime.Object", func(o *whole) *string { return &o.Is }, `{"kind":"whole","apiVersion":"v1","metadata":`)
	lives(t, "with a kind, without a copy", func(o *half) *string { return &o.Is }, `{"kind":"half","apiVersion":"v1","metadata":`)
	lives(t, "a type of the API", func(o *corev1.Secret) *string { return (*string)(&o.Type) }, `{"kind":"Secret","apiVersion":"v1","metadata":`)
}

// lives goes through the life of one object of a type with a member is.
func lives[T any, P ObjectOf[T]](t *testing.T, name string, is func(*T) *string, begins string) {
	t.Run(name, func(t *testing.T) {
		ctx := t.Context()
		c := Of[T, P](memory(t), nil)
		given := new(T)
		*is(given) = "red"
		metaOf(given).SetName("desk")
		made := must(c.Create(ctx, given))
		if *is(made) != "red" || metaOf(made).GetUID() == "" || metaOf(given).GetUID() != "" {
			t.Errorf("created %v of %v", made, given)
		}
		v := must(c.Store().Get(ctx, "", "desk", ""))
		if json, ok := v.AppendJSON(nil, false); !ok || !strings.HasPrefix(string(json), begins) {
			t.Errorf("stored as %s, sent as it is: %v", json, ok)
		}
		changed := must(c.Update(ctx, "desk", func(o *T) error { *is(o) = "blue"; return nil }))
		if *is(changed) != "blue" || metaOf(changed).GetResourceVersion() == metaOf(made).GetResourceVersion() {
			t.Errorf("updated to %v", changed)
		}
		_, err := c.Replace(ctx, made)
		var conflict *ConflictError
		if !errors.As(err, &conflict) {
			t.Fatal("replaced an older version: ", err)
		}
		if why := must(conflict.Explain(ctx)); len(why.Fields) != 1 {
			t.Errorf("explained by %v", why)
		}
		if got := must(c.Get(ctx, "desk")); !reflect.DeepEqual(got, changed) {
			t.Errorf("got %v after %v", got, changed)
		}
		if !must(c.Delete(ctx, "desk")) {
			t.Error("not gone")
		}
		if _, err := c.Get(ctx, "desk"); !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
}

func TestTypesThatCannotBeStoredAreRefused(t *testing.T) {
	refused[struct {
		metav1.ObjectMeta
		Color string
	}](t, "metadata without a name", "has to begin with its metadata")
	refused[struct {
		Color             string
		metav1.ObjectMeta `json:"metadata"`
	}](t, "metadata behind another field", "has to begin with its metadata")
	refused[struct {
		metav1.ObjectMeta `json:"metadata"`
		Done              chan int `json:"-"`
	}](t, "a channel", ".Done is a chan, and cannot be copied")
	refused[struct {
		metav1.ObjectMeta `json:"metadata"`
		Items             []struct{ Any fmt.Stringer }
	}](t, "an interface with methods", ".Items.Any is an interface")
	refused[struct {
		metav1.ObjectMeta `json:"metadata"`
		Sum               *big.Int
	}](t, "what hides references", ".Sum.abs is not exported, and holds references")
	refused[struct {
		metav1.ObjectMeta `json:"metadata"`
		By                map[struct{ P *int }]string
	}](t, "keys with references", ".By is a map whose keys hold references")
	refused[struct {
		metav1.ObjectMeta `json:"metadata"`
		Sum               complex128
	}](t, "what has no JSON", "cannot be written")
}

func refused[T any, P ObjectOf[T]](t *testing.T, name, why string) {
	t.Run(name, func(t *testing.T) {
		_, err := NewCollection[T, P](memory(t), nil, CollectionOptions[T]{})
		if err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%v, want … %s …", err, why)
		}
		defer func() {
			if recover() == nil {
				t.Error("Of does not panic")
			}
		}()
		Of[T, P](memory(t), nil)
	})
}

type wrongTTL struct{ DefaultFor[lamp] }

func (wrongTTL) TTL(lamp) time.Duration { return 0 }

func TestAMethodThatWouldNeverBeCalledIsRefused(t *testing.T) {
	_, err := NewCollection(memory(t), wrongTTL{}, CollectionOptions[lamp]{})
	if err == nil || !strings.Contains(err.Error(), "the method TTL of the strategy registry.wrongTTL has to be a func(*registry.lamp) time.Duration") {
		t.Error(err)
	}
}

// careful has all that a strategy may have.
type careful struct {
	DefaultFor[lamp]
	said *[]string
}

func (c careful) say(what string, obj, old *lamp) {
	was := "new"
	if old != nil {
		was = old.Color
	}
	*c.said = append(*c.said, fmt.Sprintf("%s %s %s", what, was, obj.Color))
}

func (c careful) Prepare(_ context.Context, obj, old *lamp) {
	c.say("prepare", obj, old)
	if obj.Color == "" {
		obj.Color = "white"
	}
}

func (c careful) Validate(_ context.Context, obj, old *lamp) field.ErrorList {
	c.say("validate", obj, old)
	if obj.Color == "black" {
		return field.ErrorList{field.Invalid(field.NewPath("color"), obj.Color, "lamps shine")}
	}
	return nil
}

func (careful) Holds(obj *lamp) bool                            { return obj.Color == "held" }
func (careful) TTL(obj *lamp) time.Duration                     { return time.Duration(obj.Uses) * time.Hour }
func (careful) Grace(*lamp, *int64) (int64, bool)               { return 7, true }
func (c careful) PrepareForDelete(_ context.Context, obj *lamp) { c.say("doom", obj, nil) }
func (c careful) Claim(_ context.Context, _ *storage.View, obj, old *lamp) field.ErrorList {
	if obj != nil {
		c.say("claim", obj, old)
	}
	return nil
}

func TestAStrategyForATypeIsAskedAboutItsObjects(t *testing.T) {
	ctx, said := t.Context(), []string{}
	c := Of(memory(t), careful{said: &said})
	told := func(want ...string) {
		t.Helper()
		if !reflect.DeepEqual(said, want) {
			t.Errorf("asked %q\nwant  %q", said, want)
		}
		said = nil
	}
	made := must(c.Create(ctx, &lamp{ObjectMeta: metav1.ObjectMeta{Name: "desk"}, Uses: 2}))
	told("prepare new ", "claim new white", "validate new white")
	if v := must(c.Store().Get(ctx, "", "desk", "")); made.Color != "white" || v.Expires().Sub(v.Time()) != 2*time.Hour {
		t.Errorf("made %v, expires %v", made, v.Expires())
	}
	_, err := c.Update(ctx, "desk", func(l *lamp) error { l.Color = "black"; return nil })
	told("prepare white black", "validate white black")
	if answer(err) != `422 Invalid: lamp "desk" is invalid: color: Invalid value: "black": lamps shine` {
		t.Error(err)
	}
	if must(c.Delete(ctx, "desk")) {
		t.Error("it had no time")
	}
	told("doom new white")
	if got := must(c.Get(ctx, "desk")); *got.DeletionGracePeriodSeconds != 7 {
		t.Errorf("%v", got)
	}
}

// A sticky strategy holds what is glued.
type sticky struct{ DefaultFor[lamp] }

func (sticky) Holds(obj *lamp) bool { return obj.Color == "glue" }

// What a strategy for a type holds stays until it does no more, though its deletion was asked for.
func TestAStrategyForATypeHoldsItsObjects(t *testing.T) { // rule S70
	ctx := t.Context()
	c := Of(memory(t), sticky{})
	must(c.Create(ctx, newLamp("desk", "glue")))
	if must(c.Delete(ctx, "desk")) {
		t.Error("it went, and was held")
	}
	must(c.Update(ctx, "desk", func(l *lamp) error { l.Uses++; return nil }))
	if held := must(c.Get(ctx, "desk")); held.Uses != 1 || held.DeletionTimestamp == nil {
		t.Errorf("held is %v, want it being deleted", held)
	}
	must(c.Update(ctx, "desk", func(l *lamp) error { l.Color = "red"; return nil }))
	if _, err := c.Get(ctx, "desk"); !apierrors.IsNotFound(err) {
		t.Errorf("%v, want it gone with what held it", err)
	}
}

// A strategy for a type that does not speak of time gives its objects none to end, and leaves them as
// long as they have.
func TestAStrategyForATypeNeedNotSpeakOfTime(t *testing.T) { // rules S77, S79, S85
	ctx, engine, said := t.Context(), memory(t), []string{}
	silent, speaks := Of[lamp](engine, nil), Of(engine, careful{said: &said})
	must(speaks.Create(ctx, &lamp{ObjectMeta: metav1.ObjectMeta{Name: "desk"}, Uses: 2}))
	was := must(silent.Store().Get(ctx, "", "desk", "")).Expires()
	must(silent.Update(ctx, "desk", func(l *lamp) error { l.Color = "red"; return nil }))
	if now := must(silent.Store().Get(ctx, "", "desk", "")).Expires(); was.IsZero() || !now.Equal(was) {
		t.Errorf("it goes at %v, and went at %v", now, was)
	}
	if !must(silent.Delete(ctx, "desk", metav1.DeleteOptions{GracePeriodSeconds: at(int64(30))})) {
		t.Error("it was given time to end")
	}
}

func TestOptionsOfACollection(t *testing.T) {
	ctx, engine := t.Context(), memory(t)
	c := Of(engine, DefaultFor[lamp]{Policies: Policy{Namespaced: true}}, CollectionOptions[lamp]{
		Kind: schema.GroupVersionKind{Group: "x.io", Version: "v2", Kind: "Torch"}, Plural: "torchwood", Space: "other",
		Fields: func(l *lamp) fields.Set { return fields.Set{"color": l.Color} },
	})
	for _, at := range []string{"a/one/red", "a/two/blue", "b/one/red"} {
		p := strings.Split(at, "/")
		l := newLamp(p[1], p[2])
		l.Labels = map[string]string{"in": p[0]}
		must(c.In(p[0]).Create(ctx, l))
	}
	own := newLamp("three", "red")
	own.Namespace = "b"
	must(c.Create(ctx, own))
	_, err := c.In("a").Create(ctx, own)
	told(t, err, "400 BadRequest: the namespace of the provided object does not match the namespace sent on the request")
	snap := must(engine.Read(ctx, kv.Latest))
	if snap.Get("other/x.io/torchwood/b/three") == nil {
		t.Error("not where it belongs")
	}
	_, err = c.In("b").Get(ctx, "two")
	told(t, err, `404 NotFound: torchwood.x.io "two" not found`)
	_, err = c.Get(ctx, "one")
	told(t, err, "400 BadRequest: Namespace parameter required.")

	for _, list := range []struct {
		name string
		of   *Collection[lamp]
		o    []ListOptions
		want string
	}{
		{"all", c, nil, "a/one a/two b/one b/three"},
		{"a namespace", c.In("b"), nil, "b/one b/three"},
		{"by a field of the type", c, []ListOptions{{Selector: storage.Selector{Fields: fields.OneTermEqualSelector("color", "red")}}}, "a/one b/one b/three"},
		{"by a label", c, []ListOptions{{Selector: storage.Selector{Labels: labels.SelectorFromSet(labels.Set{"in": "a"})}}}, "a/one a/two"},
		{"a page", c, []ListOptions{{Limit: 2}}, "a/one a/two"},
	} {
		t.Run(list.name, func(t *testing.T) {
			page := must(list.of.List(ctx, list.o...))
			if got := places(page.Items); got != list.want || page.Revision == 0 || (page.Continue != "") != (list.name == "a page") {
				t.Errorf("listed %s, want %s: %v", got, list.want, page)
			}
			var all []*lamp
			for l, err := range list.of.All(ctx, list.o...) {
				all = append(all, must(l, err))
			}
			if got := places(all); got != list.want {
				t.Errorf("yielded %s, want %s", got, list.want)
			}
		})
	}
}

func places(all []*lamp) string {
	var names []string
	for _, l := range all {
		names = append(names, l.Namespace+"/"+l.Name)
	}
	return strings.Join(names, " ")
}

func TestAWatchIsARange(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	engine := memory(t)
	c := Of[lamp](engine, nil)
	made := must(c.Create(ctx, newLamp("one", "red")))
	var got []string
	for e, err := range c.Watch(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprint(e.Type, " ", e.Object.Color))
		switch len(got) {
		case 1: // the state has been told, and more is to come
			must(c.Update(ctx, "one", func(l *lamp) error { l.Color = "blue"; return nil }))
			must(c.Delete(ctx, "one"))
		case 3:
			cancel()
		}
	}
	if want := "[ADDED red MODIFIED blue DELETED blue]"; fmt.Sprint(got) != want {
		t.Errorf("told %v, want %v", got, want)
	}

	from := WatchOptions{From: storage.After{Revision: must(storage.ParseRevision(made.ResourceVersion))}}
	for e, err := range c.Watch(t.Context(), from) {
		if err != nil || e.Type != storage.Modified || e.Object.Color != "blue" {
			t.Errorf("after the first: %v, %v", e, err)
		}
		break
	}
	_, newest := engine.Revisions()
	if err := engine.(kv.Compactor).Compact(t.Context(), newest); err != nil {
		t.Fatal(err)
	}
	for e, err := range c.Watch(t.Context(), from) {
		if !apierrors.IsResourceExpired(err) {
			t.Errorf("after what is forgotten: %v, %v", e, err)
		}
	}
}

func TestAWatchEndsWithItsEngine(t *testing.T) {
	engine := memory(t)
	c := Of[lamp](engine, nil)
	must(c.Create(t.Context(), newLamp("one", "red")))
	n := 0
	for e, err := range c.Watch(t.Context()) {
		if n++; n == 1 {
			engine.Close()
			continue
		}
		if err == nil {
			t.Errorf("still told %v", e)
		}
	}
	if n != 2 {
		t.Errorf("told %d times", n)
	}
}

func TestAChangeThatFailsChangesNothing(t *testing.T) {
	ctx, sorry := t.Context(), errors.New("sorry")
	c := Of[lamp](memory(t), nil)
	must(c.Create(ctx, newLamp("desk", "red")))
	_, err := c.Update(ctx, "desk", func(l *lamp) error { l.Color = "blue"; return sorry })
	if got := must(c.Get(ctx, "desk")); !errors.Is(err, sorry) || got.Color != "red" {
		t.Errorf("%v, now %v", err, got)
	}
	_, err = c.Update(ctx, "none", func(*lamp) error { return nil })
	told(t, err, `404 NotFound: lamps "none" not found`)
	made := must(c.Update(ctx, "none", func(l *lamp) error { l.Color = "green"; return nil }, UpdateOptions{Create: true}))
	if made.Name != "none" || made.Color != "green" {
		t.Errorf("created by an update: %v", made)
	}
	made.Finalizers = []string{"x.io/hold"}
	must(c.Replace(ctx, made))
	if must(c.Delete(ctx, "none")) {
		t.Error("gone, although something holds it")
	}
	last := must(c.Update(ctx, "none", func(l *lamp) error { l.Finalizers = nil; return nil }))
	if _, err := c.Get(ctx, "none"); !apierrors.IsNotFound(err) || last.Color != "green" {
		t.Errorf("%v, %v", last, err)
	}
}

func TestAChangeIsNeverMadeToWhatIsStored(t *testing.T) {
	ctx := t.Context()
	var said []string
	c := Of[lamp](memory(t), careful{said: &said})
	must(c.Create(ctx, newLamp("desk", "red")))
	said = nil
	must(c.Update(ctx, "desk", func(l *lamp) error { l.Color = "blue"; return nil }, UpdateOptions{Reads: true}))
	if want := []string{"prepare red blue", "validate red blue", "claim red blue"}; !slices.Equal(said, want) {
		t.Errorf("the strategy is asked about %q, want %q", said, want)
	}
}

func TestTimesOfManagedFieldsAloneAreNoChange(t *testing.T) {
	ctx := t.Context()
	c := Of[lamp](memory(t), nil)
	given := newLamp("desk", "red")
	at := metav1.NewTime(time.Unix(1_700_000_000, 0))
	given.ManagedFields = []metav1.ManagedFieldsEntry{{
		Manager: "m", Operation: "Update", APIVersion: "v1", Time: &at, FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:color":{}}`)},
	}}
	made := must(c.Create(ctx, given))
	later := metav1.NewTime(at.Add(time.Hour))
	touch := func(color string) *lamp {
		return must(c.Update(ctx, "desk", func(l *lamp) error { l.Color, l.ManagedFields[0].Time = color, &later; return nil }))
	}
	if got := touch("red"); got.ResourceVersion != made.ResourceVersion {
		t.Errorf("written: %v", got)
	}
	if got := touch("blue"); got.ResourceVersion == made.ResourceVersion || !got.ManagedFields[0].Time.Equal(&later) {
		t.Errorf("%v", got)
	}
}

func TestAnUpdateIsTriedAgainUntilItLands(t *testing.T) {
	ctx := t.Context()
	c := Of[lamp](memory(t), nil)
	must(c.Create(ctx, newLamp("desk", "red")))
	tries := 0
	got, err := c.Update(ctx, "desk", func(l *lamp) error {
		if tries++; tries < 4 {
			must(c.Update(ctx, "desk", func(l *lamp) error { l.Uses++; return nil }))
		}
		l.Color = "blue"
		return nil
	})
	if err != nil || tries != 4 || got.Uses != 3 || got.Color != "blue" {
		t.Errorf("%v, %v after %d tries", got, err, tries)
	}
}

// An update that gives up says what it lost to, whichever of its limits it met.
func TestAnUpdateThatGivesUpSaysWhatItLostTo(t *testing.T) {
	for _, c := range []struct {
		name  string
		o     UpdateOptions
		after int // attempts, the context ends
		text  string
	}{
		{"all attempts are used up", UpdateOptions{Attempts: 3}, 1000, "gave up after 3 attempts: Operation cannot be fulfilled on lamps \"desk\": the object has been modified; please apply your changes to the latest version and try again"},
		{"the context ends", UpdateOptions{}, 2, "gave up after 2 attempts (enough): Operation cannot be fulfilled on lamps \"desk\": the object has been modified; please apply your changes to the latest version and try again"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			enough := errors.New("enough")
			lamps := Of[lamp](memory(t), nil)
			must(lamps.Create(ctx, newLamp("desk", "red")))
			tries := 0
			_, err := lamps.Update(ctx, "desk", func(l *lamp) error {
				by := storage.WithAuthor(t.Context(), kv.Author{User: "bob", Manager: "switch"})
				must(lamps.Update(by, "desk", func(l *lamp) error { l.Uses++; return nil }))
				if tries++; tries == c.after {
					cancel(enough)
				}
				l.Color, l.Uses = "blue", -1
				return nil
			}, c.o)
			var lost *LostError
			if !errors.As(err, &lost) || err.Error() != c.text || !apierrors.IsConflict(err) || errors.Is(err, enough) != (c.after < 1000) {
				t.Fatal(err)
			}
			why := must(lost.Conflict.Explain(t.Context()))
			if len(why.Fields) != 1 || why.Fields[0].Path != ".uses" || why.Fields[0].Manager != "switch" || !why.Fields[0].Contended {
				t.Errorf("explained by %v", why)
			}
			if got := must(lamps.Get(t.Context(), "desk")); got.Color != "red" {
				t.Errorf("%v was written", got)
			}
		})
	}
}

func TestAnUpdateThatOnlyRanOutOfTimeHasLostToNobody(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	lamps := Of[lamp](memory(t), nil)
	must(lamps.Create(ctx, newLamp("desk", "red")))
	cancel()
	_, err := lamps.Update(ctx, "desk", func(*lamp) error { return nil })
	told(t, err, "504 Timeout: …")
}

func TestACollectionOverAStoreOfObjects(t *testing.T) {
	s := newStand(t, namespaced)
	s.made(thing("one", "is=red"))
	c := must(Over[corev1.ConfigMap](s.Store))
	got := must(c.In("ns").Update(t.Context(), "one", func(cm *configMap) error { cm.Data["is"] = "blue"; return nil }))
	if got.Data["is"] != "blue" || s.stored("one").Data["is"] != "blue" {
		t.Errorf("%v", got)
	}
	wrong := must(Over[lamp](s.Store))
	if _, err := wrong.In("ns").Get(t.Context(), "one"); err == nil || !strings.Contains(err.Error(), "an object of type *v1.ConfigMap among those of registry.lamp") {
		t.Error(err)
	}
}

func TestOptionsAreGivenOnce(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	_, _ = Of[lamp](memory(t), nil).Create(t.Context(), newLamp("a", "b"), CreateOptions{}, CreateOptions{})
}

// A tangle has of every kind of value that can be copied.
type tangle struct {
	metav1.ObjectMeta `json:"metadata"`
	Plain             [2]int
	Text              *string
	Bytes             []byte
	Words             []string
	Parts             []tanglePart
	Pairs             [2]map[string]string
	Sums              map[intstr.IntOrString]*int
	Deep              map[string][]map[string]string
	Free              any
	More              []any
	When              metav1.Time
	Until             *metav1.Time
	At                time.Time
	Much              resource.Quantity
	Limits            map[string]resource.Quantity
	Next              *tangle
}

type tanglePart struct {
	Name string
	On   *bool
	Kin  map[string]tanglePart
}

func newTangle(depth int) *tangle {
	text, on, n := "text", true, 7
	now := metav1.NewTime(time.Unix(1_700_000_000, 0))
	x := &tangle{
		ObjectMeta: metav1.ObjectMeta{Name: "t", Labels: map[string]string{"a": "b"}, Finalizers: []string{"x.io/y"}},
		Plain:      [2]int{1, 2}, Text: &text, Bytes: []byte("bytes"), Words: []string{"a", "b"},
		Parts: []tanglePart{{Name: "p", On: &on, Kin: map[string]tanglePart{"q": {Name: "q", On: &on}}}},
		Pairs: [2]map[string]string{{"a": "b"}, nil}, Sums: map[intstr.IntOrString]*int{intstr.FromInt32(1): &n, intstr.FromString("x"): nil},
		Deep: map[string][]map[string]string{"a": {{"b": "c"}}, "nil": nil},
		Free: map[string]any{"a": []any{"b", 1.5, nil}}, More: []any{"a", map[string]any{"b": true}, nil},
		When: now, Until: &now, At: now.Time, Much: resource.MustParse("1.00000000000000000000001"),
		Limits: map[string]resource.Quantity{"cpu": resource.MustParse("3")},
	}
	if depth > 0 {
		x.Next = newTangle(depth - 1)
	}
	return x
}

func TestACopyIsTheSameAndSharesNothing(t *testing.T) {
	c, err := copierFor(reflect.TypeFor[tangle]())
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []*tangle{{}, newTangle(0), newTangle(2)} {
		y := &tangle{}
		c.into(reflect.ValueOf(y).Elem(), reflect.ValueOf(x).Elem())
		if !reflect.DeepEqual(x, y) {
			t.Errorf("copied %v\nto     %v", x, y)
		}
		if at := common(reflect.ValueOf(x).Elem(), reflect.ValueOf(y).Elem(), "x"); at != "" {
			t.Errorf("%s is the same in both", at)
		}
	}
}

// common returns a place where two values of one type share memory that either could change.
func common(a, b reflect.Value, at string) string {
	if a.Type() == reflect.TypeFor[time.Time]() {
		return ""
	}
	switch a.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice:
		if a.IsNil() || b.IsNil() {
			return ""
		}
		if a.Pointer() == b.Pointer() && (a.Kind() == reflect.Pointer || a.Len() > 0) {
			return at
		}
	}
	switch a.Kind() {
	case reflect.Pointer, reflect.Interface:
		if a.IsNil() {
			return ""
		}
		return common(a.Elem(), b.Elem(), at)
	case reflect.Map:
		for _, k := range a.MapKeys() {
			if found := common(a.MapIndex(k), b.MapIndex(k), fmt.Sprint(at, "[", k, "]")); found != "" {
				return found
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range a.Len() {
			if found := common(a.Index(i), b.Index(i), fmt.Sprint(at, "[", i, "]")); found != "" {
				return found
			}
		}
	case reflect.Struct:
		for i := range a.NumField() {
			if found := common(a.Field(i), b.Field(i), at+"."+a.Type().Field(i).Name); found != "" {
				return found
			}
		}
	}
	return ""
}
