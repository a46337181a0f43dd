// Package pawl runs a Kubernetes-compatible API server inside a Go program.
//
// [Start] opens a store, serves the API over TLS and returns once requests are answered:
//
//	srv, err := pawl.Start(ctx, pawl.Config{DataDir: "data"})
//	if err != nil {
//		return err
//	}
//	defer srv.Stop(context.Background())
//	client, err := kubernetes.NewForConfig(srv.RESTConfig())
//
// Everything that a server keeps between two starts is in its data folder. Without one,
// and with the memory engine, nothing is written anywhere: that is a server for a test, and
// package pawltest starts one in a single call.
//
// Many servers can run in one process: nothing is shared between them.
package pawl

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/pawl-dev/pawl/internal/pki"
	"github.com/pawl-dev/pawl/kv"
)

// The engines that a server can keep its objects in.
const (
	EngineLocal  = "local"  // a log in the data folder
	EngineMemory = "memory" // gone when the server stops
	EngineShared = "shared" // Config.Shared's
)

// DefaultListen is where a server listens that is told nothing else.
const DefaultListen = "127.0.0.1:7443"

// Config says how to run a server. Its zero value is no server yet: a local engine needs a
// data folder.
type Config struct {
	// DataDir is the folder that holds the store, the keys and the kubeconfig. It is made
	// if it does not exist. "" keeps nothing on disk, and goes with EngineMemory alone.
	DataDir string
	// Listen is HOST:PORT; port 0 picks a free one. "" means DefaultListen.
	Listen string
	// Engine is EngineLocal, EngineMemory or EngineShared; "" means EngineLocal, or EngineShared if there is Shared.
	Engine string
	// Shared opens a store that other servers use too, in place of one in DataDir, which must be "":
	//
	//	Shared: func(ctx context.Context, o pawl.SharedOptions) (pawl.SharedStore, error) {
	//		return etcd.Open(ctx, etcd.Options{Endpoints: urls, HistoryDuration: o.HistoryDuration, Logger: o.Logger})
	//	}
	//
	// It is given rather than chosen by name so that who does not use etcd does not link its client.
	Shared func(context.Context, SharedOptions) (SharedStore, error)
	// Kubeconfig is the file to write the administrator's kubeconfig to; "" means the file
	// kubeconfig in DataDir.
	Kubeconfig string
	// TokenAuthFile holds bearer tokens beside the administrator's, as CSV lines: token,
	// user, uid, "group1,group2". "" for none.
	TokenAuthFile string

	// HistoryDuration and HistorySize (bytes) bound the past that can be read and watched;
	// never less than 75 seconds of it are kept. Zero means an hour, and 512 MiB.
	HistoryDuration time.Duration
	HistorySize     int64

	// TLSCertFile and TLSPrivateKeyFile, given together, are served in place of a
	// certificate of our own, which covers TLSSANs beside the host of Listen.
	TLSCertFile, TLSPrivateKeyFile string
	TLSSANs                        []string

	// Version is what the server calls itself; "" means what the build says.
	Version string
	// Logger is told what goes on; nil means nobody.
	Logger *slog.Logger
	// Opening is told how many bytes of how many have been read while the store is opened; nil
	// means nobody.
	Opening func(done, total int64)
}

func (c Config) complete() (Config, error) {
	if c.Shared != nil {
		if err := c.checkShared(); err != nil {
			return c, err
		}
		c.Engine = EngineShared
	}
	if c.Engine == "" {
		c.Engine = EngineLocal
	}
	if c.Listen == "" {
		c.Listen = DefaultListen
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	switch {
	case c.Engine == EngineShared && c.Shared == nil:
		return c, errors.New("the shared engine needs a store: give Shared")
	case c.Engine != EngineLocal && c.Engine != EngineMemory && c.Engine != EngineShared:
		return c, fmt.Errorf("no engine is called %q: choose %s or %s", c.Engine, EngineLocal, EngineMemory)
	case c.Engine == EngineLocal && c.DataDir == "":
		return c, errors.New("the local engine needs a data folder")
	case (c.TLSCertFile == "") != (c.TLSPrivateKeyFile == ""):
		return c, errors.New("a certificate and its private key go together: give both files or neither")
	case c.HistoryDuration < 0 || c.HistorySize < 0:
		return c, errors.New("the bounds of the history must not be negative")
	}
	if c.Kubeconfig == "" && c.DataDir != "" {
		c.Kubeconfig = filepath.Join(c.DataDir, "kubeconfig")
	}
	return c, nil
}

// A Server is one that runs.
type Server struct {
	url    string
	config *rest.Config
	parts  *parts
	http   *http.Server
	conns  connections
	logger *slog.Logger

	stop sync.Once
	done chan struct{}
	err  error // set before done is closed
}

// Start starts a server and returns once it answers requests. Ctx bounds the starting, not
// the server: that is ended by [Server.Stop].
func Start(ctx context.Context, c Config) (*Server, error) {
	c, err := c.complete()
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w", c.Listen, err)
	}
	s, err := startOn(ctx, c, listener)
	if err != nil {
		_ = listener.Close() // nobody was served on it
		return nil, err
	}
	return s, nil
}

func startOn(ctx context.Context, c Config, listener net.Listener) (*Server, error) {
	p, err := assemble(ctx, c)
	if err != nil {
		return nil, err
	}
	s := &Server{url: urlOf(listener, c.Listen), parts: p, logger: c.Logger, done: make(chan struct{})}
	if s.config, err = restConfig(p.pki, s.url); err == nil && c.Kubeconfig != "" {
		err = p.pki.WriteKubeconfig(c.Kubeconfig, s.url)
	}
	if err == nil {
		err = p.begin(ctx, portOf(listener))
	}
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	s.http = httpServer(p, c.Logger)
	s.http.ConnState = s.conns.changed
	go s.serve(listener)
	return s, nil
}

// restConfig is how to reach the server as its administrator: by token, which costs less
// than a certificate at each handshake and in each header.
func restConfig(keys *pki.PKI, url string) (*rest.Config, error) {
	certified, err := keys.RESTConfig(url)
	if err != nil {
		return nil, err
	}
	config := rest.AnonymousClientConfig(certified)
	config.BearerToken = keys.AdminToken()
	return config, nil
}

// portOf is where a server listens.
func portOf(l net.Listener) int {
	if a, ok := l.Addr().(*net.TCPAddr); ok {
		return a.Port
	}
	return 0
}

// urlOf is where clients on this machine reach the server.
func urlOf(l net.Listener, asked string) string {
	host, _, err := net.SplitHostPort(asked)
	if ip := net.ParseIP(host); err != nil || host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return "https://" + l.Addr().String()
	}
	return "https://" + net.JoinHostPort(host, port)
}

// Limits of the HTTP server.
const (
	headerTimeout  = 32 * time.Second
	idleTimeout    = 90 * time.Second
	headerBytesMax = 1 << 20
	streamsMax     = 1000 // requests at once on one HTTP/2 connection: watches share one
)

func httpServer(p *parts, logger *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           p.handler,
		TLSConfig:         p.pki.TLSConfig(),
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    headerBytesMax,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: streamsMax},
		// OPTIONS * is a request like any other: nobody unknown is answered.
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
	}
}

func (s *Server) serve(l net.Listener) {
	err := s.http.ServeTLS(l, "", "")
	if errors.Is(err, http.ErrServerClosed) {
		return // Stop says the rest
	}
	s.logger.Error("the server broke off", "err", err)
	s.end(fmt.Errorf("serving: %w", err))
}

// end closes everything beneath and tells whoever waits. It runs once.
func (s *Server) end(err error) {
	s.stop.Do(func() {
		s.err = errors.Join(err, s.parts.close())
		close(s.done)
	})
	<-s.done
}

// URL is where the server is reached, such as https://127.0.0.1:7443.
func (s *Server) URL() string { return s.url }

// RESTConfig returns how to reach the server as its administrator. The caller owns it.
func (s *Server) RESTConfig() *rest.Config { return rest.CopyConfig(s.config) }

// Compact forgets all history before now: whoever reads or watches from an older version is
// told that it is gone (410), as after a long time. Clients must cope with that, and a test
// can see here whether they do.
func (s *Server) Compact(ctx context.Context) error {
	now, err := s.parts.engine.Read(ctx, kv.Latest)
	if err != nil {
		return err
	}
	return s.parts.engine.Compact(ctx, now.Revision())
}

// Stop answers the requests under way, ends all watches between two events, and closes the
// store. When ctx ends first the requests are broken off, and the error says so; the store
// is closed in any case. Stopping what has stopped returns how it ended.
func (s *Server) Stop(ctx context.Context) error {
	s.parts.shuttingDown()
	go s.parts.server.Drain(ctx)
	err := s.conns.shutdown(ctx, s.http)
	if err != nil {
		err = errors.Join(fmt.Errorf("requests were still under way and have been broken off: %w", err), s.http.Close())
	}
	s.end(err)
	return s.err
}

// Done is closed when the server has ended, for whatever reason; [Server.Err] then says which.
func (s *Server) Done() <-chan struct{} { return s.done }

// Err returns why the server ended: nil while it runs, and if it was stopped in good order.
func (s *Server) Err() error {
	select {
	case <-s.done:
		return s.err
	default:
		return nil
	}
}
