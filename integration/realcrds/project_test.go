package realcrds

import (
	"context"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// unfinished is what the reference adds to findings that keep the rules of a schema, if it has
// some, from being evaluated (spec/crd.md C76).
const unfinished = "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"

// A default is what an object has in a place although its sample does not say so.
type defaulted struct {
	sample string
	at     string
	want   any
}

// A refusal is an edit that makes a valid sample invalid.
type refusal struct {
	name   string
	sample string
	edit   edit
	want   []string // the findings, as the reference words them
	when   moment
}

// A moment is when a refusal happens.
type moment uint8

const (
	always   moment = iota // to who makes such an object, and to who makes an object such
	onUpdate               // only then: the rule compares the new with the old
	onStatus               // to who writes the status, whose place is in the object
)

// A project is what is to be true of one project's definitions.
type project struct {
	name     string
	kinds    int
	defaults []defaulted
	refusals []refusal
}

// run proves it, on a server of its own.
func (p project) run(t *testing.T) {
	t.Parallel()
	ctx := soon(t)
	c := start(t, p.name)
	c.install(ctx, t)
	if len(c.kinds) != p.kinds {
		t.Errorf("%s defines %d kinds, want %d", p.name, len(c.kinds), p.kinds)
	}
	t.Run("its definitions are established and served at once", func(t *testing.T) { c.areServed(ctx, t) })
	t.Run("a valid object of each kind is accepted", func(t *testing.T) { c.accepts(ctx, t) })
	for _, d := range p.defaults {
		t.Run("default of "+d.sample+" "+d.at, func(t *testing.T) { c.fillsIn(ctx, t, d) })
	}
	for _, r := range p.refusals {
		t.Run(r.name, func(t *testing.T) { c.refuses(ctx, t, r) })
	}
}

// areServed proves that the answer to a definition is the end of the story: who reads it next
// reads that it is established, and nobody has to wait for its resource.
func (c *cluster) areServed(ctx context.Context, t *testing.T) {
	for _, made := range c.sorted() {
		def := c.definition(ctx, t, made.Name)
		if !apihelpers.IsCRDConditionTrue(def, apiextensionsv1.Established) {
			t.Errorf("%s is not established: %+v", def.Name, def.Status.Conditions)
		}
		for _, v := range def.Spec.Versions {
			list, err := c.resource(def, v.Name).List(ctx, metav1.ListOptions{})
			switch {
			case !v.Served:
				if !apierrors.IsNotFound(err) {
					t.Errorf("%s %s is not to be served; listing it: %v", def.Name, v.Name, err)
				}
			case err != nil:
				t.Errorf("%s %s: %v", def.Name, v.Name, err)
			case list.GetKind() != def.Spec.Names.Kind+"List":
				t.Errorf("%s %s is listed as %s", def.Name, v.Name, list.GetKind())
			}
		}
	}
}

// accepts proves that there is a valid sample of each kind of the project, and makes them.
func (c *cluster) accepts(ctx context.Context, t *testing.T) {
	missing := map[string]bool{}
	for kind := range c.kinds {
		missing[kind.String()] = true
	}
	for _, file := range files(t, c.project, "valid") {
		u := read(t, file)
		delete(missing, u.GroupVersionKind().GroupKind().String())
		made, err := c.of(t, u).Create(ctx, u, strict)
		if err != nil {
			t.Errorf("%s: %v", filepath.Base(file), err)
			continue
		}
		if made.GetGeneration() != 1 || made.GetUID() == "" {
			t.Errorf("%s: made with generation %d and uid %q", filepath.Base(file), made.GetGeneration(), made.GetUID())
		}
	}
	for kind := range missing {
		t.Errorf("there is no valid sample of %s", kind)
	}
}

// fillsIn proves that a sample that was made has a default.
func (c *cluster) fillsIn(ctx context.Context, t *testing.T, d defaulted) {
	u := sample(t, c.project, d.sample)
	if at(u, d.at) != nil {
		t.Fatalf("the sample says itself what %s is: no default shows", d.at)
	}
	got, err := c.of(t, u).Get(ctx, u.GetName(), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if have := at(got, d.at); !reflect.DeepEqual(have, d.want) {
		t.Errorf("%s is %#v, want %#v", d.at, have, d.want)
	}
}

// refuses proves a refusal, to those who make an object and to those who change the sample.
func (c *cluster) refuses(ctx context.Context, t *testing.T, r refusal) {
	u := sample(t, c.project, r.sample)
	objects := c.of(t, u)
	was, err := objects.Get(ctx, u.GetName(), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	changed := was.DeepCopy()
	r.edit.on(t, changed)
	var subresources []string
	if r.when == onStatus {
		subresources = []string{"status"}
	}
	_, err = objects.Update(ctx, changed, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict}, subresources...)
	r.check(t, changed, err)
	if r.when != onStatus {
		c.refusesNew(ctx, t, r)
	}
	now, err := objects.Get(ctx, was.GetName(), metav1.GetOptions{})
	if err != nil || now.GetResourceVersion() != was.GetResourceVersion() {
		t.Errorf("the sample is at version %s, want %s as before: %v", now.GetResourceVersion(), was.GetResourceVersion(), err)
	}
}

// refusesNew is about those who make an object.
func (c *cluster) refusesNew(ctx context.Context, t *testing.T, r refusal) {
	t.Helper()
	u := sample(t, c.project, r.sample)
	u.SetName("refused")
	r.edit.on(t, u)
	dry := strict
	dry.DryRun = []string{metav1.DryRunAll}
	_, err := c.of(t, u).Create(ctx, u, dry)
	switch {
	case r.when == always:
		r.check(t, u, err)
	case err != nil:
		t.Errorf("a new object that has nothing to be compared with: %v", err)
	}
}

// check compares an answer with the refusal: its message, and a cause for each finding.
func (r refusal) check(t *testing.T, u *unstructured.Unstructured, err error) {
	t.Helper()
	if !apierrors.IsInvalid(err) {
		t.Errorf("got %v, want a refusal because the object is invalid", err)
		return
	}
	findings := strings.Join(r.want, ", ")
	if len(r.want) > 1 {
		findings = "[" + findings + "]"
	}
	want := u.GroupVersionKind().GroupKind()
	text := want.Kind + "." + want.Group + ` "` + u.GetName() + `" is invalid: ` + findings
	if err.Error() != text {
		t.Errorf("got  %s\nwant %s", err, text)
	}
	causes := err.(apierrors.APIStatus).Status().Details.Causes
	if len(causes) != len(r.want) {
		t.Errorf("%d causes, want %d: %+v", len(causes), len(r.want), causes)
		return
	}
	for i, cause := range causes {
		if got := cause.Field + ": " + cause.Message; got != r.want[i] {
			t.Errorf("cause %d is %s, want %s", i, got, r.want[i])
		}
	}
}
