package main

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// A fake is a server that takes as long as it is told to.
type fake struct {
	stopTakes time.Duration
	stopErr   error
	done      chan struct{}
	endErr    error
	stopped   bool
}

func (f *fake) URL() string           { return "https://127.0.0.1:7443" }
func (f *fake) Done() <-chan struct{} { return f.done }
func (f *fake) Err() error            { return f.endErr }

func (f *fake) Stop(ctx context.Context) error {
	select {
	case <-time.After(f.stopTakes):
		f.stopped = true
		return f.stopErr
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A story is a run of serve: what takes how long, and which signals come when.
type story struct {
	startTakes time.Duration
	startErr   error
	deaf       bool // starting goes on when it is called off
	srv        fake
	signals    map[time.Duration]os.Signal // by the time since the process began
	endsAfter  time.Duration               // the server by itself; 0 means never
}

// tell runs the story with time faked, and returns what a person sees and how long it took.
func (st *story) tell(t *testing.T) (said string, took time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		signals := make(chan os.Signal, 2)
		for after, sig := range st.signals {
			time.AfterFunc(after, func() { signals <- sig })
		}
		st.srv.done = make(chan struct{})
		if st.endsAfter > 0 {
			time.AfterFunc(st.endsAfter, func() { close(st.srv.done) })
		}
		said = say(process{
			build: aBuild, started: began, signals: func() <-chan os.Signal { return signals },
			start: func(ctx context.Context, s settings) (server, error) {
				called := ctx.Done()
				if st.deaf {
					called = nil
				}
				select {
				case <-time.After(st.startTakes):
				case <-called:
					return nil, ctx.Err()
				}
				if st.startErr != nil {
					return nil, st.startErr
				}
				return &st.srv, nil
			},
		}, []string{"serve", "-v", "0"})
		took = time.Since(began)
		time.Sleep(time.Minute) // let what was left behind end
	})
	var shown strings.Builder
	for line := range strings.Lines(said) {
		if !strings.HasPrefix(line, "! time=") { // the log is not what this is about
			shown.WriteString(line)
		}
	}
	return shown.String(), took
}

func TestServe(t *testing.T) {
	const ms = time.Millisecond
	const ready = "ready https://127.0.0.1:7443 kubeconfig pawl-data/kubeconfig (in 41ms)\n"
	for _, tt := range []struct {
		name    string
		story   story
		said    string
		took    time.Duration
		stopped bool
	}{
		{"a signal ends it, once what is under way has ended",
			story{startTakes: 41 * ms, srv: fake{stopTakes: 3 * time.Second}, signals: map[time.Duration]os.Signal{time.Second: syscall.SIGTERM}},
			ready, 4 * time.Second, true},
		{"so does the other signal",
			story{startTakes: 41 * ms, signals: map[time.Duration]os.Signal{time.Second: syscall.SIGINT}},
			ready, time.Second, true},
		{"what is under way has nine seconds, and is cut off",
			story{startTakes: 41 * ms, srv: fake{stopTakes: time.Minute}, signals: map[time.Duration]os.Signal{time.Second: syscall.SIGTERM}},
			ready, time.Second + stopMax, false},
		{"a second signal ends it at once",
			story{startTakes: 41 * ms, srv: fake{stopTakes: time.Minute}, signals: map[time.Duration]os.Signal{time.Second: syscall.SIGTERM, 2 * time.Second: syscall.SIGTERM}},
			ready + "! pawl: ended at once by a second signal (terminated): requests under way were cut off\n[exit 143]\n", 2 * time.Second, false},
		{"the second signal gives the code",
			story{startTakes: 41 * ms, srv: fake{stopTakes: time.Minute}, signals: map[time.Duration]os.Signal{time.Second: syscall.SIGTERM, 2 * time.Second: syscall.SIGINT}},
			ready + "! pawl: ended at once by a second signal (interrupt): requests under way were cut off\n[exit 130]\n", 2 * time.Second, false},
		{"stopping can fail",
			story{startTakes: 41 * ms, srv: fake{stopErr: errors.New("the disk is gone")}, signals: map[time.Duration]os.Signal{time.Second: syscall.SIGTERM}},
			ready + "! pawl: the disk is gone\n[exit 1]\n", time.Second, true},
		{"a signal before it is ready calls the start off",
			story{startTakes: time.Minute, signals: map[time.Duration]os.Signal{time.Second: syscall.SIGTERM}},
			"", time.Second, false},
		{"a start that cannot be called off is stopped when it is done",
			story{startTakes: 5 * time.Second, deaf: true, signals: map[time.Duration]os.Signal{time.Second: syscall.SIGTERM}},
			"", 5 * time.Second, true},
		{"a start that fails while it is called off has failed",
			story{startTakes: 5 * time.Second, startErr: errors.New("the disk is gone"), deaf: true, signals: map[time.Duration]os.Signal{time.Second: syscall.SIGTERM}},
			"! pawl: the disk is gone\n[exit 1]\n", 5 * time.Second, false},
		{"a second signal ends even that",
			story{startTakes: time.Minute, deaf: true, signals: map[time.Duration]os.Signal{time.Second: syscall.SIGTERM, 2 * time.Second: syscall.SIGTERM}},
			"! pawl: ended at once by a second signal (terminated): requests under way were cut off\n[exit 143]\n", 2 * time.Second, false},
		{"a server that ends by itself is a failure",
			story{startTakes: 41 * ms, srv: fake{endErr: errors.New("fsync failed")}, endsAfter: time.Hour},
			ready + "! pawl: the server ended: fsync failed\n[exit 1]\n", time.Hour, false},
		{"even if it does not say why",
			story{startTakes: 41 * ms, endsAfter: time.Hour},
			ready + "! pawl: the server ended without being asked to\n[exit 1]\n", time.Hour, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			said, took := tt.story.tell(t)
			if filepath.ToSlash(said) != tt.said {
				t.Errorf("it said\n%swant\n%s", said, tt.said)
			}
			if took != tt.took {
				t.Errorf("it took %v, want %v", took, tt.took)
			}
			if tt.story.srv.stopped != tt.stopped {
				t.Errorf("the server was stopped in order: %v", tt.story.srv.stopped)
			}
		})
	}
}

func TestFlagsBecomeSettings(t *testing.T) {
	defaults := settings{dataDir: "./pawl-data", listen: "127.0.0.1:7443", engine: "local", etcd: etcdSettings{prefix: "/pawl"}, kubeconfig: filepath.Join("pawl-data", "kubeconfig"),
		historyDuration: time.Hour, historySize: 512 << 20, logFormat: "text"}
	with := func(change func(*settings)) settings {
		s := defaults
		change(&s)
		return s
	}
	for _, tt := range []struct {
		args string
		want settings
	}{
		{"", defaults},
		{"--data d", with(func(s *settings) { s.dataDir, s.kubeconfig = "d", filepath.Join("d", "kubeconfig") })},
		{"--kubeconfig k", with(func(s *settings) { s.kubeconfig = "k" })},
		{"--listen [::1]:0", with(func(s *settings) { s.listen = "[::1]:0" })},
		{"--listen :7443", with(func(s *settings) { s.listen = ":7443" })},
		{"--engine memory", with(func(s *settings) { s.engine = "memory" })},
		{"--engine etcd --etcd-endpoints http://a:2379,http://b:2379", with(func(s *settings) {
			s.engine, s.etcd.endpoints = "etcd", []string{"http://a:2379", "http://b:2379"}
		})},
		{"--engine etcd --etcd-endpoints https://a:1 --etcd-cafile ca --etcd-certfile c --etcd-keyfile k --etcd-user u --etcd-password-file p --etcd-prefix /p", with(func(s *settings) {
			s.engine, s.etcd = "etcd", etcdSettings{[]string{"https://a:1"}, "ca", "c", "k", "u", "p", "/p"}
		})},
		{"--engine etcd --etcd-endpoints http://a:2379/,http://b:2379,http://a:2379 --etcd-endpoints http://[::1]:2379 --etcd-prefix /p/q//", with(func(s *settings) {
			s.engine, s.etcd.endpoints, s.etcd.prefix = "etcd", []string{"http://a:2379", "http://b:2379", "http://[::1]:2379"}, "/p/q"
		})},
		{"--token-auth-file t.csv", with(func(s *settings) { s.tokenAuthFile = "t.csv" })},
		{"--history-duration 1h30m", with(func(s *settings) { s.historyDuration = 90 * time.Minute })},
		{"--history-size 2Gi", with(func(s *settings) { s.historySize = 2 << 30 })},
		{"--history-size 1000", with(func(s *settings) { s.historySize = 1000 })},
		{"--tls-cert-file c --tls-private-key-file k", with(func(s *settings) { s.tlsCertFile, s.tlsKeyFile = "c", "k" })},
		{"--tls-san a,b --tls-san c", with(func(s *settings) { s.tlsSANs = []string{"a", "b", "c"} })},
		{"-v 4 --log-format json", with(func(s *settings) { s.verbosity, s.logFormat = 4, "json" })},
		{"-v=4", with(func(s *settings) { s.verbosity = 4 })},
	} {
		t.Run("serve "+tt.args, func(t *testing.T) {
			var got settings
			p := process{build: aBuild, start: func(_ context.Context, s settings) (server, error) {
				got = s
				return nil, errors.New("enough")
			}}
			said := say(p, append([]string{"serve"}, words(tt.args)...))
			if got.logger == nil {
				t.Fatal(said)
			}
			got.logger, got.opening = nil, nil
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
		})
	}
}

// What has spaces in it is what a shell makes of quotes.
func TestSpacesInFlagsOfEtcd(t *testing.T) {
	for _, tt := range []struct {
		name, endpoints, prefix string
		says                    string // "" if it is taken
	}{
		{"spaces about URLs are no part of them", " http://a:2379, http://b:2379 ", "/pawl", ""},
		{"a space within one is", "http://a b:2379", "/pawl", "is no URL of a member"},
		{"nor may a prefix have one", "http://a:2379", "/my pawl", `"/my pawl" is no path`},
		{"not even at its beginning", "http://a:2379", " /pawl", `" /pawl" is no path`},
		{"or at its end", "http://a:2379", "/pawl\n", `"/pawl\n" is no path`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got settings
			p := process{build: aBuild, start: func(_ context.Context, s settings) (server, error) {
				got = s
				return nil, errors.New("enough")
			}}
			said := say(p, []string{"serve", "--engine", "etcd", "--etcd-endpoints", tt.endpoints, "--etcd-prefix", tt.prefix})
			switch {
			case tt.says != "" && !strings.Contains(said, tt.says):
				t.Errorf("it says %s", said)
			case tt.says == "" && !slices.Equal(got.etcd.endpoints, []string{"http://a:2379", "http://b:2379"}):
				t.Errorf("it goes to %q, and says %s", got.etcd.endpoints, said)
			}
		})
	}
}

// A password comes from a file, which may end with the end of its line, and from nowhere else.
func TestThePasswordOfEtcdsUser(t *testing.T) {
	for text, want := range map[string]string{"word": "word", "word\n": "word", "a word \r\n": "a word ", "": "", "\n": "", "two\nlines\n": ""} {
		file := filepath.Join(t.TempDir(), "password")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		opts, err := etcdSettings{user: "u", passwordFile: file}.options()
		if opts.Password != want || (err == nil) != (want != "") {
			t.Errorf("%q is the password %q, %v", text, opts.Password, err)
		}
		if err != nil && hintOf(err) == "" {
			t.Errorf("%q: %v does not say what to do", text, err)
		}
	}
	if _, err := (etcdSettings{user: "u", passwordFile: "nowhere"}).options(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
}

func TestLogger(t *testing.T) {
	for _, tt := range []struct {
		name, format string
		verbosity    int
		want         []string
	}{
		{"without -v an operator sees what matters", "text", 0, []string{"level=WARN msg=w", "level=INFO msg=i"}},
		{"-v 4 shows debugging", "text", 4, []string{"level=WARN msg=w", "level=INFO msg=i", "level=DEBUG msg=d"}},
		{"-v 3 does not yet", "text", 3, []string{"level=WARN msg=w", "level=INFO msg=i"}},
		{"-v 10 shows everything", "text", 10, []string{"level=WARN msg=w", "level=INFO msg=i", "level=DEBUG msg=d", "level=DEBUG-6 msg=all"}},
		{"json is for machines", "json", 0, []string{`"level":"WARN","msg":"w"}`, `"level":"INFO","msg":"i"}`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var b bytes.Buffer
			l := newLogger(&b, tt.format, tt.verbosity)
			l.Warn("w")
			l.Info("i")
			l.Debug("d")
			l.Log(t.Context(), slog.Level(-10), "all")
			lines := strings.Split(strings.TrimSpace(b.String()), "\n")
			if len(lines) != len(tt.want) {
				t.Fatalf("got %q", lines)
			}
			for i, want := range tt.want {
				if !strings.HasSuffix(lines[i], want) {
					t.Errorf("line %d is %s, want %s at its end", i+1, lines[i], want)
				}
			}
		})
	}
}
