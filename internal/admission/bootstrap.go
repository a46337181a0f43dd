package admission

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/registry"
	"github.com/pawl-dev/pawl/storage"
)

// systemNamespaces are those that every server has (rule B18).
var systemNamespaces = [...]string{
	metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease,
}

// Bootstrap makes the namespaces that every server has, where they are missing (rule B18).
// Namespaces is the store of namespaces. If all exist it writes nothing and looks at memory
// alone; those that do not are made side by side, in one group of commits.
func Bootstrap(ctx context.Context, namespaces *registry.Store) error {
	ctx = storage.WithAuthor(ctx, kv.Author{User: "system:apiserver", Manager: "pawl", Verb: "create"})
	var errs [len(systemNamespaces)]error
	var making sync.WaitGroup
	for i, name := range systemNamespaces {
		_, err := namespaces.Get(ctx, "", name, "0")
		if apierrors.IsNotFound(err) {
			making.Go(func() { errs[i] = makeNamespace(ctx, namespaces, name) })
			continue
		}
		errs[i] = err
	}
	making.Wait()
	return errors.Join(errs[:]...)
}

func makeNamespace(ctx context.Context, namespaces *registry.Store, name string) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := namespaces.Create(ctx, "", ns, registry.CreateOptions{Owned: true})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("admission: namespace %s cannot be made: %w", name, err)
	}
	return nil
}

// Kubernetes makes the service kubernetes in namespace default, where clients in a cluster look
// for the server, if it is missing (rule B24). Address is the first one of the range that
// services have, and port where the server listens. It has no endpoints: those of a server
// that listens on loopback would be of use to nobody, and are not allowed.
func Kubernetes(ctx context.Context, services *registry.Store, address string, port int) error {
	const name = "kubernetes"
	if _, err := services.Get(ctx, metav1.NamespaceDefault, name, "0"); !apierrors.IsNotFound(err) {
		return err
	}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"component": "apiserver", "provider": name}},
		Spec: corev1.ServiceSpec{
			ClusterIP: address, ClusterIPs: []string{address}, Type: corev1.ServiceTypeClusterIP, SessionAffinity: corev1.ServiceAffinityNone,
			Ports: []corev1.ServicePort{{Name: "https", Port: 443, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt(port)}},
		},
	}
	ctx = storage.WithAuthor(ctx, kv.Author{User: "system:apiserver", Manager: "pawl", Verb: "create"})
	_, err := services.Create(ctx, metav1.NamespaceDefault, service, registry.CreateOptions{Owned: true})
	if err == nil || apierrors.IsAlreadyExists(err) {
		return nil
	}
	// Another server may have been quicker: then what is refused first is the address, which is taken.
	if _, missing := services.Get(ctx, metav1.NamespaceDefault, name, ""); missing == nil {
		return nil
	}
	return fmt.Errorf("admission: service %s cannot be made: %w", name, err)
}
