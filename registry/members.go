package registry

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Creates is the member of a [Transaction] that [Collection.Create] is alone.
func (c *Collection[T]) Creates(obj *T, o ...CreateOptions) Member {
	return c.store.Creates(c.at(obj), c.of.box(obj), only(o))
}

// Replaces is the member of a [Transaction] that [Collection.Replace] is alone.
func (c *Collection[T]) Replaces(obj *T, o ...UpdateOptions) Member {
	return c.store.Updates(c.at(obj), metaOf(obj).GetName(), Exactly(c.of.box(obj)), only(o))
}

// Updates is the member of a [Transaction] that [Collection.Update] is alone. Change may look at what
// those of the members before it have left: they are all asked again, in their order, when
// somebody else writes in between.
func (c *Collection[T]) Updates(name string, change func(obj *T) error, o ...UpdateOptions) Member {
	return c.store.Updates(c.namespace, name, c.changing(name, change), c.options(o))
}

// Deletes is the member of a [Transaction] that [Collection.Delete] is alone.
func (c *Collection[T]) Deletes(name string, o ...metav1.DeleteOptions) Member {
	given := only(o)
	return c.store.Deletes(c.namespace, name, &given)
}

// Checks is a member of a [Transaction] that refuses it if check has an error about the object, which is
// nil if it does not exist. Nobody can change the object before the transaction has happened.
func (c *Collection[T]) Checks(name string, check func(obj *T) error) Member {
	return c.store.Checks(c.namespace, name, func(current runtime.Object) error {
		obj, err := unboxed[T](current)
		if err != nil {
			return err
		}
		return check(obj)
	})
}

// Unchanged is a member of a [Transaction] that refuses it, with a [*ConflictError], if there is another
// version of the object than obj.
func (c *Collection[T]) Unchanged(obj *T) Member {
	return c.store.Unchanged(c.at(obj), metaOf(obj).GetName(), metaOf(obj).GetResourceVersion())
}

// Transacted returns the object that member i left behind or removed; nil if there is none.
func (c *Collection[T]) Transacted(done *Transacted, i int) (*T, error) {
	v := done.Members[i].Version
	if !v.Exists() {
		return nil, nil
	}
	return c.one("transact", v, nil)
}
