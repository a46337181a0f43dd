package kvtest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/pawl-dev/pawl/kv"
)

// A twin does the same as a store, in the plainest way: it keeps every state that there was.
type twin struct {
	s      *store
	seed   uint64
	rand   *rand.Rand
	keys   []string
	states []map[string]*kv.Version // states[0] is the empty one
	events []kv.Event
}

func newTwin(s *store, seed uint64) *twin {
	tw := &twin{s: s, seed: seed, rand: rand.New(rand.NewPCG(seed, 0)), states: []map[string]*kv.Version{{}}}
	for _, table := range []string{"default/core/configmaps/", "default/core/secrets/", "other/core/configmaps/"} {
		for _, space := range []string{"n1", "n2"} {
			for i := range 4 {
				tw.keys = append(tw.keys, fmt.Sprintf("%s%s/k%d", table, space, i))
			}
		}
	}
	tw.keys = append(tw.keys, "default/core/namespaces/n1", "default/core/namespaces/n2")
	return tw
}

func (tw *twin) key() string { return tw.keys[tw.rand.IntN(len(tw.keys))] }

// prefix returns something that can be listed.
func (tw *twin) prefix() string {
	all := []string{"", "default/", "other/", kv.TableOf(tw.key()), kv.NamespaceOf(tw.keys[tw.rand.IntN(24)])}
	return all[tw.rand.IntN(len(all))]
}

// topic returns something that can be watched.
func (tw *twin) topic() string {
	if tw.rand.IntN(4) == 0 {
		return tw.key()
	}
	if p := tw.prefix(); p != "" {
		return p
	}
	return "default/"
}

// step commits something to the store, and to the twin what came of it.
func (tw *twin) step() {
	tw.s.Helper()
	state := maps.Clone(tw.states[len(tw.states)-1])
	var txn kv.Txn
	for _, i := range tw.rand.Perm(len(tw.keys))[:1+tw.rand.IntN(3)] {
		key := tw.keys[i]
		at := kv.Absent
		if v := state[key]; v != nil {
			at = v.Revision
		}
		txn.Conditions = append(txn.Conditions, cond(key, at))
		if tw.rand.IntN(3) == 0 {
			txn.Ops = append(txn.Ops, kv.Delete(key))
		} else {
			txn.Ops = append(txn.Ops, kv.Put(key, fmt.Append(nil, tw.rand.IntN(1000))))
		}
	}
	done := tw.s.commit(txn)
	changed := false
	for i, v := range done.Versions {
		was := state[txn.Ops[i].Key]
		if (v == nil) != (txn.Ops[i].Delete && was == nil) {
			tw.s.Fatalf("%s became %+v, from %+v", txn.Ops[i].Key, v, was)
		}
		if v == nil {
			continue
		}
		changed = true
		tw.events = append(tw.events, kv.Event{Version: v, Prev: was})
		state[v.Key] = v
		if v.Deleted {
			delete(state, v.Key)
		}
	}
	if changed {
		tw.states = append(tw.states, state)
	}
}

// revisions returns the revision of each state.
func (tw *twin) revisions() []kv.Revision {
	revs := []kv.Revision{1}
	for _, e := range tw.events {
		if rev := e.Version.Revision; rev != revs[len(revs)-1] {
			revs = append(revs, rev)
		}
	}
	return revs
}

func (tw *twin) sorted(state map[string]*kv.Version) []string {
	return slices.Sorted(maps.Keys(state))
}

// under returns the events after a revision that a watch of topic must tell.
func (tw *twin) under(topic string, after kv.Revision) []kv.Event {
	var all []kv.Event
	for _, e := range tw.events {
		if e.Version.Revision > after && covers(topic, e.Version.Key) {
			all = append(all, e)
		}
	}
	return all
}

func covers(topic, key string) bool {
	if topic[len(topic)-1] != '/' {
		return key == topic
	}
	return len(key) > len(topic) && key[:len(topic)] == topic
}
