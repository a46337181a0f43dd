package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/storage"
)

// A Transaction is several writes, to any stores of one engine, that happen together or not at all. All
// that are made have one resourceVersion.
//
// Each of its members goes the way of [Store.Create], [Store.Update] or [Store.Delete]: with its
// store's guards, hooks, strategy and validation. They are judged in their order, each against the
// state that is stored, and what they check of other objects takes into account what the members
// before them do: an object may be created behind its namespace. An object can be in one member only.
//
// When somebody else writes in between, all members are judged again. A member that names a version is
// then refused, as it would be alone.
type Transaction struct {
	Members []Member
	// DryRun does everything but the commit.
	DryRun bool
}

// Transact commits the transaction of these members.
func Transact(ctx context.Context, members ...Member) (*Transacted, error) {
	return Transaction{Members: members}.Commit(ctx)
}

// A Member is one object's part in a [Transaction]. Stores and collections make them.
type Member struct {
	verb            Verb
	store           *Store
	namespace, name string
	dryRun          bool // its own options say so
	wrong           error
	begin           func(ctx context.Context, dryRun bool) (write, error)
}

// Check is the [Verb] of a member that writes nothing. Hooks are not told of it.
const Check Verb = "check"

// A write is one write of one object: what becomes of it, and what that is told to whom.
type write interface {
	// place is the name of the object, which for a new one may have been made up.
	place() string
	judge(ctx context.Context, current storage.Version, view *storage.View) (storage.Verdict, error)
	// conclude tells the hooks how it ended.
	conclude(ctx context.Context, res storage.Result, err error)
	// outcome is what the caller is told of a write that was not refused.
	outcome(res storage.Result) MemberResult
	// close tells the hooks that it was refused, unless they know how it ended.
	close(ctx context.Context)
}

// Transacted is what a transaction did.
type Transacted struct {
	// Revision is the resourceVersion of all that was written, [kv.Absent] if nothing was.
	Revision kv.Revision
	Members  []MemberResult // in the order of the members
}

// A MemberResult is what a member did.
type MemberResult struct {
	// Version is the object as it is now or, if it was removed, as it was. It does not exist if nothing
	// is there and nothing was done.
	Version storage.Version
	Created bool
	Removed bool
	// Rebased says what was done if it was rebased; nil if it was not.
	Rebased *Rebased
}

// A TransactionError says which member was refused, and why. Nothing was written.
type TransactionError struct {
	Index           int // of the member
	Verb            Verb
	Resource        schema.GroupResource
	Namespace, Name string
	Err             error // what the write would have been told alone
}

// Error reads like `member 1 of the transaction, update lamps "desk": …`.
func (e *TransactionError) Error() string {
	if e.Verb == "" {
		return fmt.Sprintf("member %d of the transaction: %v", e.Index, e.Err)
	}
	name := e.Name
	if e.Namespace != "" {
		name = e.Namespace + "/" + name
	}
	return fmt.Sprintf("member %d of the transaction, %s %s %q: %v", e.Index, e.Verb, e.Resource, name, e.Err)
}

// Unwrap returns what the write would have been told alone.
func (e *TransactionError) Unwrap() error { return e.Err }

// Creates is the member that [Store.Create] is alone.
func (s *Store) Creates(namespace string, obj runtime.Object, o CreateOptions) Member {
	m := Member{verb: Create, store: s, namespace: namespace, dryRun: o.DryRun}
	acc, err := meta.Accessor(obj)
	if err != nil {
		m.wrong = err
		return m
	}
	m.name = acc.GetName()
	m.begin = func(ctx context.Context, dryRun bool) (write, error) {
		o.DryRun = dryRun
		return s.newCreation(ctx, namespace, obj, o)
	}
	return m
}

// Updates is the member that [Store.Update] is alone.
func (s *Store) Updates(namespace, name string, desire Desire, o UpdateOptions) Member {
	m := Member{verb: Update, store: s, namespace: namespace, name: name, dryRun: o.DryRun, wrong: s.address(namespace, name)}
	m.begin = func(_ context.Context, dryRun bool) (write, error) {
		o.DryRun = dryRun
		return &update{store: s, namespace: namespace, name: name, desire: desire, o: o, ends: &endings{store: s}}, nil
	}
	return m
}

// Deletes is the member that [Store.Delete] is alone; but an object that would be told that it has
// no time left, and then go, goes at once. Nil options mean the defaults.
func (s *Store) Deletes(namespace, name string, o *metav1.DeleteOptions) Member {
	m := Member{verb: Delete, store: s, namespace: namespace, name: name, wrong: s.address(namespace, name)}
	if o == nil {
		o = &metav1.DeleteOptions{}
	}
	m.dryRun = len(o.DryRun) > 0
	if o.IgnoreStoreReadErrorWithClusterBreakingPotential != nil {
		m.wrong = apierrors.NewBadRequest("ignoreStoreReadErrorWithClusterBreakingPotential is not for transactions: delete the object alone")
	}
	m.begin = func(_ context.Context, dryRun bool) (write, error) {
		own := o.DeepCopy()
		if own.DryRun = nil; dryRun {
			own.DryRun = []string{metav1.DryRunAll}
		}
		return &deletion{store: s, name: name, o: own, ends: &endings{store: s}, once: true}, nil
	}
	return m
}

// Checks is a member that refuses the transaction if check has an error about the object, which is nil
// if it does not exist, and that changes nothing. Check may run more than once.
func (s *Store) Checks(namespace, name string, check func(current runtime.Object) error) Member {
	return s.checks(namespace, name, func(current storage.Version) error {
		if !current.Exists() {
			return check(nil)
		}
		obj, err := current.Object()
		if err != nil {
			return err
		}
		return check(obj)
	})
}

// Unchanged is a member that refuses the transaction, with a [*ConflictError], if the object is not at
// that resourceVersion.
func (s *Store) Unchanged(namespace, name, resourceVersion string) Member {
	seen, err := parseUint(resourceVersion)
	m := s.checks(namespace, name, func(current storage.Version) error {
		switch {
		case !current.Exists():
			return &storage.Error{Kind: storage.NotFound, Namespace: namespace, Name: name}
		case current.Revision() != seen:
			return s.conflict(current, seen, nil, nil)
		}
		return nil
	})
	if err != nil || seen == unnamed {
		m.wrong = apierrors.NewBadRequest(fmt.Sprintf("a resourceVersion is needed to tell whether the object is unchanged, and %q is none", resourceVersion))
	}
	return m
}

func (s *Store) checks(namespace, name string, check func(storage.Version) error) Member {
	return Member{
		verb: Check, store: s, namespace: namespace, name: name, wrong: s.address(namespace, name),
		begin: func(context.Context, bool) (write, error) { return &checking{store: s, name: name, check: check}, nil },
	}
}

// Commit makes all of the transaction happen, or none. If a member is refused the error is a
// [*TransactionError]; others are about the transaction as a whole.
func (t Transaction) Commit(ctx context.Context) (*Transacted, error) {
	ctx = authored(ctx, "transact")
	for i, m := range t.Members {
		if err := t.fits(i, m); err != nil {
			return nil, t.refused(i, err)
		}
	}
	for try := 1; ; try++ {
		done, err := t.try(ctx)
		if try == nameTriesMax || !t.taken(err) {
			return done, err
		}
	}
}

// fits says why a member cannot be in the transaction whatever is stored.
func (t Transaction) fits(i int, m Member) error {
	switch {
	case m.store == nil:
		return apierrors.NewBadRequest("it is empty: members are made by stores and collections, such as by Updates")
	case m.wrong != nil:
		return m.wrong
	case m.dryRun && !t.DryRun:
		return apierrors.NewBadRequest("it is a dry run and the transaction is not: ask for a dry run of the transaction")
	case m.store.table.Engine() != t.Members[0].store.table.Engine():
		return apierrors.NewBadRequest("it is of another engine than the first member: a transaction is of one")
	}
	return nil
}

// taken reports whether a name that was made up has lost to one that exists.
func (t Transaction) taken(err error) bool {
	var e *TransactionError
	return errors.As(err, &e) && isTaken(e.Err) && t.Members[e.Index].name == ""
}

// errTogether is why a write was refused to which nobody objected.
var errTogether = errors.New("registry: another member of the transaction was refused")

// try is one try, under one set of generated names.
func (t Transaction) try(ctx context.Context) (*Transacted, error) {
	writes := make([]write, len(t.Members))
	changes := make([]storage.Change, len(t.Members))
	for i, m := range t.Members {
		w, err := m.begin(ctx, t.DryRun)
		if err != nil {
			return nil, t.refused(i, err)
		}
		writes[i], changes[i] = w, storage.Change{Table: m.store.table, Namespace: m.namespace, Name: w.place(), Judge: w.judge}
		defer w.close(ctx)
	}
	if first, second, same := sameObject(changes); same {
		return nil, t.refused(second, apierrors.NewBadRequest(fmt.Sprintf("it is of the same object as member %d: a transaction says once what becomes of an object", first)))
	}
	results, err := storage.Transact(ctx, t.DryRun, changes...)
	if err != nil {
		return nil, t.failed(ctx, writes, err)
	}
	done := &Transacted{Members: make([]MemberResult, len(writes))}
	for i, w := range writes {
		w.conclude(ctx, results[i], nil)
		done.Members[i] = w.outcome(results[i])
		if results[i].Wrote && !t.DryRun {
			done.Revision = max(done.Revision, results[i].Version.Revision())
		}
	}
	return done, nil
}

// sameObject finds the first two changes of one object.
func sameObject(changes []storage.Change) (first, second int, same bool) {
	found := make(map[string]int, len(changes))
	for i, c := range changes {
		key := c.Table.Key(c.Namespace, c.Name)
		if first, same = found[key]; same {
			return first, i, true
		}
		found[key] = i
	}
	return 0, 0, false
}

// failed tells the hooks of all members that the transaction failed, and the caller why.
func (t Transaction) failed(ctx context.Context, writes []write, err error) error {
	var one *storage.ChangeError
	at := -1
	if errors.As(err, &one) {
		at, err = one.Index, one.Err
	}
	for i, w := range writes {
		if u, ok := w.(*update); ok && at < 0 {
			if lost := u.ranOut(ctx, err); lost != err {
				at, err = i, lost
			}
		}
	}
	for i, w := range writes {
		why := errTogether
		if i == at || storage.IsKind(err, storage.Unknown) {
			why = err
		}
		w.conclude(ctx, storage.Result{}, why)
	}
	if at >= 0 {
		return t.refused(at, t.Members[at].store.refuse(string(t.Members[at].verb), writes[at].place(), err))
	}
	return t.Members[0].store.refuse("transact", "", err)
}

func (t Transaction) refused(i int, err error) error {
	m := t.Members[i]
	e := &TransactionError{Index: i, Verb: m.verb, Namespace: m.namespace, Name: m.name, Err: err}
	if m.store != nil {
		e.Resource = m.store.resource
	}
	return e
}

func (c *creation) place() string { return c.name }

func (c *creation) outcome(res storage.Result) MemberResult {
	return MemberResult{Version: c.version(res.Version, nil), Created: true}
}

func (u *update) place() string { return u.name }

func (u *update) outcome(res storage.Result) MemberResult {
	return MemberResult{Version: res.Version, Created: u.created, Removed: u.removed != nil, Rebased: u.rebased}
}

func (u *update) close(ctx context.Context) { u.ends.close(ctx) }

func (d *deletion) place() string { return d.name }

func (d *deletion) conclude(ctx context.Context, res storage.Result, err error) {
	if err != nil {
		d.store.conclude(ctx, d.ends, res, err)
		return
	}
	_, acc, err := decode(res.Version)
	if err != nil {
		return // it could be read when it was judged
	}
	d.ends.end(ctx, ending(d.fate, acc))
}

func (d *deletion) outcome(res storage.Result) MemberResult {
	return MemberResult{Version: res.Version, Removed: slices.Contains([]fate{goes, departs}, d.fate)}
}

func (d *deletion) close(ctx context.Context) { d.ends.close(ctx) }

// A checking is a member that only looks.
type checking struct {
	store *Store
	name  string
	check func(storage.Version) error
}

func (c *checking) place() string { return c.name }

func (c *checking) judge(_ context.Context, current storage.Version, _ *storage.View) (storage.Verdict, error) {
	return storage.Verdict{}, c.check(current)
}

func (c *checking) conclude(ctx context.Context, _ storage.Result, err error) {
	c.store.contended(ctx, err)
}

func (c *checking) outcome(res storage.Result) MemberResult {
	return MemberResult{Version: res.Version}
}

func (*checking) close(context.Context) {}
