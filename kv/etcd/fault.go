package etcd

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A verdict is what an error says of a transaction that was sent.
type verdict uint8

const (
	unknown verdict = 1 + iota // it may be done yet
	again                      // it was not done; it may be sent again
	noLease                    // it was not done: its lease has ended
	tooMuch                    // it was not done, and never will be
	refused                    // it was not done, for a reason that somebody has to see to
	full                       // there is no room; it may have been done all the same: etcd looks before it writes, and after
)

// verdicts are of the errors that are certain. Of all others, and of whatever the network says, nothing is known.
var verdicts = []struct {
	err     error
	verdict verdict
}{
	{rpctypes.ErrNoSpace, full},
	{rpctypes.ErrNoLeader, again}, // asked for before anything else is done; see withLeader
	{rpctypes.ErrTooManyRequests, again},
	{rpctypes.ErrInvalidAuthToken, again}, // the client has asked for another
	{rpctypes.ErrAuthOldRevision, again},
	{rpctypes.ErrLeaseNotFound, noLease},
	{rpctypes.ErrRequestTooLarge, tooMuch},
	{rpctypes.ErrTooManyOps, tooMuch},
	{rpctypes.ErrUserEmpty, again}, // it was asked before etcd asked who is there, or the client has asked for a token by now
	{rpctypes.ErrPermissionDenied, refused},
	{rpctypes.ErrAuthFailed, refused},
	{rpctypes.ErrNotCapable, refused},
}

// judge says what an error of a transaction means; sent is whether it left this process.
func judge(err error, sent bool) verdict {
	if !sent && !errors.Is(err, context.Canceled) && status.Code(err) != codes.Canceled {
		return again
	}
	known := rpctypes.Error(err)
	for _, v := range verdicts {
		if errors.Is(known, v.err) {
			return v.verdict
		}
	}
	return unknown
}

// says is whether etcd said that.
func says(err, what error) bool { return errors.Is(rpctypes.Error(err), what) }
