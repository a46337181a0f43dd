package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/pawl-dev/pawl"
)

// version is that of the release, given to the linker: -ldflags "-X main.version=v1.2.3".
var version string

// gcPercent lets the heap grow to three times what is live before it is collected. A server's
// live heap is small, and what it makes for each request is most of what is collected.
const gcPercent = 200

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	os.Exit(run(context.Background(), process{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		signals: catchSignals,
		started: startedAt(),
		clock:   time.Now,
		build:   debug.ReadBuildInfo,
		version: version,
		start:   start,
		ownLogs: ownKlog,
	}, os.Args[1:]))
}

func catchSignals() <-chan os.Signal {
	caught := make(chan os.Signal, 2) // a second one counts, a third does not
	signal.Notify(caught, os.Interrupt, syscall.SIGTERM)
	return caught
}

// start starts the server that the settings describe.
func start(ctx context.Context, s settings) (server, error) {
	c := pawl.Config{
		DataDir:           s.dataDir,
		Listen:            s.listen,
		Engine:            s.engine,
		Kubeconfig:        s.kubeconfig,
		TokenAuthFile:     s.tokenAuthFile,
		HistoryDuration:   s.historyDuration,
		HistorySize:       s.historySize,
		TLSCertFile:       s.tlsCertFile,
		TLSPrivateKeyFile: s.tlsKeyFile,
		TLSSANs:           s.tlsSANs,
		Version:           version,
		Logger:            s.logger,
		Opening:           s.opening,
	}
	if s.engine == "etcd" { // which keeps what the data folder would
		c.DataDir, c.Engine, c.Shared = "", pawl.EngineShared, s.etcd.open
	}
	srv, err := pawl.Start(ctx, c)
	if err != nil {
		return nil, err // not srv: a nil *Server is a server that is not nil
	}
	return srv, nil
}
