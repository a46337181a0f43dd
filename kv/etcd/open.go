package etcd

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"slices"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/mvcc"
)

// emptyRevision is the revision of an etcd that has never been written.
const emptyRevision = 1

// DefaultPrefix is under which keys are kept if nothing else is said.
const DefaultPrefix = "/pawl"

// How long things take.
const (
	patienceDefault = 10 * time.Second
	compactDefault  = 5 * time.Minute

	questionMax = 3 * time.Second        // one question to etcd
	againAfter  = 50 * time.Millisecond  // what failed is tried again
	futureEvery = 250 * time.Millisecond // who waits for a revision that nobody has made asks again
	awayAfter   = 5 * time.Second        // of silence, nobody is let write
	doubtMax    = 3 * time.Second        // it is tried to find out what became of a commit
	stallMin    = time.Second            // a watch may tell nothing while there is something to tell
	stallAlone  = 5 * time.Second        // and if there is but one member
	stallMax    = time.Minute            // and after that has happened again and again
	stallOwing  = stallMin / 4           // and if its member owes other answers, too
	stallEvery  = 100 * time.Millisecond // it is looked whether it does
	drainEvery  = time.Second / 2        // who closes the engine asks whether etcd is there to answer commits under way
	drainMax    = time.Second            // that takes
	urgeMin     = time.Millisecond       // between two requests for progress
	urgeMax     = 100 * time.Millisecond
	lookEvery   = time.Second      // at etcd's health
	noticeEvery = 10 * time.Second // that etcd has forgotten
	keepAlive   = 5 * time.Second
	toldFirst   = time.Second      // of waiting for etcd, it is said
	toldAgain   = 10 * time.Second // and again
)

// reconnect is how often a member is called with which there is no connection. By default it may be two minutes until it is noticed that it is back.
var reconnect = backoff.Config{BaseDelay: 2 * againAfter, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second}

var (
	errCompacted      = rpctypes.ErrCompacted
	errFutureRevision = rpctypes.ErrFutureRev
)

// A Clock tells the time.
type Clock interface{ Now() time.Time }

type realClock struct{}

func (realClock) Now() time.Time { return time.Now() }

// window is how many bytes etcd may send ahead on one stream. Given as a constant, it need not be found out anew with each
// answer: that is a ping and what answers it for every commit.
const window = 4 << 20

// Options say where a store is kept and how. Endpoints must be given.
type Options struct {
	Endpoints []string    // URLs of etcd's members
	TLS       *tls.Config // nil means that they are not spoken to in secret
	User      string      // of etcd's, with a password; "" means none, or the one that the certificate names
	Password  string
	Prefix    string // of all keys; "" means DefaultPrefix

	Logger  *slog.Logger // nil means silence
	Clock   Clock        // that commits are signed by; nil means the machine's
	Entropy io.Reader    // that replicas are told apart by; nil means crypto/rand

	HistoryDuration time.Duration // see [mvcc.Options]; also what is kept in etcd
	HistorySize     int64         // see [mvcc.Options]

	Patience     time.Duration // how long a write, or a read of the latest, waits for etcd; 0 means 10 s
	CompactEvery time.Duration // how often etcd's history is cut to HistoryDuration by one of the replicas; 0 means 5 min, less never
}

func (o Options) complete() Options {
	if o.Prefix == "" {
		o.Prefix = DefaultPrefix
	}
	if o.Clock == nil {
		o.Clock = realClock{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Entropy == nil {
		o.Entropy = rand.Reader
	}
	if o.Patience == 0 {
		o.Patience = patienceDefault
	}
	if o.CompactEvery == 0 {
		o.CompactEvery = compactDefault
	}
	return o
}

func (o Options) history() mvcc.Options {
	return mvcc.Limits(mvcc.Options{Duration: o.HistoryDuration, Bytes: o.HistorySize})
}

// Open returns an engine on the store that opts name. It waits for etcd as long as ctx allows, and is
// ready when Open returns: it must be closed.
func Open(ctx context.Context, opts Options) (*Engine, error) {
	opts = opts.complete()
	replica, err := newReplica(opts.Entropy)
	if err != nil {
		return nil, err
	}
	members, err := connect(ctx, opts, replica)
	if err != nil {
		return nil, err
	}
	e := newEngine(opts, members, replica)
	if err := e.begin(ctx); err != nil {
		e.Close()
		return nil, err
	}
	return e, nil
}

// connect returns the members of etcd that opts name, which are connected to when they are first used. A user with a
// password is known to etcd by then: connect waits for that as long as ctx allows. Replicas prefer members by their
// numbers, so that they spread over them.
func connect(ctx context.Context, opts Options, replica uint64) (*members, error) {
	client, err := introduced(ctx, opts)
	if err != nil {
		return nil, err
	}
	probe := func(ctx context.Context, conn grpc.ClientConnInterface) error {
		_, err := pb.NewKVClient(conn).Range(withLeader(ctx), &pb.RangeRequest{Key: newKeyspace(opts.Prefix).in(floorKey), CountOnly: true})
		return err
	}
	if len(opts.Endpoints) == 1 {
		return newMembers(client, []link{client.ActiveConnection()}, 0, probe), nil
	}
	links := make([]link, len(opts.Endpoints))
	for i, url := range opts.Endpoints { // connections that share what etcd lets the client in by
		if links[i], err = client.Dial(url); err != nil {
			newMembers(client, links[:i], 0, probe).close()
			return nil, fmt.Errorf("kv/etcd: etcd at %s: %w", url, err)
		}
	}
	ms := newMembers(client, links, replica, probe)
	client.Auth = clientv3.NewAuthFromAuthClient(doorman{pb.NewAuthClient(ms)}, client)
	return ms, nil
}

// A doorman is asked by the client for what lets it in, for each stream anew. The client would ask one member or another, be it one that hangs.
type doorman struct{ pb.AuthClient }

func (d doorman) Authenticate(ctx context.Context, r *pb.AuthenticateRequest, opts ...grpc.CallOption) (*pb.AuthenticateResponse, error) {
	return d.AuthClient.Authenticate(ctx, r, append(slices.Clip(opts), harmless)...)
}

// introduced returns a client of the etcd that opts name. A user with a password is known to it by then.
func introduced(ctx context.Context, opts Options) (*clientv3.Client, error) {
	switch {
	case len(opts.Endpoints) == 0:
		return nil, errors.New("kv/etcd: name the URLs of etcd's members")
	case (opts.User == "") != (opts.Password == ""):
		return nil, errors.New("kv/etcd: a user and a password belong together: give both, or neither")
	}
	config := clientv3.Config{
		Endpoints: opts.Endpoints, TLS: opts.TLS, Logger: zap.NewNop(), MaxUnaryRetries: 1,
		Username: opts.User, Password: opts.Password, DialTimeout: questionMax,
		DialKeepAliveTime: keepAlive, DialKeepAliveTimeout: keepAlive,
		DialOptions: []grpc.DialOption{
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32)),
			grpc.WithInitialWindowSize(window), grpc.WithInitialConnWindowSize(2 * window),
			grpc.WithIdleTimeout(0), // who is asked in another's place is to be there
			grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: keepAlive, Backoff: reconnect}),
		},
	}
	told := time.Now().Add(toldFirst)
	for {
		client, err := clientv3.New(config)
		if err == nil {
			return client, nil
		}
		err = fmt.Errorf("kv/etcd: etcd at %s: %w", strings.Join(opts.Endpoints, ","), denied(opts.Prefix, err))
		if isDenied(err) || opts.User == "" {
			return nil, err
		}
		if now := time.Now(); now.After(told) {
			told = now.Add(toldAgain)
			opts.Logger.Warn("kv/etcd: waiting for etcd", "endpoints", opts.Endpoints, "error", err)
		}
		select {
		case <-time.After(againAfter):
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", err, ctx.Err())
		}
	}
}

// newReplica returns a number that no other replica has.
func newReplica(entropy io.Reader) (uint64, error) {
	var b [8]byte
	if _, err := io.ReadFull(entropy, b[:]); err != nil {
		return 0, fmt.Errorf("kv/etcd: no chance to be had: %w", err)
	}
	return max(binary.BigEndian.Uint64(b[:]), 1), nil
}

func newEngine(opts Options, members *members, replica uint64) *Engine {
	conn := inTheNameOf(opts, members)
	e := &Engine{
		opts: opts, in: newKeyspace(opts.Prefix), replica: replica, members: members,
		index:    mvcc.New(opts.history(), mvcc.Base{Revision: 1, Floor: 1}), // until it has settled
		kv:       pb.NewKVClient(conn),
		lease:    pb.NewLeaseClient(conn),
		watch:    pb.NewWatchClient(conn),
		health:   health{log: opts.Logger, last: time.Now()},
		over:     make(chan struct{}),
		released: make(chan struct{}),
		tickets:  map[uint64]*ticket{},
	}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	e.asker.ask = e.question
	e.patience.of = opts.Patience
	e.patience.ctx, e.endTerms = context.WithCancelCause(context.Background())
	e.groups = grouper{send: e.kv.Txn, answered: e.answered, ctx: e.ctx, run: e.runs.Go, patience: opts.Patience}
	e.leases = newLeases(time.Now, e.grant)
	e.follows.kick = make(chan struct{}, 1)
	e.follows.reader = reader{in: e.in, current: func(key string) *kv.Version { return e.index.Newest().Get(key) }}
	return e
}

// begin has everything run, and waits until what etcd holds now can be read.
func (e *Engine) begin(ctx context.Context) error {
	if err := e.patiently(ctx, e.settle); err != nil {
		return err
	}
	e.runs.Go(e.follow)
	e.runs.Go(e.look)
	return e.patiently(ctx, func(wait context.Context) error {
		rev, err := e.ask(wait)
		if err == nil {
			err = e.reach(wait, rev)
		}
		return err
	})
}

// patiently calls do until it does not fail for want of etcd, as long as ctx allows, and says at times that it waits.
func (e *Engine) patiently(ctx context.Context, do func(context.Context) error) error {
	heard := e.follows.heard.Load()
	for told := toldFirst; ; told = toldAgain {
		wait, cancel := context.WithTimeout(ctx, told)
		err := do(wait)
		over := wait.Err() != nil
		cancel()
		switch {
		case err == nil:
			return nil
		case e.why() != nil:
			return fmt.Errorf("kv/etcd: %w", e.why())
		case !over:
			return fmt.Errorf("kv/etcd: %w", err)
		case ctx.Err() != nil:
			return fmt.Errorf("kv/etcd: etcd at %s: %w", strings.Join(e.opts.Endpoints, ","), e.health.explain(ctx.Err()))
		}
		if now := e.follows.heard.Load(); now != heard {
			heard = now
			e.opts.Logger.Info("kv/etcd: reading etcd's history", "at", e.mark.revision(), "of", e.follows.wanted.Load())
			continue
		}
		e.opts.Logger.Warn("kv/etcd: waiting for etcd", "endpoints", e.opts.Endpoints, "error", e.health.explain(err))
	}
}

// grant asks etcd for a lease.
func (e *Engine) grant(ctx context.Context, seconds int64) (number, granted int64, err error) {
	r, err := e.lease.LeaseGrant(withLeader(ctx), &pb.LeaseGrantRequest{TTL: seconds}, patient, harmless) // one too many ends by itself
	if err != nil {
		return 0, 0, err
	}
	return r.GetID(), r.GetTTL(), nil
}
