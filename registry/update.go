package registry

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/warning"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/storage"
)

// A Desire computes the version that should exist from the one that does; current is nil if
// none does. It runs again when somebody else wrote in between, and must then compute
// anew. It owns current and may change it; what it returns is the store's.
type Desire func(ctx context.Context, current runtime.Object) (runtime.Object, error)

// Exactly is the [Desire] for obj itself, whatever exists.
func Exactly(obj runtime.Object) Desire {
	return func(context.Context, runtime.Object) (runtime.Object, error) { return obj.DeepCopyObject(), nil }
}

// UpdateOptions say how an object is updated.
type UpdateOptions struct {
	DryRun bool
	// Create allows the update to create what does not exist, whatever the policy says.
	Create bool
	// UID, if not empty, must be that of the object (rule S45). PUT names that of its body.
	UID types.UID
	// Patch says that desire changes what exists, rather than putting an object in its place:
	// that is how a conflict tells which fields the write touches. [ConflictError.Explain] may ask desire once more.
	Patch bool
	// Reads says that desire only reads current, and returns nothing of it that may be changed: it
	// need not be copied then.
	Reads bool
	// Owned leaves managedFields as they are: desire has seen to them, as a server-side apply
	// does, or the loop of a server leaves no trace there.
	Owned bool
	// Authorize, if set, is asked before an update creates (rule H208).
	Authorize func(ctx context.Context) error
	// Attempts, if not 0, is how often the update is tried while others write the object. It ends with a
	// [*LostError] then, and when ctx ends after it lost.
	Attempts int
	// Rebase makes a write that is based on an older version go on if it changes no field that was
	// changed since: desire is asked what it makes of that version, and what differs from it is done to the
	// one that exists. If the fields overlap the write is refused with a [*ConflictError] whose
	// explanation names those; if the older version is gone, or was another object's, as ever. The version has
	// to be named.
	Rebase bool
}

// Updated is what an update did.
type Updated struct {
	Version storage.Version
	Created bool
	// Removed is set if the object went, since nothing held it any more (rule S73): the
	// object as it would have been stored. Version then is the removed one; it does not exist
	// if somebody else was quicker (rule S74).
	Removed runtime.Object
	// Rebased says what was done if the write was rebased; nil if it was not.
	Rebased *Rebased
}

// Update brings an object from the version that exists to the one that desire computes from
// it (sections 7 to 11 of the rules). A write made against an older version is refused with
// a [*ConflictError].
func (s *Store) Update(ctx context.Context, namespace, name string, desire Desire, o UpdateOptions) (Updated, error) {
	return s.update(ctx, &update{store: s, namespace: namespace, name: name, desire: desire, o: o})
}

// Replace puts an object in the place of what exists, whatever that is: a PUT. Fresh returns the
// object, anew each time it is asked: it becomes the store's, and when somebody else wrote in between
// it is needed as it came.
func (s *Store) Replace(ctx context.Context, namespace, name string, fresh func() (runtime.Object, error), o UpdateOptions) (Updated, error) {
	o.Reads = true
	desire := func(context.Context, runtime.Object) (runtime.Object, error) { return fresh() }
	return s.Update(ctx, namespace, name, desire, o)
}

func (s *Store) update(ctx context.Context, u *update) (Updated, error) {
	if err := s.address(u.namespace, u.name); err != nil {
		return Updated{}, err
	}
	ctx = authored(ctx, string(Update))
	u.ends = &endings{store: s}
	defer u.ends.close(ctx)
	res, err := s.table.Modify(ctx, u.namespace, u.name, u.o.DryRun, u.judge)
	u.conclude(ctx, res, err)
	if err != nil {
		return Updated{}, s.refuse(string(u.verb()), u.name, u.ranOut(ctx, err))
	}
	return Updated{Version: res.Version, Created: u.created, Removed: u.removed, Rebased: u.rebased}, nil
}

// An update is one call of [Store.Update]. The fields below ends are those of the last
// attempt.
type update struct {
	store           *Store
	namespace, name string
	desire          Desire
	o               UpdateOptions
	ends            *endings
	trial           trial

	created bool
	removed runtime.Object
	rebased *Rebased
}

// verb is what the last attempt did: an update that creates fails as a create (rule S46e).
func (u *update) verb() Verb {
	if u.created {
		return Create
	}
	return Update
}

// judge is one attempt: it says what should become of current.
func (u *update) judge(ctx context.Context, current storage.Version, view *storage.View) (storage.Verdict, error) {
	if u.removed != nil && !current.Exists() {
		return storage.Verdict{}, nil // somebody else removed what this update was removing (rule S74)
	}
	if err := u.spent(current); err != nil {
		return storage.Verdict{}, err
	}
	u.created, u.removed, u.rebased = false, nil, nil
	s := u.store
	may := leave{create: s.policy.CreateOnUpdate || u.o.Create, unconditional: s.policy.UnconditionalUpdate, rebase: u.o.Rebase}
	if !current.Exists() && !may.create {
		return storage.Verdict{}, &storage.Error{Kind: storage.NotFound, Namespace: u.namespace, Name: u.name}
	}
	var old runtime.Object
	var oldMeta metav1.Object
	var err error
	if current.Exists() {
		if old, oldMeta, err = decode(current); err != nil {
			return storage.Verdict{}, err
		}
	}
	if err := u.precondition(current, oldMeta); err != nil {
		return storage.Verdict{}, err
	}
	obj, err := u.desired(ctx, old)
	if err != nil {
		return storage.Verdict{}, err
	}
	acc, err := meta.Accessor(obj)
	if err != nil {
		return storage.Verdict{}, err
	}
	named, err := revisionNamed(acc)
	if err != nil {
		return storage.Verdict{}, err
	}
	switch decide(revisionOf(current), named, may) {
	case creates:
		return u.create(ctx, view, obj)
	case rebases:
		if obj, err = u.rebase(ctx, current, named, obj); err != nil {
			return storage.Verdict{}, err
		}
	case conflict:
		return storage.Verdict{}, s.conflict(current, named, obj, u.patch())
	case invalid:
		return storage.Verdict{}, s.mustNameVersion(u.name, named)
	}
	if obj, err = u.own(ctx, old, obj); err != nil {
		return storage.Verdict{}, err
	}
	if acc, err = meta.Accessor(obj); err != nil {
		return storage.Verdict{}, err
	}
	acc.SetResourceVersion(current.Revision().String())
	return u.replace(ctx, current, view, obj, old)
}

// desired is the object that should exist. The caller may change it.
func (u *update) desired(ctx context.Context, old runtime.Object) (runtime.Object, error) {
	if !u.o.Reads {
		old = copyOf(old)
	}
	return u.desire(ctx, old)
}

// patch is what a conflict has to know of a desire that changes what exists; nil of any other. Unless it sees to
// managedFields it is not shown them, which are half of many an object.
func (u *update) patch() Desire {
	switch {
	case !u.o.Patch:
		return nil
	case u.o.Owned:
		return u.desired
	}
	return func(ctx context.Context, base runtime.Object) (runtime.Object, error) {
		base = base.DeepCopyObject()
		acc, err := meta.Accessor(base)
		if err != nil {
			return nil, err
		}
		acc.SetManagedFields(nil)
		return u.desire(ctx, base)
	}
}

// own notes who changed what, unless that has been done.
func (u *update) own(ctx context.Context, old, obj runtime.Object) (runtime.Object, error) {
	if u.o.Owned {
		return obj, nil
	}
	return u.store.own(ctx, old, obj)
}

func copyOf(obj runtime.Object) runtime.Object {
	if obj == nil {
		return nil
	}
	return obj.DeepCopyObject()
}

// precondition checks the UID that the sender named (rules S45, S45a).
func (u *update) precondition(current storage.Version, old metav1.Object) error {
	var have types.UID
	if old != nil {
		have = old.GetUID()
	}
	if u.o.UID == "" || u.o.UID == have {
		return nil
	}
	prefix := storePrefix
	if u.o.DryRun {
		prefix = ""
	}
	why := u.store.invalidObject(prefix, u.namespace, u.name,
		fmt.Sprintf("Precondition failed: UID in precondition: %s, UID in object meta: %s", u.o.UID, have))
	return &ConflictError{status: apierrors.NewConflict(u.store.resource, u.name, why.Err), store: u.store, current: current, uid: u.o.UID}
}

// storePrefix is the path under which the reference keeps everything.
const storePrefix = "/registry"

// invalidObject is the error of an object that is not as it has to be for a write. Its text shows
// the object's place in the reference's store, as the reference does, which for a dry run knows
// no more than the path of the resource (rule K19).
func (s *Store) invalidObject(prefix, namespace, name, why string) *storage.Error {
	place := prefix + "/" + s.path + "/"
	if namespace != "" {
		place += namespace + "/"
	}
	return &storage.Error{Kind: storage.Invalid, Namespace: namespace, Name: name, Err: fmt.Errorf(
		"StorageError: invalid object, Code: 4, Key: %s%s, ResourceVersion: 0, AdditionalErrorMsg: %s", place, name, why)}
}

// mustNameVersion is the answer to an update that names no version and must (rule S49). The
// resource name stands where a kind belongs: so does the reference's.
func (s *Store) mustNameVersion(name string, named kv.Revision) error {
	return apierrors.NewInvalid(schema.GroupKind{Group: s.resource.Group, Kind: s.resource.Resource}, name, field.ErrorList{
		field.Invalid(metadataPath.Child("resourceVersion"), uint64(named), "must be specified for an update"),
	})
}

// create is an attempt that finds nothing stored, and may create (rule S46).
func (u *update) create(ctx context.Context, view *storage.View, obj runtime.Object) (storage.Verdict, error) {
	u.created = true
	if u.o.Authorize != nil {
		if err := u.o.Authorize(ctx); err != nil {
			return storage.Verdict{}, err
		}
	}
	obj, err := u.own(ctx, nil, obj)
	if err != nil {
		return storage.Verdict{}, err
	}
	acc, err := meta.Accessor(obj)
	if err != nil {
		return storage.Verdict{}, err
	}
	acc.SetResourceVersion("")
	u.store.born(acc)
	if isGenerated(acc) {
		return storage.Verdict{}, internal("metadata.name was not generated")
	}
	if name := acc.GetName(); name != "" && name != u.name { // the reference keeps it under another's name (rule S58)
		return storage.Verdict{}, u.store.invalid(acc, field.ErrorList{field.Invalid(metadataPath.Child("name"), name, validation.FieldImmutableErrorMsg)})
	}
	if err := u.store.admitNew(ctx, view, u.namespace, obj, u.o.DryRun, u.ends); err != nil {
		return storage.Verdict{}, err
	}
	return storage.Verdict{Action: storage.Put, Object: obj, Expiry: u.store.expiry(obj, kv.Forever)}, nil
}

// replace is an attempt that goes on from what is stored (rules S52, S59 to S65, S70).
func (u *update) replace(ctx context.Context, current storage.Version, view *storage.View, obj, old runtime.Object) (storage.Verdict, error) {
	s := u.store
	acc, oldMeta, err := accessors(obj, old)
	if err != nil {
		return storage.Verdict{}, err
	}
	if err := u.ends.begin(ctx, Update, obj, old, u.o.DryRun); err != nil {
		return storage.Verdict{}, err
	}
	if err := s.settleNamespace(acc, u.namespace); err != nil {
		return storage.Verdict{}, err
	}
	s.prepareSuccessor(ctx, obj, old)
	keepTimes(obj, old)
	errs := append(s.checkSuccessor(acc, oldMeta), s.strategy.ValidateUpdate(ctx, obj, old)...)
	if len(errs) == 0 {
		errs = s.claim(ctx, view, obj, old)
	}
	if err := s.invalid(acc, errs); err != nil {
		return storage.Verdict{}, err
	}
	for _, w := range s.strategy.Warnings(ctx, obj, old) {
		warning.AddWarning(ctx, "", w)
	}
	s.strategy.Canonicalize(obj)
	u.trial.attempt(revisionOf(current), obj)
	if settle(s.holdingOf(obj, acc, oldMeta)) == removes {
		u.removed = obj
		s.claim(ctx, view, nil, old)
		return storage.Verdict{Action: storage.Remove}, nil
	}
	acc.SetResourceVersion("")
	return storage.Verdict{Action: storage.Put, Object: obj, Expiry: s.expiry(obj, kv.Keep)}, nil
}

func accessors(a, b runtime.Object) (metav1.Object, metav1.Object, error) {
	am, err := meta.Accessor(a)
	if err != nil {
		return nil, nil, err
	}
	bm, err := meta.Accessor(b)
	return am, bm, err
}

// prepareSuccessor brings obj into the form in which it may follow old: generation first,
// so that only the strategy can raise it, then the strategy, then what is immutable.
func (s *Store) prepareSuccessor(ctx context.Context, obj, old runtime.Object) {
	acc, oldMeta, err := accessors(obj, old)
	if err != nil {
		return // both were decoded by a codec that checks it
	}
	acc.SetGeneration(oldMeta.GetGeneration())
	s.strategy.PrepareForUpdate(ctx, obj, old)
	if s.policy.KeepMetadata {
		keepAll(acc, oldMeta)
	}
	keepImmutable(acc, oldMeta)
}

// holdingOf says what may hold obj, the successor of old.
func (s *Store) holdingOf(obj runtime.Object, acc, old metav1.Object) holding {
	h := holding{deleting: old.GetDeletionTimestamp() != nil, grace: graceOf(old), finalizers: finalizersOf(acc)}
	if holder, ok := s.strategy.(Holder); ok {
		h.held = holder.Holds(obj)
	}
	return h
}

// conclude tells the hooks what really happened.
func (u *update) conclude(ctx context.Context, res storage.Result, err error) {
	if err == nil && u.removed != nil {
		how := Ending{Outcome: Removed}
		if acc, err := meta.Accessor(u.removed); err == nil {
			how.Object = acc
		}
		u.ends.end(ctx, how)
		return
	}
	u.store.conclude(ctx, u.ends, res, err)
}
