package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pawl-dev/pawl/registry"
	"github.com/pawl-dev/pawl/storage"
)

var namespaceResource = schema.GroupResource{Resource: "namespaces"}

// NamespaceGuard lets objects come into being only in namespaces of that table which are not
// being deleted (rule B28). It lets everything of a cluster-scoped resource pass. What
// it returns makes the guard of one resource, whose name is in the text of the refusal.
func NamespaceGuard(namespaces *storage.Table) func(schema.GroupResource) registry.Guard {
	return func(resource schema.GroupResource) registry.Guard {
		return func(_ context.Context, view *storage.View, namespace, name string) error {
			if namespace == metav1.NamespaceNone {
				return nil
			}
			ns := namespaces.Version(view.Get(namespaces.Key("", namespace)))
			if !ns.Exists() {
				return apierrors.NewNotFound(namespaceResource, namespace)
			}
			terminating, err := ns.Deleting()
			if err != nil {
				return apierrors.NewInternalError(err)
			}
			if terminating {
				return inTerminating(resource, namespace, name)
			}
			return nil
		}
	}
}

// inTerminating is the answer to a create in a namespace that is being deleted.
func inTerminating(resource schema.GroupResource, namespace, name string) error {
	err := apierrors.NewForbidden(resource, name,
		fmt.Errorf("unable to create new content in namespace %s because it is being terminated", namespace))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
		Type:    corev1.NamespaceTerminatingCause,
		Message: fmt.Sprintf("namespace %s is being terminated", namespace),
		Field:   "metadata.namespace",
	})
	return err
}

// ProtectNamespaces refuses to delete the namespaces that a server cannot be without, in a dry
// run too (rule B19). It belongs to the store of namespaces.
func ProtectNamespaces() registry.Hook { return protection{} }

type protection struct{}

var protected = []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic}

// Begin implements [registry.Hook].
func (protection) Begin(_ context.Context, verb registry.Verb, _, old runtime.Object, _ bool) (func(context.Context, registry.Ending), error) {
	if verb != registry.Delete {
		return nil, nil
	}
	ns, err := meta.Accessor(old)
	if err != nil {
		return nil, err
	}
	if slices.Contains(protected, ns.GetName()) {
		return nil, apierrors.NewForbidden(namespaceResource, ns.GetName(), errors.New("this namespace may not be deleted"))
	}
	return nil, nil
}
