package controller

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/storage"
)

// A loop follows the objects of a table and runs a job for each one that is being deleted
// and that waits for it. One goroutine runs it; each job is another.
type loop struct {
	table *storage.Table // cluster-scoped
	// waits says whether an object that is being deleted has something for a job to do.
	waits func(v storage.Version) (bool, error)
	// work does what there is to do for an object, and returns nil when there is nothing more.
	// It is called again after an error.
	work func(ctx context.Context, t target) error
	// restore, if set, brings back what must exist. It is called after every list, and when an
	// object has gone.
	restore func(ctx context.Context) error

	clock clock.Clock
	log   *slog.Logger

	jobs    map[string]*job // by name; only the goroutine of the loop touches it
	ended   chan *job
	running sync.WaitGroup
}

// A target is the one object that a job is for.
type target struct {
	name string
	uid  types.UID
}

// A job is a goroutine that works for one object. Created tells the object from others that
// had or will have its name.
type job struct {
	target
	created kv.Revision
	cancel  context.CancelFunc
}

// run follows the table until ctx ends or the engine is closed. When it returns, all jobs
// have ended.
func (l *loop) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer l.running.Wait()
	defer cancel()
	l.jobs, l.ended = map[string]*job{}, make(chan *job)
	anew(ctx, l.clock, l.log, l.follow)
	return nil
}

// anew calls follow again whenever it cannot go on, until ctx ends or the engine is closed. What
// fell behind begins again at once, all else after a pause that grows.
func anew(ctx context.Context, c clock.Clock, log *slog.Logger, follow func(context.Context) error) {
	for tries := 0; ; tries++ {
		started := c.Now()
		err := follow(ctx)
		if ctx.Err() != nil || storage.IsClosed(err) {
			return
		}
		log.Warn("objects are listed anew", "because", err)
		if c.Since(started) > pauseMax {
			tries = 0
		}
		behind := storage.IsKind(err, storage.Expired) || errors.Is(err, kv.ErrCompacted)
		if !behind && !pause(ctx, c, tries) {
			return
		}
	}
}

// follow lists the table and follows its changes until it cannot go on.
func (l *loop) follow(ctx context.Context) error {
	w, err := l.table.Watch(ctx, storage.WatchOptions{From: storage.State{At: kv.Latest}})
	if err != nil {
		return err
	}
	defer w.Stop()
	listed := map[string]bool{} // nil once the list has been told
	for {
		event, ok, err := w.Next()
		if err != nil {
			return err
		}
		if _, told := w.StateRevision(); told && listed != nil {
			l.forget(listed)
			listed = nil
			if err := l.restored(ctx); err != nil {
				return err
			}
		}
		if ok {
			if listed != nil {
				listed[event.Version.Name()] = true
			}
			if err := l.take(ctx, event); err != nil {
				return err
			}
			continue
		}
		select {
		case <-w.Wait():
		case j := <-l.ended:
			if err := l.reap(ctx, j); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// forget ends the jobs for objects that were not in the list: they went while nobody looked.
func (l *loop) forget(listed map[string]bool) {
	for name, j := range l.jobs {
		if !listed[name] {
			j.cancel()
		}
	}
}

func (l *loop) restored(ctx context.Context) error {
	if l.restore == nil {
		return nil
	}
	return l.restore(ctx)
}

// take takes in one event.
func (l *loop) take(ctx context.Context, event storage.Event) error {
	if event.Type != storage.Deleted {
		l.consider(ctx, event.Version)
		return nil
	}
	if j := l.jobs[event.Version.Name()]; j != nil {
		j.cancel()
	}
	return l.restored(ctx)
}

// consider begins a job for an object that waits for one, and ends one that no longer is
// waited for. An object that waits while the job for a predecessor is still ending gets its
// own afterwards, from reap.
func (l *loop) consider(ctx context.Context, v storage.Version) {
	j := l.jobs[v.Name()]
	wanted, err := l.wanted(v)
	if err != nil {
		l.log.Error("a stored object cannot be read; its deletion cannot go on", "name", v.Name(), "error", err)
		return
	}
	switch {
	case j != nil && (!wanted || j.created != v.Created()):
		j.cancel()
	case j == nil && wanted:
		md, err := v.Metadata()
		if err != nil {
			l.log.Error("a stored object cannot be read; its deletion cannot go on", "name", v.Name(), "error", err)
			return
		}
		l.begin(ctx, &job{target: target{v.Name(), md.UID}, created: v.Created()})
	}
}

func (l *loop) wanted(v storage.Version) (bool, error) {
	if deleting, err := v.Deleting(); err != nil || !deleting {
		return false, err
	}
	return l.waits(v)
}

func (l *loop) begin(ctx context.Context, j *job) {
	var working context.Context
	working, j.cancel = context.WithCancel(ctx)
	l.jobs[j.name] = j
	l.running.Go(func() {
		l.persist(working, j.target)
		j.cancel()
		select {
		case l.ended <- j:
		case <-ctx.Done():
		}
	})
}

// persist works until there is nothing more to do.
func (l *loop) persist(ctx context.Context, t target) {
	for tries := 0; ; tries++ {
		err := l.work(ctx, t)
		if err == nil || ctx.Err() != nil {
			return
		}
		l.log.Warn("a deletion cannot go on; will try again", "name", t.name, "error", err)
		if !pause(ctx, l.clock, tries) {
			return
		}
	}
}

// reap takes in that a job has ended, and looks whether there is need of another: what happened
// to the object while the job was ending has been passed over.
func (l *loop) reap(ctx context.Context, j *job) error {
	delete(l.jobs, j.name)
	v, err := l.table.Get(ctx, "", j.name, kv.Latest)
	if storage.IsKind(err, storage.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	l.consider(ctx, v)
	return nil
}

// The pause after an error is pauseMin at first and doubles up to pauseMax.
const (
	pauseMin = 50 * time.Millisecond
	pauseMax = 30 * time.Second
)

// pauseFor is how long the pause is after so many failures in a row before the last.
func pauseFor(failures int) time.Duration {
	const doublings = 10 // 2^10 · pauseMin is more than pauseMax
	return min(pauseMin<<min(failures, doublings), pauseMax)
}

// pause waits after the given number of failures in a row. It reports false if ctx ended.
func pause(ctx context.Context, c clock.Clock, failures int) bool {
	timer := c.NewTimer(pauseFor(failures))
	defer timer.Stop()
	select {
	case <-timer.C():
		return true
	case <-ctx.Done():
		return false
	}
}
