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
	generated := isGenerated(acc)
	ctx = authored(ctx, string(Create))
	for try := 1; ; try++ {
		v, err := s.create(ctx, namespace, obj, o)
		if !generated || try == nameTriesMax || !isTaken(err) {
			return v, err
		}
	}
}

// isGenerated reports whether the name of a new object is to be generated.
func isGenerated(acc metav1.Object) bool { return acc.GetName() == "" && acc.GetGenerateName() != "" }

// create is one try under one name.
func (s *Store) create(ctx context.Context, namespace string, obj runtime.Object, o CreateOptions) (storage.Version, error) {
	c, err := s.newCreation(ctx, namespace, obj, o)
	if err != nil {
		return storage.Version{}, err
	}
	defer c.close(ctx)
	res, err := s.table.Modify(ctx, namespace, c.name, o.DryRun, c.judge)
	c.conclude(ctx, res, err)
	return c.version(res.Version, err), s.refuse("create", c.name, err)
}

// A creation is one try of [Store.Create], under one name.
type creation struct {
	*endings
	namespace, name string
	obj             runtime.Object // as it is sent, with its name
	o               CreateOptions
	acc             metav1.Object // of obj
}

// newCreation begins with what only the server gives: identity, time, and a name if there is none.
func (s *Store) newCreation(ctx context.Context, namespace string, obj runtime.Object, o CreateOptions) (*creation, error) {
	if s.policy.Namespaced && namespace == "" {
		return nil, internal("no namespace information found in request context")
	}
	c := &creation{endings: &endings{store: s}, namespace: namespace, obj: obj.DeepCopyObject(), o: o}
	var err error
	if !o.Owned {
		if c.obj, err = s.own(ctx, nil, c.obj); err != nil {
			return nil, err
		}
	}
	if c.acc, err = meta.Accessor(c.obj); err != nil {
		return nil, err
	}
	s.born(c.acc)
	if isGenerated(c.acc) {
		base := c.acc.GetGenerateName()
		c.acc.SetName(base[:min(len(base), nameBaseMax)] + s.suffix())
	}
	c.name = c.acc.GetName()
	return c, nil
}

// judge is one attempt.
func (c *creation) judge(ctx context.Context, current storage.Version, view *storage.View) (storage.Verdict, error) {
	fresh := c.obj.DeepCopyObject()
	if err := c.store.admitNew(ctx, view, c.namespace, fresh, c.o.DryRun, c.endings); err != nil {
		return storage.Verdict{}, err
	}
	return c.store.placeNew(current, fresh, c.o.DryRun)
}

func (c *creation) conclude(ctx context.Context, res storage.Result, err error) {
	c.store.conclude(ctx, c.endings, res, err)
}

// version is what the client is shown of what came of the creation: of a dry run the version that was
// sent (rule S41).
func (c *creation) version(v storage.Version, err error) storage.Version {
	if named, nerr := revisionNamed(c.acc); err == nil && nerr == nil && c.o.DryRun {
		return v.As(named)
	}
	return v
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
