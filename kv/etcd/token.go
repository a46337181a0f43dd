package etcd

import (
	"context"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
)

// A tokenConn asks again what etcd refused to look at because it had forgotten the token of a user with a password, or asks
// for one only since. The client has got another by then.
type tokenConn struct{ grpc.ClientConnInterface }

// inTheNameOf returns the connection on which etcd is asked in the name of opts' user.
func inTheNameOf(opts Options, conn grpc.ClientConnInterface) grpc.ClientConnInterface {
	if opts.User == "" {
		return conn
	}
	return tokenConn{conn}
}

// Invoke implements [grpc.ClientConnInterface].
func (t tokenConn) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	err := t.ClientConnInterface.Invoke(ctx, method, args, reply, opts...)
	if says(err, rpctypes.ErrInvalidAuthToken) || says(err, rpctypes.ErrAuthOldRevision) || says(err, rpctypes.ErrUserEmpty) {
		return t.ClientConnInterface.Invoke(ctx, method, args, reply, opts...)
	}
	return err
}
