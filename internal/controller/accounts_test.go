package controller

import (
	"context"
	"slices"
	"strings"
	"testing"
)

// accountsIn lists the namespaces that have their default account.
func (w *world) accountsIn() (namespaces []string) {
	for _, key := range w.keys("/serviceaccounts/") {
		parts := strings.Split(key, "/")
		if parts[len(parts)-1] == DefaultAccount {
			namespaces = append(namespaces, parts[len(parts)-2])
		}
	}
	return namespaces
}

func (w *world) startAccounts() (stop func()) {
	ctx, cancel := context.WithCancel(w.ctx)
	a := NewAccounts(AccountsOptions{
		Namespaces: w.version("", "namespaces").Store.Table(), Accounts: w.version("", "serviceaccounts").Store,
	})
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	w.settle()
	return func() {
		cancel()
		if err := <-done; err != nil {
			w.Error(err)
		}
	}
}

func TestEveryNamespaceHasItsAccount(t *testing.T) { // rule B22
	within(t, func(w *world) {
		w.create("", "namespaces", "", named("before"))
		defer w.startAccounts()()
		w.create("", "namespaces", "", named("after"))
		w.settle()
		for _, ns := range []string{"before", "after", "default", "kube-system"} {
			if !slices.Contains(w.accountsIn(), ns) {
				t.Errorf("namespace %s has no default account; these have: %v", ns, w.accountsIn())
			}
		}
	})
}

func TestAnAccountThatGoesComesBack(t *testing.T) {
	within(t, func(w *world) {
		defer w.startAccounts()()
		w.create("", "namespaces", "", named("a"))
		w.settle()
		w.delete("", "serviceaccounts", "a", DefaultAccount)
		w.settle()
		if !slices.Contains(w.accountsIn(), "a") {
			t.Errorf("the account did not come back: %v", w.accountsIn())
		}
	})
}

func TestADeletedNamespaceIsGivenNoAccount(t *testing.T) {
	within(t, func(w *world) {
		defer w.startAccounts()()
		w.create("", "namespaces", "", named("a"))
		w.create("", "configmaps", "a", holding("stays"))
		w.settle()
		w.delete("", "namespaces", "", "a")
		w.settle()
		if slices.Contains(w.accountsIn(), "a") {
			t.Error("a namespace that is being deleted was given its account back")
		}
		w.free("", "configmaps", "a", "stays")
		w.settle()
		if left := w.keys("/a/"); len(left) > 0 {
			t.Errorf("the namespace went, and left %v", left)
		}
	})
}

func TestAccountsAreMadeOnceTheDiskHasRoom(t *testing.T) {
	within(t, func(w *world) {
		w.create("", "namespaces", "", named("a"))
		w.engine.full.Store(true)
		defer w.startAccounts()()
		w.engine.full.Store(false)
		w.later(pauseMax)
		if !slices.Contains(w.accountsIn(), "a") {
			t.Errorf("no account was made after the fault: %v", w.accountsIn())
		}
	})
}
