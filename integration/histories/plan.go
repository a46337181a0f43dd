package histories

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/kv"
)

// keys is all that a run writes to, in order: several tables, namespaces and spaces, and few
// keys, so that clients meet.
var keys = []string{
	"default/core/configmaps/n1/k0", "default/core/configmaps/n1/k1", "default/core/configmaps/n1/k2",
	"default/core/configmaps/n1/k3", "default/core/configmaps/n10/k0", "default/core/configmaps/n10/k1",
	"default/core/configmaps/n10/k2", "default/core/namespaces/n1", "default/core/namespaces/n10",
	"default/core/secrets/n1/k0", "default/core/secrets/n1/k1", "default/core/secrets/n10/k0",
	"other/core/configmaps/n1/k0", "other/core/configmaps/n1/k1", "other/core/secrets/n1/k0",
}

// spaces are the spaces of keys. Together they are everything that can be watched.
var spaces = []string{"default/", "other/"}

// prefixes can be listed; all but the first can be watched too, as can each key.
var prefixes = []string{
	"", "default/", "other/", "default/core/configmaps/", "default/core/namespaces/", "default/core/secrets/",
	"other/core/configmaps/", "default/core/configmaps/n1/", "default/core/configmaps/n10/", "other/core/secrets/n1/",
}

// A Kind is what sort of thing an operation does.
type Kind uint8

// The kinds of operations.
const (
	Commit    Kind = iota // makes a transaction
	Read                  // lists, gets, and walks a version backwards
	LookAgain             // looks at a snapshot that was read earlier
	Follow                // takes what a watch has to tell, beginning it if need be
	Leave                 // ends a watch, for the next Follow to begin another
	Compact               // has history forgotten
	Pass                  // lets time pass
	Arm                   // has the power fail soon
	Crash                 // has the power fail now, unless it has already, and opens the store again
	Restart               // closes the store and opens it again
)

var kindNames = [...]string{"commit", "read", "look again", "follow", "leave", "compact", "pass", "arm", "crash", "restart"}

// String names the kind.
func (k Kind) String() string { return kindNames[k] }

// A Guard says which condition a transaction puts on a key.
type Guard uint8

// The conditions on a key.
const (
	Unguarded Guard = iota
	AsSeen          // it is as the client last saw it
	Free            // it does not exist
)

// A Touch is what a transaction does with one key.
type Touch struct {
	Key    int // in keys
	Guard  Guard
	Only   bool // only the condition
	Delete bool
	Size   int // bytes of the value beyond its name
	Expiry kv.Expiry
}

// A Fresh says which state a read asks for.
type Fresh uint8

// The states that are asked for.
const (
	AskLatest Fresh = iota
	AskAny
	AskAtLeast // a revision that the client knows, or one somewhat later
	AskExactly // a revision that the client knows
)

// An Op is one thing that a client asks for.
type Op struct {
	Kind    Kind
	Touches []Touch       // of Commit
	Cancel  bool          // of Commit: its context ends meanwhile
	Fresh   Fresh         // of Read
	Back    int           // how many known revisions back: of Read, Compact, and Follow when it begins
	Ahead   int           // of Read and Follow: how far beyond the newest known, in place of Back; 0 means not
	Prefix  string        // of Read and Follow
	From    string        // of Read: the first key
	Slot    int           // of LookAgain, Follow, Leave, and where Read keeps its snapshot
	Count   int           // of Follow: how many events to take; of Arm: how many changes of the disk to wait for
	For     time.Duration // of Pass
}

// A Plan says what the clients of one run do.
type Plan struct {
	Seed    uint64
	Clients int // 0 means 6
	Ops     int // of each client; 0 means 150

	// Patience is how long anything may take that must come, and a quarter of what a run may
	// take; 0 means 30 s. Porcupine may think as long about each history.
	Patience time.Duration
}

func (p Plan) complete() Plan {
	if p.Clients == 0 {
		p.Clients = 6
	}
	if p.Ops == 0 {
		p.Ops = 150
	}
	if p.Patience == 0 {
		p.Patience = 30 * time.Second
	}
	return p
}

// slots is how many watches, and how many snapshots, a client has.
const slots = 3

// memory is how many revisions a client remembers.
const memory = 24

// Client returns what a client does. It depends on the plan and the number alone.
func (p Plan) Client(number int) []Op {
	p = p.complete()
	d := dice{rand.New(rand.NewPCG(p.Seed, uint64(number)))}
	ops := make([]Op, 0, p.Ops)
	var crash int // the operation that is to be a crash, because one before it arms it
	for i := range p.Ops {
		op := d.op()
		switch {
		case i == crash && crash > 0:
			op = Op{Kind: Crash}
		case op.Kind == Arm && (i < crash || i+op.Slot >= p.Ops):
			op = d.commit()
		case op.Kind == Arm:
			crash = i + op.Slot
		}
		ops = append(ops, op)
	}
	return ops
}

// Seats returns at which of n replicas a client is, operation by operation. Some stay where
// they are, others change now and then.
func (p Plan) Seats(number, n int) []int {
	p = p.complete()
	d := dice{rand.New(rand.NewPCG(p.Seed, 3<<32+uint64(number)))}
	seats := make([]int, p.Ops)
	at := number % n
	for i := range seats {
		if number%3 == 2 && d.oneIn(8) {
			at = d.IntN(n)
		}
		seats[i] = at
	}
	return seats
}

// dice make operations.
type dice struct{ *rand.Rand }

// oneIn is true once in n throws.
func (d dice) oneIn(n int) bool { return d.IntN(n) == 0 }

// disasters is how rarely the store is closed or crashes: once in so many operations for each.
const disasters = 250

func (d dice) op() Op {
	if d.oneIn(disasters) {
		return Op{Kind: Restart}
	}
	if d.oneIn(disasters) {
		return Op{Kind: Arm, Count: 1 + d.IntN(30), Slot: 1 + d.IntN(20)}
	}
	switch n := d.IntN(100); {
	case n < 45:
		return d.commit()
	case n < 70:
		return d.read()
	case n < 75:
		return Op{Kind: LookAgain, Slot: d.IntN(slots), Prefix: d.prefix()}
	case n < 92:
		return d.follow()
	case n < 94:
		return Op{Kind: Leave, Slot: d.IntN(slots)}
	case n < 95:
		return Op{Kind: Compact, Back: memory/2 + d.IntN(memory/2)}
	}
	return Op{Kind: Pass, For: time.Duration(1+d.IntN(8000)) * time.Millisecond}
}

func (d dice) prefix() string { return prefixes[d.IntN(len(prefixes))] }

func (d dice) topic() string {
	if d.oneIn(4) {
		return keys[d.IntN(len(keys))]
	}
	return prefixes[1+d.IntN(len(prefixes)-1)]
}

func (d dice) follow() Op {
	op := Op{Kind: Follow, Slot: d.IntN(slots), Prefix: d.topic(), Back: d.IntN(memory), Count: 1 + d.IntN(20)}
	if d.oneIn(8) {
		op.Ahead = 1 + d.IntN(8)
	}
	return op
}

func (d dice) read() Op {
	op := Op{Kind: Read, Fresh: Fresh(d.IntN(4)), Back: d.IntN(memory), Slot: d.IntN(slots), Prefix: d.prefix()}
	if d.oneIn(3) {
		op.From = keys[d.IntN(len(keys))]
	}
	if d.oneIn(4) {
		op.Ahead = 1 + d.IntN(4)
	}
	return op
}

// commit makes a create, an update, a deletion, a transaction over several keys, or one that
// only looks.
func (d dice) commit() Op {
	op := Op{Kind: Commit, Cancel: d.oneIn(30)}
	switch d.IntN(6) {
	case 0:
		op.Touches = []Touch{{Key: d.IntN(len(keys)), Guard: Free, Size: d.size(), Expiry: d.expiry()}}
	case 1, 2:
		op.Touches = []Touch{{Key: d.IntN(len(keys)), Guard: AsSeen, Size: d.size(), Expiry: d.expiry()}}
	case 3:
		op.Touches = []Touch{{Key: d.IntN(len(keys)), Guard: Guard(d.IntN(2)), Delete: true}}
	default:
		for _, k := range d.Perm(len(keys))[:2+d.IntN(4)] {
			op.Touches = append(op.Touches, d.touch(k))
		}
	}
	return op
}

func (d dice) touch(key int) Touch {
	t := Touch{Key: key, Guard: Unguarded}
	if d.oneIn(2) {
		t.Guard = AsSeen
	}
	switch d.IntN(5) {
	case 0:
		t.Only, t.Guard = true, AsSeen
	case 1:
		t.Delete = true
	default:
		t.Size, t.Expiry = d.size(), d.expiry()
	}
	return t
}

// size is mostly small, and sometimes more than a small segment holds.
func (d dice) size() int {
	if d.oneIn(20) {
		return d.IntN(3000)
	}
	return d.IntN(40)
}

func (d dice) expiry() kv.Expiry {
	switch d.IntN(10) {
	case 0:
		return kv.Expiry{Kind: kv.Forever}
	case 1:
		return kv.Expiry{Kind: kv.After, For: time.Duration(1+d.IntN(60)) * time.Second}
	}
	return kv.Expiry{}
}

// A name is one operation of one client, as the author of its commit says it.
type name struct{ client, index int }

func (n name) String() string { return fmt.Sprintf("client %d, operation %d", n.client, n.index) }

// author is who a transaction says made it: no two transactions say the same.
func (n name) author() kv.Author {
	return kv.Author{User: fmt.Sprintf("%d.%d", n.client, n.index), Verb: "update"}
}

// nameOf is the operation that an author stands for, and whether it is one.
func nameOf(a kv.Author) (n name, ok bool) {
	got, err := fmt.Sscanf(a.User, "%d.%d", &n.client, &n.index)
	return n, got == 2 && err == nil && n.author() == a
}

// value is what an operation puts under a key: its name, the key's number, and filler.
func (n name) value(t Touch) []byte {
	b := fmt.Appendf(nil, "%d.%d.%d:", n.client, n.index, t.Key)
	for i := range t.Size {
		b = append(b, 'a'+byte((i+n.index)%26))
	}
	return b
}

// rangeOf is the numbers of the keys under prefix, from a key on.
func rangeOf(prefix, from string) []int {
	var in []int
	for i, k := range keys {
		if len(k) >= len(prefix) && k[:len(prefix)] == prefix && k >= from {
			in = append(in, i)
		}
	}
	return in
}

// covers says whether a watch of topic tells of key.
func covers(topic, key string) bool {
	if topic[len(topic)-1] != '/' {
		return key == topic
	}
	return len(key) > len(topic) && key[:len(topic)] == topic
}

// numberOf is the number of a key, or -1.
func numberOf(key string) int {
	if i, ok := slices.BinarySearch(keys, key); ok {
		return i
	}
	return -1
}
