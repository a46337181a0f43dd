package etcd

import (
	"context"
	"slices"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
)

// A porter says the same to everybody, but for the first.
type porter struct {
	grpc.ClientConnInterface
	first, then error
	asked       int
}

func (p *porter) Invoke(context.Context, string, any, any, ...grpc.CallOption) error {
	if p.asked++; p.asked == 1 {
		return p.first
	}
	return p.then
}

func TestWhoIsAskedAgainInTheNameOfAUser(t *testing.T) {
	user := Options{User: "u", Password: "p"}
	for _, c := range []struct {
		name        string
		opts        Options
		first, then error
		asked       int
	}{
		{"not who answers", user, nil, nil, 1},
		{"who has forgotten the token", user, rpctypes.ErrGRPCInvalidAuthToken, nil, 2},
		{"who holds it to be too old", user, rpctypes.ErrGRPCAuthOldRevision, nil, 2},
		{"who did not ask for one before", user, rpctypes.ErrGRPCUserEmpty, nil, 2},
		{"but once", user, rpctypes.ErrGRPCInvalidAuthToken, rpctypes.ErrGRPCInvalidAuthToken, 2},
		{"not who denies something", user, rpctypes.ErrGRPCPermissionDenied, nil, 1},
		{"nor who may have done something", user, rpctypes.ErrGRPCTimeout, nil, 1},
		{"nobody, if there is no user", Options{}, rpctypes.ErrGRPCUserEmpty, nil, 1},
	} {
		p := &porter{first: c.first, then: c.then}
		err := inTheNameOf(c.opts, p).Invoke(t.Context(), "ask", nil, nil)
		want := c.first
		if c.asked > 1 {
			want = c.then
		}
		if err != want || p.asked != c.asked {
			t.Errorf("%s: asked %d times, got %v", c.name, p.asked, err)
		}
	}
}

// A bouncer notes how it is asked.
type bouncer struct {
	pb.AuthClient
	harmless bool
}

func (b *bouncer) Authenticate(_ context.Context, _ *pb.AuthenticateRequest, opts ...grpc.CallOption) (*pb.AuthenticateResponse, error) {
	b.harmless = slices.Contains(opts, grpc.CallOption(harmless))
	return nil, nil
}

// Whatever lets a client in may be asked of another member, too, if it takes long.
func TestWhoLetsTheClientIn(t *testing.T) {
	b := &bouncer{}
	if _, err := (doorman{b}).Authenticate(t.Context(), nil, patient); err != nil || !b.harmless {
		t.Error("it is asked as if that may not be done twice")
	}
}
