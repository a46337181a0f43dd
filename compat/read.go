package compat

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	apistorage "k8s.io/apiserver/pkg/storage"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/storage"
)

// Get implements storage.Interface (rules K20 to K23).
func (s *Store) Get(ctx context.Context, key string, opts apistorage.GetOptions, out runtime.Object) error {
	p, err := s.placeOf(key)
	if err != nil {
		return err
	}
	at, err := s.freshness(opts.ResourceVersion)
	if err != nil {
		return err
	}
	v, err := s.table.Get(ctx, p.namespace, p.name, at)
	if storage.IsKind(err, storage.NotFound) && opts.IgnoreNotFound {
		return runtime.SetZeroValue(out)
	}
	if err == nil {
		_, err = s.decode(ctx, v, out)
	}
	var bad *unreadable
	if errors.As(err, &bad) && s.deletesCorrupt && bad.corrupt {
		return apistorage.NewCorruptObjError(key, bad)
	}
	if err != nil {
		return s.fault("get", key, err)
	}
	return nil
}

// freshness says how new a state a get asks for.
func (s *Store) freshness(resourceVersion string) (kv.Freshness, error) {
	rev, err := s.versioner.ParseResourceVersion(resourceVersion)
	switch {
	case err != nil:
		return kv.Latest, apierrors.NewBadRequest(fmt.Sprintf("invalid resource version: %v", err))
	case resourceVersion == "":
		return kv.Latest, nil
	case rev == 0:
		return kv.Any, nil
	}
	return kv.AtLeast(kv.Revision(rev)), nil
}

// GetList implements storage.Interface (rules K49 to K63).
func (s *Store) GetList(ctx context.Context, key string, opts apistorage.ListOptions, listObj runtime.Object) error {
	where, err := s.scopeOf(key, opts.Recursive)
	if err != nil {
		return err
	}
	from, err := listFrom(opts)
	if err != nil {
		return s.fault("list", key, err)
	}
	l := &listing{Store: s, ctx: ctx, pred: opts.Predicate}
	if err := l.into(listObj); err != nil {
		return err
	}
	o := storage.ListOptions{
		Namespace: where.namespace, Name: where.name, From: from, Limit: opts.Predicate.Limit,
		Selector: storage.Selector{Func: l.takes},
	}
	all := opts.Predicate.Empty()
	switch {
	case where.nothing:
		o.Selector.Func = func(storage.Version) (bool, error) { return false, nil }
	case all:
		o.Selector.Func = nil // then storage knows how many are left
	}
	page, err := s.table.List(ctx, o)
	if err == nil && all && !where.nothing {
		err = l.take(page.Items)
	}
	if bad := l.lost.report(s.resource); bad != nil {
		return bad
	}
	if err != nil {
		return s.fault("list", key, err)
	}
	opts.Predicate.SetShardInfoOnList(listObj)
	return s.versioner.UpdateList(listObj, uint64(page.Revision), page.Continue, page.Remaining)
}

// listFrom says what the options of a list mean together (rules K49 to K52). Unlike a client, who
// calls a storage.Interface may say how a version matches where that does not matter.
func listFrom(opts apistorage.ListOptions) (storage.From, error) {
	q := storage.ListQuery{
		ResourceVersion: opts.ResourceVersion, ResourceVersionMatch: string(opts.ResourceVersionMatch),
		Limit: opts.Predicate.Limit, Continue: opts.Predicate.Continue,
	}
	if !opts.Recursive {
		q.Continue = ""
	}
	if q.ResourceVersion == "" || q.Continue != "" {
		q.ResourceVersionMatch = ""
	}
	from, _, err := q.Parse() // the limit holds whatever the version: only watch caches ignore it at 0
	return from, err
}

// A listing puts the objects of one list into a list object.
type listing struct {
	*Store
	ctx     context.Context
	pred    apistorage.SelectionPredicate
	items   reflect.Value // the slice
	newItem func() runtime.Object
	lost    casualties
}

// into makes ready to fill a list object.
func (l *listing) into(listObj runtime.Object) error {
	ptr, err := meta.GetItemsPtr(listObj)
	if err != nil {
		return err
	}
	if l.items, err = conversion.EnforcePtr(ptr); err != nil || l.items.Kind() != reflect.Slice {
		return fmt.Errorf("need ptr to slice: %v", err)
	}
	if l.items.IsNil() {
		l.items.Set(reflect.MakeSlice(l.items.Type(), 0, 0)) // never none at all (rule K57)
	}
	elem := l.items.Type().Elem()
	l.newItem = func() runtime.Object { return reflect.New(elem).Interface().(runtime.Object) }
	if u, ok := listObj.(*unstructured.UnstructuredList); ok && u.GetAPIVersion() != "" {
		version := u.GetAPIVersion()
		l.newItem = func() runtime.Object {
			return &unstructured.Unstructured{Object: map[string]any{"apiVersion": version}}
		}
	}
	return nil
}

// take takes all objects of a page.
func (l *listing) take(page []storage.Version) error {
	l.items.Grow(len(page))
	for _, v := range page {
		if _, err := l.takes(v); err != nil {
			return err
		}
	}
	return nil
}

// takes adds the object to the list if the predicate picks it, and says whether it did. An object
// that cannot be read is remembered, and the list goes on if it may (rule K62); one about which the
// predicate fails is not picked (rule K58).
func (l *listing) takes(v storage.Version) (bool, error) {
	if err := l.ctx.Err(); err != nil {
		return false, &storage.Error{Kind: storage.Timeout, Err: err}
	}
	obj, err := l.decode(l.ctx, v, l.newItem())
	if err != nil {
		return false, l.lost.add(l.Store, err)
	}
	if ok, err := l.pred.Matches(obj); err != nil || !ok {
		return false, nil
	}
	l.items.Set(reflect.Append(l.items, reflect.ValueOf(obj).Elem()))
	return true, nil
}

// emptyLike returns an empty object of the same kind.
func emptyLike(obj runtime.Object) runtime.Object {
	if u, ok := obj.(runtime.Unstructured); ok {
		return u.NewEmptyInstance()
	}
	return reflect.New(reflect.TypeOf(obj).Elem()).Interface().(runtime.Object)
}
