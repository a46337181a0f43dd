package etcd

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"

	"github.com/pawl-dev/pawl/kv"
)

// A teller is an etcd of one member that answers at once, and whose watches tell what it holds slowly.
type teller struct {
	keys  int           // each put at a revision of its own, from 2 on
	first time.Duration // until a watch tells anything
	each  time.Duration // and then the next
	whole bool          // all of it is one response, in fragments

	watches int
}

func (l *teller) Close() error                 { return nil }
func (l *teller) GetState() connectivity.State { return connectivity.Ready }

func (l *teller) head() *pb.ResponseHeader {
	return &pb.ResponseHeader{ClusterId: 1, Revision: emptyRevision + int64(l.keys)}
}

func (l *teller) Invoke(_ context.Context, _ string, _, reply any, _ ...grpc.CallOption) error {
	switch r := reply.(type) {
	case *pb.RangeResponse:
		r.Header = l.head()
	case *pb.TxnResponse:
		r.Header = l.head()
	}
	return nil
}

func (l *teller) NewStream(ctx context.Context, _ *grpc.StreamDesc, _ string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
	l.watches++
	return &tale{ctx: ctx, of: l}, nil
}

// A tale is what one watch tells.
type tale struct {
	grpc.ClientStream
	ctx  context.Context
	of   *teller
	told int
}

func (s *tale) SendMsg(any) error { return s.ctx.Err() }

func (s *tale) RecvMsg(into any) error {
	if s.told == s.of.keys {
		<-s.ctx.Done()
		return s.ctx.Err()
	}
	pause := s.of.each
	if s.told == 0 {
		pause = s.of.first
	}
	select {
	case <-time.After(pause):
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
	s.told++
	r := into.(*pb.WatchResponse)
	r.Header, r.Fragment = s.of.head(), s.of.whole && s.told < s.of.keys
	put := &mvccpb.KeyValue{
		Key:   newKeyspace(DefaultPrefix).in(fmt.Sprint("default/g/r/k", s.told)),
		Value: envelope{grouped: true, id: id{1, uint64(s.told)}, author: encodeAuthor(kv.Author{})}.encode(),
	}
	put.ModRevision = emptyRevision + int64(s.told)
	put.CreateRevision = put.ModRevision
	r.Events = []*mvccpb.Event{{Type: mvccpb.Event_PUT, Kv: put}}
	return nil
}

// What a watch has to tell may be more than etcd reads, or the network carries, in the time that one may tell nothing.
func TestAWatchThatIsSlowIsLetFinish(t *testing.T) {
	for _, c := range []struct {
		name    string
		of      teller
		within  time.Duration
		watches int
	}{
		{"each response tells something", teller{keys: 20, each: 3 * time.Second}, time.Minute, 1},
		{"one response comes in many fragments", teller{keys: 20, each: 3 * time.Second, whole: true}, time.Minute, 1},
		{"it is long until it tells anything, after one or two watches that were ended too early", teller{keys: 1, first: 17 * time.Second}, time.Minute, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := c.of
				opts := Options{CompactEvery: -1}.complete()
				e := newEngine(opts, newMembers(&chair{}, []link{&l}, 0, nil), 7)
				defer e.Close()
				ctx, cancel := context.WithTimeout(t.Context(), c.within)
				defer cancel()
				if err := e.begin(ctx); err != nil {
					t.Fatalf("after %d watches: %v", l.watches, err)
				}
				snap, err := e.Read(ctx, kv.Any)
				if err != nil {
					t.Fatal(err)
				}
				if n := kv.Count(snap, "default/g/r/", ""); n != l.keys || l.watches != c.watches {
					t.Errorf("%d watches told of %d keys, want %d and %d", l.watches, n, c.watches, l.keys)
				}
			})
		})
	}
}
