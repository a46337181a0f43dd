package main

import (
	"context"
	"flag"
	"io"
	"log/slog"
	"strconv"

	"k8s.io/klog/v2"
)

// hushed takes every record down to the level of debugging.
type hushed struct{ slog.Handler }

func (h hushed) Enabled(ctx context.Context, _ slog.Level) bool {
	return h.Handler.Enabled(ctx, slog.LevelDebug)
}

func (h hushed) Handle(ctx context.Context, r slog.Record) error {
	r.Level = min(r.Level, slog.LevelDebug)
	return h.Handler.Handle(ctx, r)
}

func (h hushed) WithAttrs(attrs []slog.Attr) slog.Handler { return hushed{h.Handler.WithAttrs(attrs)} }

func (h hushed) WithGroup(name string) slog.Handler { return hushed{h.Handler.WithGroup(name)} }

// newLogger returns a logger that writes to w what is no more verbose than verbosity, on the
// scale that Kubernetes' components use: 0 for what an operator should see, 4 for debugging
// (slog's Debug), 10 for everything.
func newLogger(w io.Writer, format string, verbosity int) *slog.Logger {
	o := &slog.HandlerOptions{Level: slog.Level(-verbosity)}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}

// ownKlog sends what the Kubernetes libraries log to logger, as for debugging: they cry out at
// what a client sends, and what is wrong with the server it says itself. They have one logger
// per process, which is why only a process may do this.
func ownKlog(logger *slog.Logger, verbosity int) {
	klog.SetSlogLogger(slog.New(hushed{logger.Handler()}))
	var flags flag.FlagSet
	klog.InitFlags(&flags)
	if err := flags.Set("v", strconv.Itoa(verbosity)); err != nil {
		panic(err) // it is klog's own flag, and a number
	}
}
