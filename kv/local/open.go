package local

import (
	"context"
	"errors"
	"log/slog"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/mvcc"
)

// Open returns the store that opts name, making it if there is none. It is ready when
// Open returns, and must be closed.
func Open(ctx context.Context, opts Options) (*Engine, error) {
	opts = opts.complete()
	switch {
	case opts.Memory && opts.Dir != "":
		return nil, errors.New("kv/local: a store is either in a folder or in memory, not both")
	case opts.Memory:
		return start(opts, emptyStore(opts), nil), nil
	case opts.Dir == "":
		return nil, errors.New("kv/local: name a folder for the store, or ask for one in memory")
	}
	return openDir(ctx, opts)
}

func (o Options) complete() Options {
	if o.Clock == nil {
		o.Clock = realClock{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// emptyStore returns the index of a store that has never been written.
func emptyStore(opts Options) *mvcc.Index {
	return mvcc.New(opts.history(), mvcc.Base{Revision: emptyRevision, Floor: emptyRevision})
}

func (o Options) history() mvcc.Options {
	return mvcc.Options{Duration: o.HistoryDuration, Bytes: o.HistorySize}
}

// start returns an engine that goes on where index ends.
func start(opts Options, index *mvcc.Index, log *journal) *Engine {
	_, newest := index.Revisions()
	e := &Engine{
		opts:     opts,
		index:    index,
		log:      log,
		stats:    newCounters(),
		done:     make(chan struct{}),
		released: make(chan struct{}),
		pending:  map[string]*kv.Version{},
		newest:   newest,
		era:      newEra(),
		time:     newTimeline(opts.Clock),
	}
	e.work.L = &e.mu
	if log != nil {
		e.stats = log.stats
	}
	go e.write()
	return e
}
