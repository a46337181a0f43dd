package main

import (
	"flag"
	"io"
	"log/slog"
	"strconv"

	"k8s.io/klog/v2"
)

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

// ownKlog sends what the Kubernetes libraries log to logger. They have one logger per
// process, which is why only a process may do this.
func ownKlog(logger *slog.Logger, verbosity int) {
	klog.SetSlogLogger(logger)
	var flags flag.FlagSet
	klog.InitFlags(&flags)
	if err := flags.Set("v", strconv.Itoa(verbosity)); err != nil {
		panic(err) // it is klog's own flag, and a number
	}
}
