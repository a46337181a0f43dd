package admission

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pawl-dev/pawl/internal/resource"
	"github.com/pawl-dev/pawl/internal/resource/builtin"
	"github.com/pawl-dev/pawl/kv/local"
	"github.com/pawl-dev/pawl/registry"
	"github.com/pawl-dev/pawl/storage"
)

// wire makes the built-in resources over a store in memory, with the guard and the hook.
func wire(t testing.TB) (map[string]*resource.Version, *local.Engine) {
	t.Helper()
	engine, err := local.Open(t.Context(), local.Options{Memory: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { engine.Close() })
	versions := map[string]*resource.Version{}
	var guard func(schema.GroupResource) registry.Guard
	for _, k := range builtin.Kinds() {
		table := storage.NewTable(storage.Options{
			Engine: engine, Group: k.Group, Resource: k.Plural, Namespaced: k.Strategy.Policy().Namespaced, Codec: k.Codec(), Fields: k.Fields,
		})
		if k.Plural == "namespaces" {
			guard = NamespaceGuard(table)
		}
		versions[k.Plural] = k.Resource(func(k builtin.Kind, _ string, s registry.Strategy) *registry.Store {
			return registry.Must(registry.Config{
				Kind: k.GroupVersionKind(), Resource: k.GroupResource(), Table: table, Strategy: s,
				GuardsFor: []func(schema.GroupResource) registry.Guard{guard},
				Hooks:     hooksOf(k),
			})
		}).Versions[0]
	}
	return versions, engine
}

func hooksOf(k builtin.Kind) []registry.Hook {
	if k.Plural != "namespaces" {
		return nil
	}
	return []registry.Hook{ProtectNamespaces()}
}

func create(t testing.TB, v *resource.Version, namespace, name string, dryRun bool) error {
	t.Helper()
	obj, _, err := v.Form.Decode(fmt.Appendf(nil, `{"metadata":{"name":%q}}`, name))
	if err != nil {
		t.Fatal(err)
	}
	_, err = v.Store.Create(t.Context(), namespace, obj, registry.CreateOptions{DryRun: dryRun})
	return err
}

func statusOf(t *testing.T, err error) string {
	t.Helper()
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		t.Fatalf("got %v, want a status", err)
	}
	s := status.Status()
	data, err := json.Marshal(struct {
		Code    int32
		Message string
		Details *metav1.StatusDetails
	}{s.Code, s.Message, s.Details})
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestObjectsComeIntoBeingOnlyInNamespacesThatLive(t *testing.T) { // rule B28
	versions, _ := wire(t)
	for _, name := range []string{"living", "going"} {
		if err := create(t, versions["namespaces"], "", name, false); err != nil {
			t.Fatal(err)
		}
	}
	if err := create(t, versions["configmaps"], "going", "early", false); err != nil {
		t.Fatal(err)
	}
	if _, err := versions["namespaces"].Store.Delete(t.Context(), "", "going", nil); err != nil {
		t.Fatal(err)
	}
	const terminating = `"causes":[{"reason":"NamespaceTerminating","message":"namespace going is being terminated","field":"metadata.namespace"}]`
	for _, c := range []struct {
		name, plural, namespace, object string
		want                            string // "" if it is let in
	}{
		{"a living namespace lets objects in", "configmaps", "living", "late", ""},
		{"a missing one is not found", "configmaps", "missing", "late",
			`{"Code":404,"Message":"namespaces \"missing\" not found","Details":{"name":"missing","kind":"namespaces"}}`},
		{"one that is being deleted refuses", "configmaps", "going", "late",
			`{"Code":403,"Message":"configmaps \"late\" is forbidden: unable to create new content in namespace going because it is being terminated",` +
				`"Details":{"name":"late","kind":"configmaps",` + terminating + `}}`},
		{"the refusal names the group of the resource", "leases", "going", "late",
			`{"Code":403,"Message":"leases.coordination.k8s.io \"late\" is forbidden: unable to create new content in namespace going because it is being terminated",` +
				`"Details":{"name":"late","group":"coordination.k8s.io","kind":"leases",` + terminating + `}}`},
		{"a name that is taken there is refused as well", "configmaps", "going", "early",
			`{"Code":403,"Message":"configmaps \"early\" is forbidden: unable to create new content in namespace going because it is being terminated",` +
				`"Details":{"name":"early","kind":"configmaps",` + terminating + `}}`},
		{"what has no namespace needs none", "namespaces", "", "third", ""},
	} {
		for _, dryRun := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, dry run %v", c.name, dryRun), func(t *testing.T) {
				err := create(t, versions[c.plural], c.namespace, c.object, dryRun)
				if err == nil && c.want == "" {
					return
				}
				if got := statusOf(t, err); got != c.want {
					t.Errorf("got  %s\nwant %s", got, c.want)
				}
			})
		}
	}
	if _, err := versions["configmaps"].Store.Delete(t.Context(), "going", "early", nil); err != nil {
		t.Errorf("a delete in a namespace that is being deleted: %v", err)
	}
}

func TestNamespacesThatAServerNeedsCannotBeDeleted(t *testing.T) { // rule B19
	versions, _ := wire(t)
	namespaces := versions["namespaces"].Store
	if err := Bootstrap(t.Context(), namespaces); err != nil {
		t.Fatal(err)
	}
	for _, dryRun := range [][]string{{metav1.DryRunAll}, nil} {
		for _, name := range []string{"default", "kube-system", "kube-public"} {
			want := fmt.Sprintf(`{"Code":403,"Message":"namespaces \"%s\" is forbidden: this namespace may not be deleted","Details":{"name":"%[1]s","kind":"namespaces"}}`, name)
			_, err := namespaces.Delete(t.Context(), "", name, &metav1.DeleteOptions{DryRun: dryRun})
			if got := statusOf(t, err); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		}
	}
	if _, err := namespaces.Delete(t.Context(), "", "kube-node-lease", nil); err != nil {
		t.Errorf("kube-node-lease: %v", err)
	}
}

func TestBootstrapMakesWhatIsMissingAndWritesNothingElse(t *testing.T) { // rule B18
	versions, engine := wire(t)
	namespaces := versions["namespaces"].Store
	if err := create(t, versions["namespaces"], "", "kube-system", false); err != nil {
		t.Fatal(err)
	}
	var starting sync.WaitGroup
	for range 4 { // several servers may start at once
		starting.Go(func() {
			if err := Bootstrap(t.Context(), namespaces); err != nil {
				t.Error(err)
			}
		})
	}
	starting.Wait()
	page, err := namespaces.List(t.Context(), registry.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, v := range page.Items {
		names = append(names, v.Name())
	}
	if want := []string{"default", "kube-node-lease", "kube-public", "kube-system"}; !slices.Equal(names, want) {
		t.Errorf("there are %q, want %q", names, want)
	}
	_, before := engine.Revisions()
	if err := Bootstrap(t.Context(), namespaces); err != nil {
		t.Fatal(err)
	}
	if _, after := engine.Revisions(); after != before {
		t.Errorf("bootstrapping again went from revision %d to %d", before, after)
	}
}

// What the guard costs each create: nothing of the namespace is decoded.
func BenchmarkNamespaceGuard(b *testing.B) {
	versions, _ := wire(b)
	if err := create(b, versions["namespaces"], "", "a", false); err != nil {
		b.Fatal(err)
	}
	table := versions["namespaces"].Store.Table()
	guard := NamespaceGuard(table)(schema.GroupResource{Resource: "configmaps"})
	b.ReportAllocs()
	_, err := table.Modify(b.Context(), "", "other", true, func(ctx context.Context, _ storage.Version, view *storage.View) (storage.Verdict, error) {
		for b.Loop() {
			if err := guard(ctx, view, "a", "x"); err != nil {
				return storage.Verdict{}, err
			}
		}
		return storage.Verdict{}, nil
	})
	if err != nil {
		b.Fatal(err)
	}
}
