package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	"github.com/pawl-dev/pawl/internal/resource"
	"github.com/pawl-dev/pawl/internal/resource/crd"
	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/registry"
	"github.com/pawl-dev/pawl/storage"
)

// DefinitionsOptions are what [Definitions] is made of. All but Space, Clock and Log are needed.
type DefinitionsOptions struct {
	// Store and Status are the two doors to definitions.
	Store, Status *registry.Store
	// Custom serves what definitions define, those that are being deleted included (rule C32).
	Custom CustomResources
	// Catalogue says which tables belong to built-in resources, whatever a definition asks for.
	Catalogue *resource.Registry
	Space     string       // kv.DefaultSpace if empty
	Clock     clock.Clock  // nil means the real one
	Log       *slog.Logger // is told what no request can be told; nil means nobody
}

// Definitions deletes the objects of definitions that are being deleted, and lets those go once
// nothing is left (rules C31, C32, C36).
type Definitions struct{ o DefinitionsOptions }

// NewDefinitions makes the loop. Nothing happens before [Definitions.Run].
func NewDefinitions(o DefinitionsOptions) *Definitions {
	o.Clock, o.Log = clockOr(o.Clock), logOr(o.Log)
	return &Definitions{o}
}

// Run works until ctx ends or the engine is closed. When it returns, nothing that it started
// still runs. It is called once.
func (d *Definitions) Run(ctx context.Context) error {
	l := &loop{
		table: d.o.Store.Table(), waits: waitsForCleanup, work: d.cleanUp,
		clock: d.o.Clock, log: d.o.Log.With("controller", "definitions"),
	}
	return l.run(storage.WithAuthor(ctx, kv.Author{User: "system:apiserver", Manager: "pawl", Verb: "delete"}))
}

func waitsForCleanup(v storage.Version) (bool, error) {
	md, err := v.Metadata()
	return slices.Contains(md.Finalizers, crd.CleanupFinalizer), err
}

// terminating is a condition Terminating.
func terminating(status apiextensionsv1.ConditionStatus, reason, message string) apiextensionsv1.CustomResourceDefinitionCondition {
	return apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.Terminating, Status: status, Reason: reason, Message: message,
	}
}

// The conditions of a definition on its way out (rules C31, C32).
var (
	inProgress = terminating(apiextensionsv1.ConditionTrue, "InstanceDeletionInProgress", "CustomResource deletion is in progress")
	checking   = terminating(apiextensionsv1.ConditionTrue, "InstanceDeletionCheck",
		"could not confirm zero CustomResources remaining: their finalizers hold some")
	completed = terminating(apiextensionsv1.ConditionFalse, "InstanceDeletionCompleted", "removed all instances")
)

func failed(err error) apiextensionsv1.CustomResourceDefinitionCondition {
	return terminating(apiextensionsv1.ConditionTrue, "InstanceDeletionFailed", fmt.Sprintf("could not issue all deletes: %v", err))
}

// checkAfter is how long after the mark a definition that still has objects says so (rule C32).
const checkAfter = time.Minute

// cleanUp deletes all objects of a definition, waits until they are gone, and takes the
// finalizer away. It returns nil, too, when there is no such definition waiting any more.
func (d *Definitions) cleanUp(ctx context.Context, t target) error {
	if err := d.begin(ctx, t); err != nil {
		return err
	}
	for swept := false; ; swept = true {
		left, marked, err := d.sweep(ctx, t, swept)
		switch {
		case errors.Is(err, errNotWaiting):
			return nil
		case err != nil && ctx.Err() == nil:
			return errors.Join(err, d.tell(ctx, t, failed(err)))
		case err != nil:
			return err
		case left == nil:
			return d.release(ctx, t)
		}
		until := checkAfter - d.o.Clock.Since(marked)
		if until <= 0 {
			if err := d.tell(ctx, t, checking); err != nil {
				return err
			}
		}
		if err := wait(ctx, d.o.Clock, []*rest{left}, patience{atMost: max(until, 0)}); err != nil {
			return err
		}
	}
}

// sweep deletes until a confirmed state shows only what finalizers hold, and returns that; nil
// if it shows nothing. Marked is when the deletion of the definition was asked for.
func (d *Definitions) sweep(ctx context.Context, t target, swept bool) (left *rest, marked time.Time, err error) {
	for ; ; swept = true {
		snap, def, err := d.survey(ctx, t)
		if err != nil {
			return nil, time.Time{}, err
		}
		marked := def.DeletionTimestamp.Time
		store := d.o.Custom.Instances(def.Name)
		if store == nil {
			return nil, marked, d.purge(ctx, snap, def)
		}
		left, err := restAt(ctx, store, "", snap.Revision())
		if err != nil {
			return nil, marked, err
		}
		if len(left.items) == 0 {
			return nil, marked, nil
		}
		if swept && left.held() {
			return left, marked, nil
		}
		if err := left.delete(ctx); err != nil {
			return nil, marked, err
		}
	}
}

// survey reads a confirmed state in which the definition is waiting. By then whoever serves it
// knows that it is, so no object comes into being any more.
func (d *Definitions) survey(ctx context.Context, t target) (kv.Snapshot, *apiextensionsv1.CustomResourceDefinition, error) {
	if err := d.o.Custom.Confirm(ctx); err != nil {
		return nil, nil, err
	}
	table := d.o.Store.Table()
	snap, err := table.Engine().Read(ctx, kv.Latest)
	if err != nil {
		return nil, nil, err
	}
	v := table.Version(snap.Get(table.Key("", t.name)))
	if err := stillWaiting(v, t, waitsForCleanup); err != nil {
		return nil, nil, err
	}
	obj, err := v.Object()
	if err != nil {
		return nil, nil, err
	}
	def, err := asDefinition(obj)
	return snap, def, err
}

func asDefinition(obj runtime.Object) (*apiextensionsv1.CustomResourceDefinition, error) {
	def, ok := obj.(*apiextensionsv1.CustomResourceDefinition)
	if !ok {
		return nil, fmt.Errorf("controller: a stored definition is a %T", obj)
	}
	return def, nil
}

// purgedMax is how many objects are purged in one commit.
const purgedMax = 1000

// purge removes what is stored of a definition that is not served: there should be nothing, but
// what there is must not come back to life with a successor (rule C36). Nobody could read it,
// so its finalizers are nobody's. What a built-in resource keeps under the same name is not the
// definition's.
func (d *Definitions) purge(ctx context.Context, snap kv.Snapshot, def *apiextensionsv1.CustomResourceDefinition) error {
	group, plural := def.Spec.Group, def.Spec.Names.Plural
	if r := d.o.Catalogue.Catalogue().Lookup(group, plural); r != nil && !r.Custom {
		return nil
	}
	engine := d.o.Store.Table().Engine()
	txn := kv.Txn{Author: storage.AuthorFrom(ctx)}
	commit := func() error {
		if len(txn.Ops) == 0 {
			return nil
		}
		_, err := engine.Commit(ctx, txn)
		txn.Conditions, txn.Ops = nil, nil
		return err
	}
	for v := range snap.Ascend(storage.TablePrefix(d.o.Space, group, plural), "") {
		txn.Conditions = append(txn.Conditions, kv.Condition{Key: v.Key, At: v.Revision})
		txn.Ops = append(txn.Ops, kv.Delete(v.Key))
		if len(txn.Ops) == purgedMax {
			if err := commit(); err != nil {
				return err
			}
		}
	}
	return commit()
}

// begin says that the objects are being deleted; after a restart it takes nothing back that has
// been said since.
func (d *Definitions) begin(ctx context.Context, t target) error {
	return d.update(ctx, t, func(def *apiextensionsv1.CustomResourceDefinition) {
		if c := apihelpers.FindCRDCondition(def, apiextensionsv1.Terminating); c == nil || c.Reason != checking.Reason {
			d.set(def, inProgress)
		}
	})
}

// tell writes a condition if it says something new.
func (d *Definitions) tell(ctx context.Context, t target, c apiextensionsv1.CustomResourceDefinitionCondition) error {
	return d.update(ctx, t, func(def *apiextensionsv1.CustomResourceDefinition) { d.set(def, c) })
}

func (d *Definitions) set(def *apiextensionsv1.CustomResourceDefinition, c apiextensionsv1.CustomResourceDefinitionCondition) {
	crd.SetCondition(&def.Status, c, metav1.NewTime(d.o.Clock.Now().UTC()).Rfc3339Copy())
}

// release says that it is done, and takes the finalizer away in the same write. The definition
// goes with it, if nothing else holds it.
func (d *Definitions) release(ctx context.Context, t target) error {
	return d.update(ctx, t, func(def *apiextensionsv1.CustomResourceDefinition) {
		d.set(def, completed)
		def.Finalizers = slices.DeleteFunc(def.Finalizers, func(f string) bool { return f == crd.CleanupFinalizer })
	})
}

// update changes a definition that is being deleted and waits, through its status: that lets
// finalizers through. One that went, or does not wait any more, stays as it is.
func (d *Definitions) update(ctx context.Context, t target, change func(*apiextensionsv1.CustomResourceDefinition)) error {
	author := storage.AuthorFrom(ctx)
	author.Verb, author.Subresource = "update", "status"
	_, err := d.o.Status.Update(storage.WithAuthor(ctx, author), "", t.name, func(_ context.Context, obj runtime.Object) (runtime.Object, error) {
		def, err := asDefinition(obj)
		if err != nil || def.DeletionTimestamp == nil || !slices.Contains(def.Finalizers, crd.CleanupFinalizer) {
			return obj, err
		}
		change(def)
		return def, nil
	}, registry.UpdateOptions{UID: t.uid, Owned: true})
	if gone(err) {
		return nil
	}
	return err
}
