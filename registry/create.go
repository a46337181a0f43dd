package registry

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/warning"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/storage"
)

// CreateOptions say how an object is created.
type CreateOptions struct {
	DryRun bool
	// Owned leaves managedFields as they are: the loops of a server leave no trace there.
	Owned bool
}

// Create stores a new object and returns it as stored (section 5 of the rules). If the
// object has no name but a generateName it gets one, and another if that is taken, up to
// eight times. The object given is left as it is.
func (s *Store) Create(ctx context.Context, namespace string, obj runtime.Object, o CreateOptions) (storage.Version, error) {
	acc, err := meta.Accessor(obj)
	if err != nil {
		return storage.Version{}, err
	}
	generated := acc.GetName() == "" && acc.GetGenerateName() != ""
	for try := 1; ; try++ {
		v, err := s.create(ctx, namespace, obj.DeepCopyObject(), o, generated)
		if !generated || try == nameTriesMax || !isTaken(err) {
			return v, err
		}
	}
}

// create is one try under one name.
func (s *Store) create(ctx context.Context, namespace string, obj runtime.Object, o CreateOptions, generated bool) (storage.Version, error) {
	if !o.Owned {
		owned, err := s.own(ctx, nil, obj)
		if err != nil {
			return storage.Version{}, err
		}
		obj = owned
	}
	acc, err := meta.Accessor(obj)
	if err != nil {
		return storage.Version{}, err
	}
	s.born(acc)
	if generated {
		base := acc.GetGenerateName()
		acc.SetName(base[:min(len(base), nameBaseMax)] + s.suffix())
	}
	if s.policy.Namespaced && namespace == "" {
		return storage.Version{}, internal("no namespace information found in request context")
	}
	ends := &endings{store: s}
	defer ends.close(ctx)
	res, err := s.table.Modify(ctx, namespace, acc.GetName(), o.DryRun, func(ctx context.Context, current storage.Version, view *storage.View) (storage.Verdict, error) {
		fresh := obj.DeepCopyObject()
		if err := s.admitNew(ctx, view, namespace, fresh, o.DryRun, ends); err != nil {
			return storage.Verdict{}, err
		}
		return s.placeNew(current, fresh, o.DryRun)
	})
	s.conclude(ctx, ends, res, err)
	if named, nerr := revisionNamed(acc); err == nil && nerr == nil && o.DryRun {
		return res.Version.As(named), nil // rule S41: a dry run shows the version that was sent
	}
	return res.Version, s.refuse("create", acc.GetName(), err)
}

// placeNew says whether a new object finds its place free. That it names a version is wrong
// whatever is there (rules S41, K24).
func (s *Store) placeNew(current storage.Version, fresh runtime.Object, dryRun bool) (storage.Verdict, error) {
	acc, err := meta.Accessor(fresh)
	if err != nil {
		return storage.Verdict{}, err
	}
	if named, err := revisionNamed(acc); err == nil && named != unnamed && !dryRun {
		return storage.Verdict{}, mustNotSetVersion()
	}
	if current.Exists() {
		md, err := current.Metadata()
		return storage.Verdict{}, s.alreadyExists(acc.GetName(), acc.GetGenerateName(), err == nil && md.DeletionTimestamp != nil)
	}
	acc.SetResourceVersion("")
	return storage.Verdict{Action: storage.Put, Object: fresh, Expiry: s.expiry(fresh, kv.Forever)}, nil
}

// admitNew prepares and checks an object that may come into being: guards, hooks, and the
// common create checks in their order (rules S36, S43).
func (s *Store) admitNew(ctx context.Context, view *storage.View, namespace string, obj runtime.Object, dryRun bool, ends *endings) error {
	acc, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	for _, guard := range s.guards {
		if err := guard(ctx, view, namespace, acc.GetName()); err != nil {
			return err
		}
	}
	if err := ends.begin(ctx, Create, obj, nil, dryRun); err != nil {
		return err
	}
	if err := s.settleNamespace(acc, namespace); err != nil {
		return err
	}
	s.strategy.PrepareForCreate(ctx, obj)
	errs := s.claim(ctx, view, obj, nil)
	if len(errs) == 0 {
		errs = s.strategy.Validate(ctx, obj)
	}
	if len(errs) == 0 {
		errs = s.checkNew(acc)
	}
	if err := s.invalid(acc, errs); err != nil {
		return err
	}
	for _, w := range s.strategy.Warnings(ctx, obj, nil) {
		warning.AddWarning(ctx, "", w)
	}
	s.strategy.Canonicalize(obj)
	return nil
}

// invalid is the answer to an object that does not pass validation (rule S43c).
func (s *Store) invalid(obj metav1.Object, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	kind := s.kind.GroupKind()
	if !s.policy.Blames.Empty() {
		kind = s.policy.Blames
	}
	return apierrors.NewInvalid(kind, obj.GetName(), errs)
}

// conclude tells the hooks what really happened.
func (s *Store) conclude(ctx context.Context, ends *endings, res storage.Result, err error) {
	s.contended(ctx, err)
	how := Ending{Outcome: Refused}
	switch {
	case storage.IsKind(err, storage.Unknown):
		how.Outcome = Uncertain
	case err != nil:
	case !res.Wrote:
		how.Outcome = Unchanged
	case len(s.hooks) > 0:
		how.Outcome = Written
		if _, acc, err := decode(res.Version); err == nil {
			how.Object = acc
		}
	}
	ends.end(ctx, how)
}
