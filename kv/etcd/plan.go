package etcd

import (
	"fmt"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/pawl-dev/pawl/kv"
)

// What etcd takes in one transaction, unless it is told otherwise.
const (
	MaxOps   = 128         // changes; and as many conditions
	MaxBytes = 3 << 19     // of the whole request
	framing  = 64          // bytes that each part of a request takes at most, besides keys and values
	reserved = 4 * framing // bytes that etcd itself adds, at most
)

// A Course is how a transaction goes on.
type course uint8

const (
	send   course = 1 + iota // etcd has to say
	lost                     // a condition can never hold again
	behind                   // the index has not seen what a condition speaks of
)

// chart says how txn goes on, by what is seen of the store. If it is lost, the conflict is of the first
// condition that does not hold in what is seen; if it is behind, then of the revision.
//
// A key that is seen at another revision than the condition's, by somebody who has seen that
// revision, is never at it again. A key that must not exist may have been deleted meanwhile.
func chart(txn kv.Txn, seen kv.Snapshot) (course, *kv.Error, kv.Revision) {
	var first *kv.Error
	how := send
	for _, c := range txn.Conditions {
		have := revisionOf(seen.Get(c.Key))
		switch {
		case have == c.At:
			continue
		case c.At > seen.Revision():
			return behind, nil, c.At
		case c.At != kv.Absent:
			how = lost
		}
		if first == nil {
			first = &kv.Error{Op: "commit", Key: c.Key, Want: c.At, Have: have, Kind: kv.ErrConflict}
		}
	}
	if how != lost {
		first = nil
	}
	return how, first, 0
}

func revisionOf(v *kv.Version) kv.Revision {
	if v == nil {
		return kv.Absent
	}
	return v.Revision
}

// A change is what becomes of one key.
type change struct {
	op   kv.Op
	was  *kv.Version // as far as it matters
	born kv.Revision // at which the key was made that is put anew, as far as is seen; Absent if it is made now
	lost bool        // it deletes nothing
}

// A plan is a transaction for etcd.
type plan struct {
	conditions []kv.Condition // the caller's, and then those that the plan itself rests on
	births     []kv.Condition // when keys were made that are put whatever they are: the envelope says more of it than etcd knows
	changes    []change
	deletes    bool          // something
	lasting    time.Duration // the longest time after which a key expires; 0 if none does by this
}

// makePlan returns the plan of a transaction that is to be sent, by what is seen of the store. Where what is
// to be done depends on what the key was, and no condition says what it was, it becomes a condition of its own.
func makePlan(txn kv.Txn, seen kv.Snapshot) plan {
	p := plan{
		conditions: txn.Conditions[:len(txn.Conditions):len(txn.Conditions)],
		changes:    make([]change, len(txn.Ops)),
	}
	for i, op := range txn.Ops {
		c, there := change{op: op}, seen.Get(op.Key)
		at, tied := conditionOn(txn.Conditions, op.Key)
		if op.Delete || op.Expiry.Kind == kv.Keep {
			if !tied || at != kv.Absent {
				c.was = there
			}
			if !tied {
				p.conditions = append(p.conditions, kv.Condition{Key: op.Key, At: revisionOf(c.was)})
			}
			c.lost = op.Delete && c.was == nil
		}
		if there != nil {
			c.born = there.Created
		}
		if !tied && !op.Delete && op.Expiry.Kind != kv.Keep {
			p.births = append(p.births, kv.Condition{Key: op.Key, At: c.born})
		}
		p.deletes = p.deletes || op.Delete && !c.lost
		if op.Expiry.Kind == kv.After {
			p.lasting = max(p.lasting, op.Expiry.For)
		}
		p.changes[i] = c
	}
	return p
}

// conditionOn returns the revision that a condition says key is at, and whether one says so.
func conditionOn(conditions []kv.Condition, key string) (at kv.Revision, tied bool) {
	for _, c := range conditions {
		if c.Key == key {
			return c.At, true
		}
	}
	return kv.Absent, false
}

// writes says whether the plan changes anything.
func (p plan) writes() bool {
	for _, c := range p.changes {
		if !c.lost {
			return true
		}
	}
	return false
}

// A signature is what a commit leaves with what it writes.
type signature struct {
	id     id
	time   kv.Instant
	author []byte
	leases map[time.Duration]int64 // by the time after which keys expire
}

// rests returns all conditions: those of births come last.
func (p plan) rests() []kv.Condition {
	if len(p.births) == 0 {
		return p.conditions
	}
	return slices.Concat(p.conditions, p.births)
}

// request returns the plan as etcd wants it. If the conditions do not hold, it answers where their keys are. What belongs
// together in it is allocated together: it is made for every commit.
func (p plan) request(in keyspace, s signature) *pb.TxnRequest {
	rests := p.rests()
	m := &struct {
		r                pb.TxnRequest
		compare          [2]*pb.Compare // room for what most commits have
		failure, success [2]*pb.RequestOp
	}{}
	r := &m.r
	r.Compare, r.Failure, r.Success = m.compare[:0], m.failure[:0], m.success[:0]
	for i, c := range rests {
		key, compare := in.in(c.Key), atRevision
		if i >= len(p.conditions) {
			compare = madeAt
		}
		r.Compare = append(r.Compare, compare(key, in.theirs(c.At)))
		r.Failure = append(r.Failure, looking(key))
	}
	for _, c := range p.changes {
		switch {
		case c.lost:
		case c.op.Delete:
			r.Success = append(r.Success, &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{
				RequestDeleteRange: &pb.DeleteRangeRequest{Key: in.in(c.op.Key)}}})
		default:
			r.Success = append(r.Success, c.put(in, s))
		}
	}
	if p.deletes {
		e := envelope{grouped: true, id: s.id, time: s.time, author: s.author}
		r.Success = append(r.Success, putting(&pb.PutRequest{Key: in.in(deletedKey), Value: e.encode()}))
	}
	return r
}

// put puts the change's value.
func (c change) put(in keyspace, s signature) *pb.RequestOp {
	e := envelope{grouped: true, born: in.behind(c.born), id: s.id, time: s.time, author: s.author, value: c.op.Value}
	m := &struct {
		op  pb.RequestOp
		of  pb.RequestOp_RequestPut
		put pb.PutRequest
	}{}
	switch {
	case c.op.Expiry.Kind == kv.After:
		e.expires = s.time.Add(c.op.Expiry.For)
		m.put.Lease = s.leases[c.op.Expiry.For]
	case c.op.Expiry.Kind == kv.Keep && c.was != nil && !c.was.Expires.IsZero():
		e.expires = c.was.Expires
		m.put.IgnoreLease = true
	}
	m.put.Key, m.put.Value = in.in(c.op.Key), e.encode()
	m.of.RequestPut, m.op.Request = &m.put, &m.of
	return &m.op
}

func putting(put *pb.PutRequest) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: put}}
}

// looking asks at which revision key is.
func looking(key []byte) *pb.RequestOp {
	m := &struct {
		op   pb.RequestOp
		of   pb.RequestOp_RequestRange
		look pb.RangeRequest
	}{}
	m.look.Key, m.look.KeysOnly = key, true
	m.of.RequestRange, m.op.Request = &m.look, &m.of
	return &m.op
}

// never is etcd's revision of what does not exist.
const never = 0

// atRevision holds if a key is at a revision of etcd's.
func atRevision(key []byte, at int64) *pb.Compare {
	m := &struct {
		compare pb.Compare
		with    pb.Compare_ModRevision
	}{}
	m.with.ModRevision = at
	m.compare.Key, m.compare.Target, m.compare.Result, m.compare.TargetUnion = key, pb.Compare_MOD, pb.Compare_EQUAL, &m.with
	return &m.compare
}

// madeAt holds if a key was made at a revision of etcd's.
func madeAt(key []byte, at int64) *pb.Compare {
	return &pb.Compare{
		Key: key, Target: pb.Compare_CREATE, Result: pb.Compare_EQUAL,
		TargetUnion: &pb.Compare_CreateRevision{CreateRevision: at},
	}
}

// fits says what is too much for one commit, "" if nothing is, and how many bytes it takes.
func fits(r *pb.TxnRequest) (size int, problem string) {
	if n := len(r.Success); n > MaxOps {
		return 0, fmt.Sprintf("the commit makes %d changes, and etcd takes at most %d: make several of it", n, MaxOps)
	}
	if n := len(r.Compare); n > MaxOps {
		return 0, fmt.Sprintf("the commit rests on %d conditions, and etcd takes at most %d: make several of it", n, MaxOps)
	}
	size = reserved
	for _, c := range r.Compare {
		size += 2 * (len(c.Key) + framing)
	}
	for _, op := range r.Success {
		if put := op.GetRequestPut(); put != nil {
			size += len(put.Value) + len(put.Key) + framing
		} else {
			size += len(op.GetRequestDeleteRange().GetKey()) + framing
		}
	}
	if size > MaxBytes {
		return size, fmt.Sprintf("the commit comes to %d bytes, and etcd takes at most %d: make several of it, or smaller objects", size, MaxBytes)
	}
	return size, ""
}
