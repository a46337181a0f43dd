package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// A DeniedError says that an etcd which asks who is there does not let this one read or write its store.
type DeniedError struct {
	Prefix string
	Err    error // what etcd said
}

// Error says what etcd does not let it do, and what to do.
func (e *DeniedError) Error() string {
	what := fmt.Sprintf("etcd does not let this user read and write all that is under %s/", strings.TrimRight(e.Prefix, "/"))
	switch {
	case errors.Is(e.Err, rpctypes.ErrUserEmpty):
		what = "etcd asks who this is, and was not told"
	case errors.Is(e.Err, rpctypes.ErrAuthFailed):
		what = "etcd knows nobody by this name and password"
	}
	return what + "; " + e.Hint()
}

// Hint says what to do; the error's text ends with it.
func (e *DeniedError) Hint() string {
	switch {
	case errors.Is(e.Err, rpctypes.ErrUserEmpty):
		return "give a user's name and password, or a certificate with the user's name, which etcd goes by if it runs with --client-cert-auth"
	case errors.Is(e.Err, rpctypes.ErrAuthFailed):
		return "see that both are right: etcdctl user get NAME, etcdctl user passwd NAME"
	}
	return fmt.Sprintf("give the user a role that may: etcdctl role grant-permission ROLE --prefix=true readwrite %s/", strings.TrimRight(e.Prefix, "/"))
}

func (e *DeniedError) Unwrap() error { return e.Err }

// denials are what etcd says to who may not, or is not known.
var denials = []error{rpctypes.ErrPermissionDenied, rpctypes.ErrUserEmpty, rpctypes.ErrAuthFailed}

// denied returns a [DeniedError] if that is what err says, and err itself if not.
func denied(prefix string, err error) error {
	if isDenied(err) || !slices.ContainsFunc(denials, func(d error) bool { return says(err, d) }) {
		return err
	}
	return &DeniedError{prefix, rpctypes.Error(err)}
}

func isDenied(err error) bool {
	var d *DeniedError
	return errors.As(err, &d)
}

// introduce has etcd told again who this is, if it goes by a password: etcd may not have asked when it was told last, and
// take this one since for whom its certificate names. The client does that before it begins a stream.
func (e *Engine) introduce(ctx context.Context) {
	if e.opts.User == "" {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	_, err := e.watch.Watch(ctx)
	if err = e.named(err); err != nil {
		e.health.failed(err)
	}
}

// named returns what etcd says in our words, if it denies something.
func (e *Engine) named(err error) error { return denied(e.opts.Prefix, err) }
