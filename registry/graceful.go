package registry

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pawl-dev/pawl/storage"
)

// A notice is what a delete tells an object about the time that it has left.
type notice uint8

const (
	noTime     notice = iota // the object gets none, or had it: deleted as if nothing were graceful
	givesTime                // from now on it has some, or none but is told so
	shortens                 // less than before
	timeStands               // what it has left stays as it is
)

// A farewell is what an object says of its end: when, and after how many seconds of grace.
type farewell struct {
	at      time.Time
	seconds int64
}

// notify says what a delete that asks for so many seconds, or says nothing, tells an object that
// is being deleted already (rules S87 to S89). Said is what the object says now; recorded is
// whether it says how many seconds of grace that was.
func notify(said farewell, recorded bool, asked *int64, now time.Time) (notice, farewell) {
	switch {
	case !recorded || said.seconds == 0:
		return noTime, said
	case asked == nil || atLeastOne(*asked) >= said.seconds:
		return timeStands, said
	}
	seconds := atLeastOne(*asked)
	next := farewell{said.at.Add(time.Duration(seconds-said.seconds) * time.Second), seconds}
	if next.at.Before(now) {
		next = farewell{now, min(seconds, 1)}
	}
	return shortens, next
}

// atLeastOne makes a negative grace one second (rule S84).
func atLeastOne(seconds int64) int64 {
	if seconds < 0 {
		return 1
	}
	return seconds
}

// notice says what a delete tells obj, and brings obj into the form in which it was told.
func (s *Store) notice(obj runtime.Object, acc metav1.Object, asked *int64) notice {
	g, ok := s.strategy.(Graceful)
	if !ok {
		return noTime
	}
	now := s.clock.Now().UTC().Truncate(secondsOnly)
	if t := acc.GetDeletionTimestamp(); t != nil {
		recorded := acc.GetDeletionGracePeriodSeconds()
		n, next := notify(farewell{t.Time, atLeastOne(graceOf(acc))}, recorded != nil, asked, now)
		if n == shortens {
			next.tell(acc)
		}
		return n
	}
	if asked != nil {
		seconds := atLeastOne(*asked)
		asked = &seconds
	}
	seconds, graceful := g.Grace(obj, asked)
	if !graceful {
		return noTime
	}
	if acc.GetGeneration() > 0 {
		acc.SetGeneration(acc.GetGeneration() + 1)
	}
	farewell{now.Add(time.Duration(seconds) * time.Second), seconds}.tell(acc)
	return givesTime
}

func (f farewell) tell(acc metav1.Object) {
	at := metav1.NewTime(f.at)
	acc.SetDeletionTimestamp(&at)
	acc.SetDeletionGracePeriodSeconds(&f.seconds)
}

// remove takes away an object that was just told that it has no time left, unless something came
// to hold it; then it is not gone. If somebody else was quicker, it is as it should be (rule S99).
func (s *Store) remove(ctx context.Context, told storage.Version) (last storage.Version, gone bool, err error) {
	res, err := s.table.Modify(ctx, told.Namespace(), told.Name(), false, func(ctx context.Context, current storage.Version, view *storage.View) (storage.Verdict, error) {
		if !current.Exists() || current.Created() != told.Created() {
			return storage.Verdict{}, &storage.Error{Kind: storage.NotFound, Namespace: told.Namespace(), Name: told.Name()}
		}
		obj, acc, err := decode(current)
		if err != nil {
			return storage.Verdict{}, err
		}
		if settle(s.holdingOf(obj, acc, acc)) != removes {
			return storage.Verdict{}, nil
		}
		s.claim(ctx, view, nil, obj)
		return storage.Verdict{Action: storage.Remove}, nil
	})
	if storage.IsKind(err, storage.NotFound) {
		return told, true, nil
	}
	return res.Version, res.Wrote, err
}
