package controller

import (
	"context"
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/registry"
	"github.com/pawl-dev/pawl/storage"
)

// DefaultAccount is the service account that every namespace has.
const DefaultAccount = "default"

// AccountsOptions are what [Accounts] is made of. All but Clock and Log are needed.
type AccountsOptions struct {
	Namespaces *storage.Table
	Accounts   *registry.Store
	Clock      clock.Clock  // nil means the real one
	Log        *slog.Logger // is told what no request can be told; nil means nobody
}

// Accounts gives every namespace its default service account, and gives it another if that one
// goes while the namespace lives (rule B22).
type Accounts struct{ o AccountsOptions }

// NewAccounts makes the loop. Nothing happens before [Accounts.Run].
func NewAccounts(o AccountsOptions) *Accounts {
	o.Clock, o.Log = clockOr(o.Clock), logOr(o.Log).With("controller", "accounts")
	return &Accounts{o}
}

// Run works until ctx ends or the engine is closed. It is called once.
func (a *Accounts) Run(ctx context.Context) error {
	for tries := 0; ; tries++ {
		err := a.follow(ctx)
		if ctx.Err() != nil || storage.IsClosed(err) {
			return nil
		}
		a.o.Log.Warn("namespaces are listed anew", "because", err)
		if !storage.IsKind(err, storage.Expired) && !pause(ctx, a.o.Clock, tries) {
			return nil
		}
	}
}

// follow looks at every namespace there is and comes to be, and at accounts that go.
func (a *Accounts) follow(ctx context.Context) error {
	gone, err := a.o.Accounts.Table().Watch(ctx, storage.WatchOptions{From: storage.AfterState{At: kv.Latest}})
	if err != nil {
		return err
	}
	defer gone.Stop()
	living, err := a.o.Namespaces.Watch(ctx, storage.WatchOptions{From: storage.State{At: kv.Latest}})
	if err != nil {
		return err
	}
	defer living.Stop()
	for {
		if err := a.drain(living, func(e storage.Event) error {
			if e.Type != storage.Added {
				return nil
			}
			return a.furnish(ctx, e.Version.Name())
		}); err != nil {
			return err
		}
		if err := a.drain(gone, func(e storage.Event) error {
			if e.Type != storage.Deleted || e.Version.Name() != DefaultAccount {
				return nil
			}
			return a.furnish(ctx, e.Version.Namespace())
		}); err != nil {
			return err
		}
		select {
		case <-living.Wait():
		case <-gone.Wait():
		case <-ctx.Done():
			return nil
		}
	}
}

func (a *Accounts) drain(w *storage.Watch, take func(storage.Event) error) error {
	for {
		e, ok, err := w.Next()
		if err != nil || !ok {
			return err
		}
		if err := take(e); err != nil {
			return err
		}
	}
}

// furnish makes the account of a namespace if it is missing. A namespace that is going, or has
// gone, needs none.
func (a *Accounts) furnish(ctx context.Context, namespace string) error {
	if _, err := a.o.Accounts.Table().Get(ctx, namespace, DefaultAccount, kv.Any); err == nil {
		return nil
	}
	ctx = storage.WithAuthor(ctx, kv.Author{User: "system:serviceaccount:kube-system:service-account-controller", Verb: "create"})
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: DefaultAccount}}
	_, err := a.o.Accounts.Create(ctx, namespace, account, registry.CreateOptions{Owned: true})
	if apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil
	}
	return err
}
