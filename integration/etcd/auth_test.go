package etcd_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/authpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/integration/etcd"
	"github.com/pawl-dev/pawl/kv"
	kvetcd "github.com/pawl-dev/pawl/kv/etcd"
	"github.com/pawl-dev/pawl/kv/kvtest"
)

// A guarded etcd asks who is there. It knows root, who may everything, and the user pawl, who has the role pawl: that one
// may read and write what is under /pawl/ and nothing else.
type guarded struct {
	*etcd.Member
	t    testing.TB
	by   *etcd.Authority
	root *clientv3.Client
}

// guard starts a guarded etcd.
func guard(t testing.TB) *guarded {
	t.Helper()
	g := unguarded(t, etcd.Options{})
	g.enable()
	return g
}

// unguarded starts one that does not ask yet.
func unguarded(t testing.TB, opts etcd.Options) *guarded {
	t.Helper()
	g := blank(t, opts)
	g.may(g.root.RoleAdd(t.Context(), "root"))
	g.user("root", "root")
	g.may(g.root.RoleAdd(t.Context(), "pawl"))
	g.grant(authpb.READWRITE)
	g.user("pawl", "pawl")
	return g
}

// blank starts one that knows nobody yet.
func blank(t testing.TB, opts etcd.Options) *guarded {
	t.Helper()
	opts.Only = etcd.NewAuthority(t)
	return administered(t, opts.Only, etcd.Start(t, opts))
}

// administered returns an etcd of that authority's with its administrator, of whom it does not know yet.
func administered(t testing.TB, by *etcd.Authority, m *etcd.Member) *guarded {
	t.Helper()
	g := &guarded{Member: m, t: t, by: by}
	root, err := clientv3.New(clientv3.Config{Endpoints: []string{g.URL}, TLS: g.tls("root"), Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	g.root = root
	return g
}

// may fails the test if etcd did not do something.
func (g *guarded) may(_ any, err error) {
	g.t.Helper()
	if err != nil {
		g.t.Fatal(err)
	}
}

// user adds a user that is known by its certificate, with a role.
func (g *guarded) user(name, role string) {
	g.t.Helper()
	g.may(g.root.UserAddWithOptions(g.t.Context(), name, "", &clientv3.UserAddOptions{NoPassword: true}))
	g.may(g.root.UserGrantRole(g.t.Context(), name, role))
}

func (g *guarded) enable() {
	g.t.Helper()
	g.may(g.root.AuthEnable(g.t.Context()))
}

// grant does what the documents tell operators to do: etcdctl role grant-permission pawl --prefix=true readwrite /pawl/
func (g *guarded) grant(what authpb.Permission_Type) {
	g.t.Helper()
	from := kvetcd.DefaultPrefix + "/"
	g.may(g.root.RoleGrantPermission(g.t.Context(), "pawl", from, clientv3.GetPrefixRangeEnd(from), clientv3.PermissionType(what)))
}

func (g *guarded) revoke() {
	g.t.Helper()
	from := kvetcd.DefaultPrefix + "/"
	g.may(g.root.RoleRevokePermission(g.t.Context(), "pawl", from, clientv3.GetPrefixRangeEnd(from)))
}

func (g *guarded) tls(user string) *tls.Config { return g.by.TLS(g.t, g.by.Issue(g.t, user)) }

// flags let the user pawl use another prefix, and say to commands of pawl's how.
func (g *guarded) flags(prefix string) []string {
	g.t.Helper()
	from := prefix + "/"
	g.may(g.root.RoleGrantPermission(g.t.Context(), "pawl", from, clientv3.GetPrefixRangeEnd(from), clientv3.PermissionType(authpb.READWRITE)))
	return append([]string{"--etcd-endpoints", g.URL, "--etcd-prefix", prefix}, g.secretsOf("pawl")...)
}

// secretsOf are flags by which etcd is known, and a user to it.
func (g *guarded) secretsOf(user string) []string {
	g.t.Helper()
	s := g.by.Issue(g.t, user)
	return []string{"--etcd-cafile", g.by.File, "--etcd-certfile", s.Cert, "--etcd-keyfile", s.Key}
}

// run does what lines of etcdctl say.
func (g *guarded) run(lines string) {
	g.t.Helper()
	for line := range strings.Lines(lines) {
		words, ctx := strings.Fields(line), g.t.Context()
		at := func(i int) string { return words[min(i, len(words)-1)] }
		switch what := at(0) + " " + at(1) + " " + at(2); {
		case what == "etcdctl role add" && len(words) == 4:
			g.may(g.root.RoleAdd(ctx, at(3)))
		case what == "etcdctl role grant-permission" && len(words) == 7 && at(4) == "--prefix=true" && at(5) == "readwrite":
			g.may(g.root.RoleGrantPermission(ctx, at(3), at(6), clientv3.GetPrefixRangeEnd(at(6)), clientv3.PermissionType(authpb.READWRITE)))
		case what == "etcdctl user add" && len(words) == 5 && at(4) == "--no-password":
			g.may(g.root.UserAddWithOptions(ctx, at(3), "", &clientv3.UserAddOptions{NoPassword: true}))
		case what == "etcdctl user grant-role" && len(words) == 5:
			g.may(g.root.UserGrantRole(ctx, at(3), at(4)))
		case what == "etcdctl auth enable" && len(words) == 3:
			g.enable()
		default:
			g.t.Fatalf("this test does not know %q", line)
		}
	}
}

// as is how an engine opens that etcd as a user.
func (g *guarded) as(user string) kvetcd.Options {
	return kvetcd.Options{Endpoints: []string{g.URL}, TLS: g.tls(user), Patience: brief}
}

// keys counts what root sees in etcd.
func (g *guarded) keys() int64 {
	g.t.Helper()
	all, err := g.root.Get(g.t.Context(), "\x00", clientv3.WithFromKey(), clientv3.WithCountOnly())
	if err != nil {
		g.t.Fatal(err)
	}
	return all.Count
}

// toGrant is what whoever may not is told to grant.
const toGrant = "etcdctl role grant-permission ROLE --prefix=true readwrite /pawl/"

// The commands that the document tells operators to give are enough, in their order.
func TestWhatTheDocumentGrants(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(repository, "docs/etcd.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?ms)^```sh\n(.*?)^```").FindAllStringSubmatch(string(text), -1)
	if len(blocks) != 2 {
		t.Fatalf("it has %d blocks of commands, and not one for pawl and one for etcd itself", len(blocks))
	}
	g := blank(t, etcd.Options{})
	for _, block := range blocks {
		g.run(block[1])
	}
	s := subjectOn(t, g.as("pawl"))
	s.put(a, "1")
	if _, err := kvetcd.Open(t.Context(), g.as("stranger")); err == nil {
		t.Error("a stranger may, too")
	}
}

// Every promise of an engine is kept where etcd asks who is there, for a user that may do nothing but read and write under
// the prefix.
func TestPromisesOnAGuardedEtcd(t *testing.T) {
	kvtest.Run(t, func(t *testing.T) kv.Engine {
		opts := guard(t).as("pawl")
		opts.Patience = 0
		return kvtest.Rig{
			Engine: open(t, opts),
			Reopen: func() (kv.Engine, error) { return kvetcd.Open(context.Background(), opts) },
			Limits: kvtest.Limits{Ops: kvetcd.MaxOps, ValueBytes: kvetcd.MaxBytes - 16<<10, Bytes: kvetcd.MaxBytes - 16<<10},
		}
	})
}

// Whoever may not read the store is told at once what to grant, and has written nothing.
func TestOpeningWithoutPermission(t *testing.T) {
	t.Parallel()
	g := guard(t)
	g.may(g.root.RoleAdd(t.Context(), "narrow"))
	g.may(g.root.RoleGrantPermission(t.Context(), "narrow", "/pawl/", "", clientv3.PermissionType(authpb.READWRITE)))
	g.user("narrow", "narrow")
	g.may(g.root.RoleAdd(t.Context(), "writer"))
	g.may(g.root.RoleGrantPermission(t.Context(), "writer", "/pawl/", "/pawl0", clientv3.PermissionType(authpb.WRITE)))
	g.user("writer", "writer")
	g.may(g.root.UserAdd(t.Context(), "secret", "word"))
	with := func(user string, change func(*kvetcd.Options)) kvetcd.Options {
		o := g.as(user)
		change(&o)
		return o
	}
	for _, k := range []struct {
		name string
		opts kvetcd.Options
		says []string
	}{
		{"a user that etcd does not know", g.as("stranger"), []string{"does not let this user read and write all that is under /pawl/", toGrant}},
		{"a role for one key, without --prefix", g.as("narrow"), []string{toGrant}},
		{"a role that may only write", g.as("writer"), []string{toGrant}},
		{"another prefix than the role's", with("pawl", func(o *kvetcd.Options) { o.Prefix = "/other/" }), []string{"readwrite /other/"}},
		{"a prefix that the role's is the beginning of", with("pawl", func(o *kvetcd.Options) { o.Prefix = "/pawl2" }), []string{"readwrite /pawl2/"}},
		{"a wrong password", with("pawl", func(o *kvetcd.Options) { o.User, o.Password = "secret", "wrong" }), []string{"nobody by this name and password", "etcdctl user passwd"}},
		{"a user of that name without a role", with("pawl", func(o *kvetcd.Options) { o.User, o.Password = "secret", "word" }), []string{toGrant}},
	} {
		_, err := kvetcd.Open(t.Context(), k.opts)
		_, restored := kvetcd.Restore(t.Context(), k.opts, 1, func(func(*kv.Version, error) bool) {}, nil)
		for what, err := range map[string]error{"open": err, "restore": restored} {
			var denied *kvetcd.DeniedError
			if !errors.As(err, &denied) {
				t.Errorf("%s: %s: got %v", k.name, what, err)
				continue
			}
			for _, text := range k.says {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%s: %s: it says %v, and not %q", k.name, what, err, text)
				}
			}
		}
	}
	if n := g.keys(); n != 0 {
		t.Errorf("%d keys were written", n)
	}
}

// An etcd that goes by passwords alone is told a certificate's name in vain.
func TestOpeningWithoutAName(t *testing.T) {
	t.Parallel()
	m := etcd.Start(t, etcd.Options{})
	root := raw(t, m.URL)
	for _, err := range []error{
		second(root.RoleAdd(t.Context(), "root")), second(root.UserAdd(t.Context(), "root", "word")),
		second(root.UserGrantRole(t.Context(), "root", "root")), second(root.AuthEnable(t.Context())),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := kvetcd.Open(t.Context(), on(m))
	if err == nil || !strings.Contains(err.Error(), "etcd asks who this is, and was not told") || !strings.Contains(err.Error(), "--client-cert-auth") {
		t.Errorf("got %v", err)
	}
	opts := on(m)
	opts.User, opts.Password = "root", "word"
	s := subjectOn(t, opts)
	s.put(a, "1")
}

func second(_ any, err error) error { return err }

// A certificate that one side does not accept is named while the engine waits, and when it gives up.
func TestCertificatesThatAreNotAccepted(t *testing.T) {
	t.Parallel()
	g := guard(t)
	stranger := etcd.NewAuthority(t)
	for _, k := range []struct {
		name string
		tls  *tls.Config
		says string // or that etcd has ended the connection, if that is noticed before why
	}{
		{"etcd's, by the engine", stranger.TLS(t, g.by.Issue(t, "pawl")), "certificate signed by unknown authority"},
		{"the engine's, by etcd", g.by.TLS(t, stranger.Issue(t, "pawl")), "unknown certificate authority"},
		{"the engine's, which has none", &tls.Config{RootCAs: g.tls("pawl").RootCAs}, "certificate required"},
	} {
		says := func(text string) bool {
			return strings.Contains(text, k.says) || k.tls.RootCAs.Equal(g.tls("pawl").RootCAs) && regexp.MustCompile("broken pipe|connection reset|EOF").MatchString(text)
		}
		said := make(chan string, 100)
		opts := g.as("pawl")
		opts.TLS, opts.Logger = k.tls, slog.New(slog.NewTextHandler(lines(said), nil))
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		_, err := kvetcd.Open(ctx, opts)
		cancel()
		if err == nil || !says(err.Error()) {
			t.Errorf("%s: got %v", k.name, err)
		}
		if line := <-said; !strings.Contains(line, "waiting for etcd") || !says(line) {
			t.Errorf("%s: it says %q", k.name, line)
		}
	}
}

// An etcd that is spoken to in the clear and speaks in secret, or the other way about, is told apart from one that is away, as the
// document says.
func TestTheWrongSchemeForEtcd(t *testing.T) {
	t.Parallel()
	secret, clear := guard(t), etcd.Start(t, etcd.Options{})
	for _, k := range []struct {
		name string
		opts kvetcd.Options
		says string
	}{
		{"http for https", kvetcd.Options{Endpoints: []string{strings.Replace(secret.URL, "https", "http", 1)}}, "error reading server preface"},
		{"https for http", kvetcd.Options{Endpoints: []string{strings.Replace(clear.URL, "http", "https", 1)}}, "handshake failed: EOF"},
		{"https without its authority", kvetcd.Options{Endpoints: []string{secret.URL}}, "certificate signed by unknown authority"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
		_, err := kvetcd.Open(ctx, k.opts)
		cancel()
		if err == nil || !strings.Contains(err.Error(), k.says) {
			t.Errorf("%s: got %v", k.name, err)
		}
	}
}

// One that may only read does that, says what to grant to who writes, and writes once it may.
func TestAUserThatMayOnlyRead(t *testing.T) {
	t.Parallel()
	g := guard(t)
	s := subjectOn(t, g.as("pawl"))
	s.put(a, "1")
	before := g.keys()
	g.revoke()
	g.grant(authpb.READ)
	reader := subjectOn(t, g.as("pawl"))
	reader.holds(reader.read(kv.Latest), a, "1")
	for what, err := range map[string]error{
		"ready":   reader.Err(),
		"a write": second(reader.Commit(t.Context(), kv.Txn{Ops: []kv.Op{kv.Put(a, []byte("2"))}})),
	} {
		if !errors.Is(err, kv.ErrReadOnly) || !strings.Contains(err.Error(), toGrant) {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := reader.Once(t.Context(), "name", func() ([]byte, error) { return []byte("made"), nil })
	if err == nil || !strings.Contains(err.Error(), toGrant) {
		t.Errorf("once: %v", err)
	}
	if n := g.keys(); n != before {
		t.Errorf("there were %d keys, and are %d", before, n)
	}
	g.revoke()
	g.grant(authpb.READWRITE)
	eventually(t, "it takes writes", func() bool { return reader.Err() == nil })
	reader.put(a, "3")
	same(t, s, reader)
}

// A role that is taken away while many write, and given back, loses nothing of what was answered; and meanwhile whoever
// reads, writes or looks is told why not.
func TestARoleThatIsTakenAway(t *testing.T) {
	t.Parallel()
	g := guard(t)
	s, other, idle := subjectOn(t, g.as("pawl")), subjectOn(t, g.as("pawl")), subjectOn(t, g.as("pawl"))
	l := newLedger()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for w := range 8 {
		e := []*subject{s, other}[w%2]
		wg.Go(func() { l.write(ctx, e, w, 5) })
	}
	for range 2 {
		was := l.count()
		eventually(t, "much is written", func() bool { return l.count() > was+100 })
		taken := time.Now()
		g.may(g.root.UserRevokeRole(t.Context(), "pawl", "pawl"))
		for _, e := range []*subject{s, other, idle} {
			eventually(t, "it says what to grant", func() bool { return e.Err() != nil && strings.Contains(e.Err().Error(), toGrant) })
			began := time.Now()
			_, err := e.Read(t.Context(), kv.Latest)
			if err == nil || !strings.Contains(err.Error(), toGrant) || time.Since(began) > brief {
				t.Errorf("after %v, what is newest: %v", time.Since(began), err)
			}
			if _, err := e.Read(t.Context(), kv.Any); err != nil {
				t.Errorf("what is at hand: %v", err)
			}
		}
		if took := time.Since(taken); took > 4*time.Second { // which is before an etcd counts as away that does not answer
			t.Errorf("that was noticed after %v", took)
		}
		g.may(g.root.UserGrantRole(t.Context(), "pawl", "pawl"))
		for _, e := range []*subject{s, other, idle} {
			eventually(t, "it takes writes again", func() bool { return e.Err() == nil })
		}
	}
	cancel()
	wg.Wait()
	same(t, s, other)
	l.judge(t, s)
	l.judge(t, other)
}

// An etcd that begins to ask who is there while many write, and no longer does, loses nothing. Whoever is known to it, by
// certificate or by password, goes on; whoever is not is told so.
func TestAnEtcdThatBeginsToAsk(t *testing.T) {
	t.Parallel()
	g := unguarded(t, etcd.Options{})
	g.may(g.root.UserAdd(t.Context(), "worded", "word"))
	g.may(g.root.UserGrantRole(t.Context(), "worded", "pawl"))
	worded := g.as("stranger")
	worded.User, worded.Password = "worded", "word"
	known, named, stranger := subjectOn(t, g.as("pawl")), subjectOn(t, worded), subjectOn(t, g.as("stranger"))
	l := newLedger()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for w := range 6 {
		e := []*subject{known, named, stranger}[w%3]
		wg.Go(func() { l.write(ctx, e, w, 5) })
	}
	written := func() {
		was := l.count()
		eventually(t, "much is written", func() bool { return l.count() > was+100 })
	}
	for range 2 {
		written()
		g.enable()
		eventually(t, "whoever may not is told", func() bool { return stranger.Err() != nil && strings.Contains(stranger.Err().Error(), toGrant) })
		for _, e := range []*subject{known, named} {
			eventually(t, "whoever may goes on", func() bool { return e.Err() == nil })
			e.put("default/core/configmaps/asked/a", "x")
		}
		written()
		g.may(g.root.AuthDisable(t.Context()))
		eventually(t, "everybody may", func() bool { return stranger.Err() == nil })
	}
	cancel()
	wg.Wait()
	same(t, known, named)
	same(t, known, stranger)
	l.judge(t, known)
	l.judge(t, stranger)
}

// A user with a password waits for an etcd that is not there yet, and gets leases.
func TestAUserWithAPassword(t *testing.T) {
	t.Parallel()
	g := guard(t)
	g.may(g.root.UserAdd(t.Context(), "worded", "word"))
	g.may(g.root.UserGrantRole(t.Context(), "worded", "pawl"))
	g.Stop()
	said := make(chan string, 100)
	opts := g.as("stranger")
	opts.User, opts.Password, opts.Logger = "worded", "word", slog.New(slog.NewTextHandler(lines(said), nil))
	opened := make(chan *subject, 1)
	go func() { opened <- subjectOn(t, opts) }()
	if line := <-said; !strings.Contains(line, "waiting for etcd") || !strings.Contains(line, g.URL) {
		t.Errorf("it says %q", line)
	}
	g.Restart()
	s := <-opened
	w := s.watch(ns, s.put(b, "1"))
	s.commit(expiring(a, kv.After, time.Second))
	for _, deleted := range []bool{false, true} {
		if e, err := s.next(w); err != nil || e.Version.Key != a || e.Version.Deleted != deleted {
			t.Errorf("the watch tells %+v, %v", e.Version, err)
		}
	}
}

// Members that ask who is there are each asked for what another cannot answer, in the name of the same user.
func TestAGuardedEtcdOfThree(t *testing.T) {
	t.Parallel()
	by := etcd.NewAuthority(t)
	members := etcd.StartCluster(t, 3, etcd.Options{Only: by})
	g := administered(t, by, members[0])
	g.run("etcdctl user add root --no-password\netcdctl user grant-role root root\netcdctl role add pawl\n" +
		"etcdctl role grant-permission pawl --prefix=true readwrite /pawl/\netcdctl user add pawl --no-password\netcdctl user grant-role pawl pawl")
	g.may(g.root.UserAdd(t.Context(), "worded", "word"))
	g.may(g.root.UserGrantRole(t.Context(), "worded", "pawl"))
	g.enable()
	opts := g.as("pawl")
	opts.Endpoints = nil
	var proxies []*etcd.Proxy
	for _, m := range members {
		proxies = append(proxies, etcd.NewProxy(t, m))
		opts.Endpoints = append(opts.Endpoints, proxies[len(proxies)-1].URL)
	}
	worded := opts
	worded.TLS, worded.User, worded.Password = g.tls("stranger"), "worded", "word"
	known, named := subjectOn(t, opts), subjectOn(t, worded)
	for i, p := range proxies {
		if i > 0 && os.Getenv("PAWL_HEAVY") == "" {
			break
		}
		p.Cut()
		for _, s := range []*subject{known, named} {
			rewritten(t, s, a, fmt.Sprint(i))
			eventually(t, "a key is given a lease", func() bool {
				return second(s.Commit(t.Context(), expiring(b, kv.After, time.Hour))) == nil
			})
		}
		p.Heal()
	}
	same(t, known, named)
}

// Whatever comes first after etcd has forgotten a token, as it does when a password is set, is done all the same.
func TestATokenThatIsForgotten(t *testing.T) {
	t.Parallel()
	g := guard(t)
	g.may(g.root.UserAdd(t.Context(), "worded", "word"))
	g.may(g.root.UserGrantRole(t.Context(), "worded", "pawl"))
	opts := g.as("stranger")
	opts.User, opts.Password = "worded", "word"
	for name, do := range map[string]func(s *subject) error{
		"a commit": func(s *subject) error {
			return second(s.Commit(t.Context(), kv.Txn{Ops: []kv.Op{kv.Put(a, []byte("1"))}}))
		},
		"a key that expires": func(s *subject) error { return second(s.Commit(t.Context(), expiring(b, kv.After, time.Hour))) },
		"what is newest":     func(s *subject) error { return second(s.Read(t.Context(), kv.Latest)) },
		"forgetting": func(s *subject) error {
			_, rev := s.Revisions()
			return s.Compact(t.Context(), rev)
		},
		"what is kept once": func(s *subject) error {
			return second(s.Once(t.Context(), "name", func() ([]byte, error) { return []byte("kept"), nil }))
		},
		"what is kept instead": func(s *subject) error {
			return second(s.Replace(t.Context(), "other", []byte("was"), []byte("is")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			opts.Prefix = "/pawl/" + strings.ReplaceAll(name, " ", "-")
			s := subjectOn(t, opts)
			s.put(a, "0")
			for range 3 {
				g.may(g.root.UserChangePassword(t.Context(), "worded", "word"))
				if err := do(s); err != nil && !strings.Contains(err.Error(), "start again") {
					t.Error(err)
				}
			}
		})
	}
}

// What the replicas forget is forgotten, also by those that are opened later, though etcd's own history is its
// administrator's to compact; and that is said once.
func TestForgettingWhereOnlyRootCompacts(t *testing.T) {
	t.Parallel()
	g := guard(t)
	said := make(chan string, 100)
	opts := g.as("pawl")
	opts.Logger = slog.New(slog.NewTextHandler(lines(said), &slog.HandlerOptions{Level: slog.LevelWarn}))
	s, other := subjectOn(t, opts), subjectOn(t, g.as("pawl"))
	first := s.put(a, "1")
	for i := range 3 {
		at := s.put(a, fmt.Sprint(i))
		if err := s.Compact(t.Context(), at); err != nil {
			t.Fatal(err)
		}
		for name, e := range map[string]*subject{"the one": s, "the other": other, "a later one": subjectOn(t, g.as("pawl"))} {
			e.read(kv.Latest)
			if _, err := e.Read(t.Context(), kv.Exactly(first)); !errors.Is(err, kv.ErrCompacted) {
				t.Errorf("%s: what is forgotten: %v", name, err)
			}
			e.holds(e.read(kv.Exactly(at)), a, fmt.Sprint(i))
		}
	}
	if got, err := g.root.Get(t.Context(), "/pawl/kv/"+a, clientv3.WithRev(revisionIn(first))); err != nil || len(got.Kvs) != 1 {
		t.Errorf("etcd has forgotten, too: %v, %v", got, err)
	}
	close(said)
	n := 0
	for line := range said {
		n++
		if !strings.Contains(line, "lets only its administrator compact") || !strings.Contains(line, "--auto-compaction-retention") {
			t.Errorf("it says %q", line)
		}
	}
	if n != 1 {
		t.Errorf("it said that %d times", n)
	}
}

// Nor is it said each time that history is cut.
func TestHistoryIsCutWhereOnlyRootCompacts(t *testing.T) {
	t.Parallel()
	g := guard(t)
	clock := kvtest.NewClock()
	said := make(chan string, 100)
	opts := g.as("pawl")
	opts.Clock, opts.CompactEvery = clock, time.Millisecond
	opts.Logger = slog.New(slog.NewTextHandler(lines(said), &slog.HandlerOptions{Level: slog.LevelWarn}))
	s := subjectOn(t, opts)
	for i := range 3 {
		s.put(a, "old")
		clock.Advance(2 * time.Hour)
		s.put(a, "new")
		eventually(t, "the replicas are told to forget", func() bool {
			floor, err := g.root.Get(t.Context(), "/pawl/kv//floor")
			return err == nil && len(floor.Kvs) == 1 && floor.Kvs[0].Version == int64(i+1)
		})
	}
	if line := <-said; !strings.Contains(line, "lets only its administrator compact") {
		t.Errorf("it says %q", line)
	}
	if n := len(said); n > 0 {
		t.Errorf("and it says %q, and so on %d times", <-said, n)
	}
}

// One that is opened when a guarded etcd has no room is read-only at once; and a replica that writes nothing notices it, too.
func TestAFullEtcdThatIsGuarded(t *testing.T) {
	t.Parallel()
	g := unguarded(t, etcd.Options{Quota: 4 << 20})
	g.enable()
	s, idle := subjectOn(t, g.as("pawl")), subjectOn(t, g.as("pawl"))
	s.put(a, "1")
	var err error
	for i := 0; err == nil; i++ {
		if i > 100 {
			t.Fatal("it is never full")
		}
		_, err = s.Commit(t.Context(), kv.Txn{Ops: []kv.Op{kv.Put(a, []byte(strings.Repeat("x", 200<<10)))}})
	}
	fails(t, err, kv.ErrReadOnly)
	late := subjectOn(t, g.as("pawl"))
	if err := late.Err(); !errors.Is(err, kv.ErrReadOnly) || !strings.Contains(err.Error(), "no room") {
		t.Errorf("opened late, it says %v", err)
	}
	if os.Getenv("PAWL_HEAVY") != "" { // it is looked each ten seconds
		eventually(t, "one that writes nothing says so, too", func() bool { return errors.Is(idle.Err(), kv.ErrReadOnly) })
	}
	same(t, s, idle)
}

// A store is backed up by one that may only read it, and restored where another may only write.
func TestRestoringOnAGuardedEtcd(t *testing.T) {
	t.Parallel()
	g := guard(t)
	s := subjectOn(t, g.as("pawl"))
	s.put(a, "1")
	s.commit(expiring(b, kv.After, time.Hour))
	opts := g.as("pawl")
	opts.Prefix = "/pawl/again"
	versions := func(yield func(*kv.Version, error) bool) {
		for v := range s.read(kv.Latest).Ascend("", "") {
			if !yield(v, nil) {
				return
			}
		}
	}
	rev, err := kvetcd.Restore(t.Context(), opts, 1_000_000, versions, map[string][]byte{"name": []byte("kept")})
	if err != nil {
		t.Fatal(err)
	}
	again := subjectOn(t, opts)
	again.holds(again.read(kv.Exactly(rev)), a, "1")
	if v := again.read(kv.Latest).Get(b); v == nil || v.Expires.IsZero() {
		t.Errorf("b is %+v", v)
	}
	kept, err := again.Once(t.Context(), "name", func() ([]byte, error) { return nil, errors.New("nothing is kept") })
	if err != nil || string(kept) != "kept" {
		t.Errorf("it keeps %q, %v", kept, err)
	}
}

// A server on a guarded etcd is a server like any other; without its role it is not ready, and says what to grant.
func TestAServerOnAGuardedEtcd(t *testing.T) {
	t.Parallel()
	g := guard(t)
	s := serve(t, g.as("pawl"))
	c := clientOf(t, as(s, s))
	ready := func() (bool, string) {
		why, err := c.RESTClient().Get().AbsPath("/readyz/store").DoRaw(t.Context())
		return err == nil, string(why)
	}
	create := func(name string) error { // once: clients try again by themselves
		return c.CoreV1().RESTClient().Post().MaxRetries(0).Namespace("default").Resource("configmaps").Body(configMap(name, "red")).Do(t.Context()).Error()
	}
	if ok, why := ready(); !ok {
		t.Fatalf("it is not ready: %s", why)
	}
	if err := create("color"); err != nil {
		t.Fatal(err)
	}
	empties(t, c, "passing")
	if err := s.Compact(t.Context()); err != nil {
		t.Errorf("compact: %v", err)
	}
	g.revoke()
	eventually(t, "it is not ready, and says what to grant", func() bool {
		ok, why := ready()
		return !ok && strings.Contains(why, toGrant)
	})
	read := c.CoreV1().RESTClient().Get().MaxRetries(0).Namespace("default").Resource("configmaps").Name("color").Do(t.Context()).Error()
	for what, err := range map[string]error{"a write": create("shape"), "what is newest": read} {
		if err == nil || !strings.Contains(err.Error(), toGrant) {
			t.Errorf("%s is answered with %v", what, err)
		}
	}
	if _, err := c.CoreV1().ConfigMaps("default").Get(t.Context(), "color", metav1.GetOptions{ResourceVersion: "0"}); err != nil {
		t.Errorf("what is at hand cannot be read: %v", err)
	}
	g.grant(authpb.READWRITE)
	eventually(t, "it is ready", func() bool { ok, _ := ready(); return ok })
	if err := create("size"); err != nil {
		t.Error(err)
	}
	if _, err := c.CoreV1().ConfigMaps("default").Get(t.Context(), "shape", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("what was refused: %v", err)
	}
	var backup bytes.Buffer
	if err := s.Backup(t.Context(), &backup); err != nil {
		t.Errorf("back up: %v", err)
	}
}

// A server that may only read makes no keys of its own on an empty etcd: it does not start, and says what to grant.
func TestAServerThatMayOnlyRead(t *testing.T) {
	t.Parallel()
	g := guard(t)
	start := func() (*pawl.Server, error) {
		return pawl.Start(t.Context(), pawl.Config{Listen: "127.0.0.1:0", Shared: func(ctx context.Context, _ pawl.SharedOptions) (pawl.SharedStore, error) {
			return kvetcd.Open(ctx, g.as("pawl"))
		}})
	}
	g.revoke()
	g.grant(authpb.READ)
	if s, err := start(); err == nil {
		stopServer(t, s)
		t.Error("it starts")
	} else if !strings.Contains(err.Error(), toGrant) {
		t.Errorf("it says %v", err)
	}
	if n := g.keys(); n != 0 {
		t.Errorf("%d keys were written", n)
	}
	g.grant(authpb.READWRITE)
	stopServer(t, serve(t, g.as("pawl")))
	g.revoke()
	g.grant(authpb.READ)
	s := must[*pawl.Server](t)(start())
	defer stopServer(t, s)
	c := clientOf(t, as(s, s))
	if _, err := c.CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
		t.Errorf("it does not read: %v", err)
	}
	if why, err := c.RESTClient().Get().AbsPath("/readyz/store").DoRaw(t.Context()); err == nil || !strings.Contains(string(why), toGrant) {
		t.Errorf("it is ready: %s", why)
	}
	before := g.keys()
	var backup bytes.Buffer
	if about, err := pawl.BackupShared(t.Context(), open(t, g.as("pawl")), &backup, nil); err != nil || about.Objects == 0 {
		t.Errorf("back up: %d objects, %v", about.Objects, err)
	}
	if n := g.keys(); n != before {
		t.Errorf("there were %d keys, and are %d", before, n)
	}
}
