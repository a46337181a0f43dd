package etcd

import (
	"context"
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/pawl-dev/pawl/kv"
)

// patient calls wait for a connection rather than fail because there is none yet.
var patient = grpc.WaitForReady(true)

// withLeader has etcd's members refuse at once what they could only answer with a leader that they do not have.
func withLeader(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(ctx, rpctypes.MetadataRequireLeaderKey, rpctypes.MetadataHasLeader)
}

// A ReplacedError says that etcd does not go on from what it told before: it was restored from a backup, or is another.
type ReplacedError struct{ What string }

func (e *ReplacedError) Error() string {
	return "etcd is not what it was: " + e.What + "; it was restored or replaced, so nothing can be told about what happened since: restart this server, and also those who watch it, unless etcd was restored with --bump-revision and --mark-compacted"
}

// checkCluster returns what is wrong with the head of an answer, whose revision need not be the newest.
func (e *Engine) checkCluster(h *pb.ResponseHeader) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cluster == 0 {
		e.cluster = h.GetClusterId()
	}
	if h.GetClusterId() != e.cluster {
		return &ReplacedError{fmt.Sprintf("its cluster was %x and is %x", e.cluster, h.GetClusterId())}
	}
	return nil
}

// answered notes that etcd has judged a transaction, and whether something was written. It stops the engine
// if that was another etcd.
func (e *Engine) answered(h *pb.ResponseHeader, wrote bool) error {
	if err := e.checkCluster(h); err != nil {
		e.stop(err)
		return err
	}
	e.health.wrote(wrote)
	if wrote {
		raise(&e.follows.made, e.in.ours(h.GetRevision()))
	}
	return nil
}

// check returns what is wrong with the head of an answer that is the newest there is, when known was known before
// it was asked for.
func (e *Engine) check(h *pb.ResponseHeader, known kv.Revision) error {
	if err := e.checkCluster(h); err != nil {
		return err
	}
	if rev := e.in.ours(h.GetRevision()); rev < known {
		return &ReplacedError{fmt.Sprintf("its revision was %d and is %d", known, rev)}
	}
	return nil
}
