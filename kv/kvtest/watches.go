package kvtest

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/kv"
)

var watches = []promise{
	{"a watch tells what changed, from what, to what", func(s *store) {
		w := s.watch(table, s.newest())
		s.put(a, "1")
		s.put(a, "2")
		s.del(a)
		e := s.next(w)
		if e.Prev != nil || string(e.Version.Value) != "1" {
			s.Errorf("created: %+v", e)
		}
		e = s.next(w)
		if string(e.Prev.Value) != "1" || string(e.Version.Value) != "2" {
			s.Errorf("changed: %+v", e)
		}
		e = s.next(w)
		if string(e.Prev.Value) != "2" || !e.Version.Deleted {
			s.Errorf("deleted: %+v", e)
		}
		s.quiet(w)
	}},
	{"a watch of a space, table, namespace or key tells of that alone", func(s *store) {
		keys := []string{
			a, b, a + "2", table + "ns2/a", "default/core/configmaps2/ns/a", "default/core/namespaces/ns",
			"other/core/configmaps/ns/a",
		}
		topics := []string{"default/", "other/", table, ns, a, table + "nowhere/", "default/core/namespaces/ns"}
		var live []kv.Watch
		start := s.newest()
		for _, topic := range topics {
			live = append(live, s.watch(topic, start))
		}
		for _, key := range keys {
			s.put(key, "1")
		}
		alone := func(w kv.Watch, topic string) {
			for _, key := range keys {
				if !covers(topic, key) {
					continue
				}
				if e := s.next(w); e.Version.Key != key {
					s.Errorf("%s tells of %s, want %s", topic, e.Version.Key, key)
				}
			}
			s.quiet(w)
		}
		for i, topic := range topics {
			late := s.watch(topic, start)
			alone(live[i], topic)
			alone(late, topic)
			live[i].Stop()
			late.Stop()
			alone(s.watch(topic, start), topic) // which nobody has watched meanwhile
		}
	}},
	{"a watch of something that cannot be named is refused", func(s *store) {
		for _, prefix := range []string{"", "/", "default", "default/core/", "default/core/configmaps", "a/b/c/d/e/f", "a/b/c/d/e/", "a//c/"} {
			_, err := s.Watch(prefix, s.newest())
			if e := s.fails(err, kv.ErrInvalid); e.Op != "watch" || e.Key != prefix {
				s.Errorf("%q: %+v", prefix, e)
			}
		}
	}},
	{"a watch joined at any revision misses nothing and repeats nothing", joinAnywhere},
	{"watches joined while others write all tell the same", joinWhileWriting},
	{"a watch from the future tells nothing older", func(s *store) {
		after := s.soon()
		w := s.watch(ns, after)
		ready := w.Wait()
		for s.newest() < after {
			s.put(a, "old")
		}
		s.quiet(w)
		select {
		case <-ready:
			s.Error("it was woken by what it must not tell")
		default:
		}
		s.put(b, "new")
		s.wait(w)
		if e := s.next(w); e.Version.Key != b {
			s.Errorf("got %+v", e.Version)
		}
	}},
	{"a waiting watch is woken", func(s *store) {
		w := s.watch(ns, s.newest())
		ready := w.Wait()
		select {
		case <-ready:
			s.Fatal("woken by nothing")
		default:
		}
		s.put(a, "1")
		select {
		case <-ready:
		case <-time.After(s.patience):
			s.Fatal("not woken")
		}
		s.wait(w) // still something to say
		s.next(w)
		s.quiet(w)
	}},
	{"a stopped watch is over, and whoever waits for it is woken", func(s *store) {
		w := s.watch(ns, s.newest())
		ready := w.Wait()
		go w.Stop()
		select {
		case <-ready:
		case <-time.After(s.patience):
			s.Fatal("not woken")
		}
		w.Stop()
		_, _, err := w.Next()
		if e := s.fails(err, kv.ErrClosed); e.Key != ns {
			s.Errorf("got %+v", e)
		}
		if rev, ok := w.Progress(); ok {
			s.Errorf("progress %d of a watch that is over", rev)
		}
		s.wait(w)
	}},
	{"progress is made on a quiet topic", func(s *store) {
		w := s.watch("default/core/secrets/", s.newest())
		rev := s.put(a, "1")
		deadline := time.Now().Add(s.patience)
		for {
			got, ok := w.Progress()
			if ok && got >= rev {
				break
			}
			if !ok || time.Now().After(deadline) {
				s.Fatalf("progress %d, %v, want %d", got, ok, rev)
			}
		}
	}},
	{"there is no progress while there is something to tell", func(s *store) {
		w := s.watch(ns, s.newest())
		s.put(a, "1")
		if rev, ok := w.Progress(); ok {
			s.Errorf("progress %d", rev)
		}
		rev := s.next(w).Version.Revision
		if got, ok := w.Progress(); !ok || got < rev {
			s.Errorf("progress %d, %v, want at least %d", got, ok, rev)
		}
	}},
	{"progress never overtakes an event", progressIsTrue},
}

// joinAnywhere compares watches of every kind, joined before, during and after a random
// history, with what a twin remembers.
func joinAnywhere(s *store) {
	tw := newTwin(s, 2)
	type joined struct {
		kv.Watch
		topic string
		after kv.Revision
		told  []kv.Event
	}
	var all []*joined
	for i := range 400 {
		tw.step()
		if i%4 == 0 {
			revs := tw.revisions()
			after := revs[tw.rand.IntN(len(revs))]
			topic := tw.topic()
			all = append(all, &joined{Watch: s.watch(topic, after), topic: topic, after: after})
		}
		if w := tw.rand.IntN(len(all)); i%3 == 0 {
			all[w].told = append(all[w].told, s.drain(all[w])...)
		}
		if w := tw.rand.IntN(len(all)); i%40 == 39 { // topics come and go
			all[w].Stop()
			all = append(all[:w], all[w+1:]...)
		}
	}
	for _, w := range all {
		w.told = append(w.told, s.drain(w)...)
		tw.told(w.topic, w.after, w.told)
	}
}

// joinWhileWriting compares what watches tell that were joined during a storm of writes.
func joinWhileWriting(s *store) {
	start := s.newest()
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 100 {
				s.Commit(s.Context(), kv.Txn{Ops: []kv.Op{
					kv.Put(fmt.Sprintf("%sk%d", ns, (g+i)%5), []byte{}),
					kv.Put(fmt.Sprintf("default/core/secrets/ns/k%d", i%5), []byte{}),
				}})
			}
		})
	}
	topics := []string{"default/", table, ns, ns + "k1"}
	told := make([][][]kv.Event, len(topics))
	end := make(chan kv.Revision)
	var readers sync.WaitGroup
	for i, topic := range topics {
		told[i] = make([][]kv.Event, 4)
		for j := range told[i] {
			w := s.watch(topic, start)
			readers.Go(func() { told[i][j] = readUntil(s, w, end) })
		}
	}
	wg.Wait()
	s.put(ns+"k1", "last")
	close(end)
	readers.Wait()
	for i, topic := range topics {
		fresh := s.drain(s.watch(topic, start))
		for j, events := range told[i] {
			if len(events) != len(fresh) {
				s.Fatalf("watch %d of %s told %d events, want %d", j, topic, len(events), len(fresh))
			}
			for k := range events {
				if events[k] != fresh[k] {
					s.Fatalf("watch %d of %s told %v as number %d, want %v", j, topic, events[k].Version.Revision, k, fresh[k].Version.Revision)
				}
			}
		}
	}
}

// readUntil reads w until end is closed and there is nothing left to tell.
func readUntil(s *store, w kv.Watch, end <-chan kv.Revision) []kv.Event {
	var all []kv.Event
	for {
		e, ok, err := w.Next()
		switch {
		case err != nil:
			s.Errorf("watch ended: %v", err)
			return all
		case ok:
			all = append(all, e)
			continue
		}
		select {
		case <-w.Wait():
		case <-end:
			for {
				e, ok, _ := w.Next()
				if !ok {
					return all
				}
				all = append(all, e)
			}
		}
	}
}

// progressIsTrue looks for an event at or before a revision that progress was claimed for.
func progressIsTrue(s *store) {
	const writers, rounds = 4, 100
	last := ns + "last"
	var wg, readers sync.WaitGroup
	for _, topic := range []string{"default/", table, ns, last, "default/", table, ns, last} {
		w, all := s.watch(topic, s.newest()), s.watch("default/", s.newest())
		readers.Go(func() { claim(s, w, all, last) })
	}
	for g := range writers {
		r := rand.New(rand.NewPCG(3, uint64(g)))
		wg.Go(func() {
			for range rounds {
				s.Commit(s.Context(), one(kv.Put(fmt.Sprintf("%sk%d", ns, r.IntN(5)), []byte{})))
			}
		})
	}
	wg.Wait()
	s.put(last, "")
	readers.Wait()
}

// claim asks w for progress all the time, whether there is something to tell or not, until w
// tells of last. It waits for all, a watch of everything, to be woken.
func claim(s *store, w, all kv.Watch, last string) {
	var claimed kv.Revision
	for {
		if rev, ok := w.Progress(); ok {
			if rev < claimed {
				s.Errorf("progress went from %d back to %d", claimed, rev)
			}
			claimed = rev
		}
		e, ok, err := w.Next()
		switch {
		case err != nil:
			s.Errorf("watch ended: %v", err)
			return
		case ok && e.Version.Revision <= claimed:
			s.Errorf("told revision %d after claiming progress to %d", e.Version.Revision, claimed)
			return
		case ok && e.Version.Key == last:
			return
		case ok:
			continue
		}
		select {
		case <-all.Wait():
			all.Next()
		case <-w.Wait():
		}
	}
}
