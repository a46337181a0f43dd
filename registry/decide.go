package registry

import "github.com/pawl-dev/pawl/kv"

// An outcome is what becomes of an update.
type outcome uint8

const (
	updates  outcome = 1 + iota // go on: nobody wrote in between, or the sender does not mind
	creates                     // go on: nothing is stored, and an update may create
	notFound                    // nothing is stored
	invalid                     // the sender names no version, and must
	conflict                    // somebody wrote after the sender read
	rebases                     // go on: somebody did, and the sender wants to have its change done all the same
)

// unnamed is what a sender names who names no version: none, or zero.
const unnamed = kv.Absent

// leave is what the resource, or the caller on behalf of the sender, allows.
type leave struct {
	create        bool // an update may create what does not exist
	unconditional bool // an update may name no version
	rebase        bool // an update may be based on an older version; then it has to name one
}

// decide says what becomes of an update, from the version stored, the version the sender
// names and what is allowed (rules S44, S48 to S50). It reads nothing and changes nothing.
func decide(stored, named kv.Revision, may leave) outcome {
	switch {
	case stored == kv.Absent && may.create:
		return creates
	case stored == kv.Absent:
		return notFound
	case named == stored:
		return updates
	case named != unnamed && may.rebase:
		return rebases
	case named != unnamed:
		return conflict
	case may.unconditional && !may.rebase:
		return updates
	}
	return invalid
}

// An aftermath is what an update leaves behind.
type aftermath uint8

const (
	replaces aftermath = 1 + iota // the new object takes the place of the old
	removes                       // the object goes: nothing held it any more
)

// holding is what may hold an object that is being deleted.
type holding struct {
	deleting   bool  // the stored object has a deletionTimestamp
	grace      int64 // its deletionGracePeriodSeconds, 0 if it has none
	finalizers int   // how many the new object has
	held       bool  // the strategy holds the new object
}

// settle says what an update leaves behind (rules S70, S71). Whether the new object differs
// from the old at all is found out by storage, which compares what would be written.
func settle(h holding) aftermath {
	if h.deleting && h.grace == 0 && h.finalizers == 0 && !h.held {
		return removes
	}
	return replaces
}

// A fate is what a delete does.
type fate uint8

const (
	goes      fate = 1 + iota // removed now
	marked                    // stays, with a deletionTimestamp from now on
	lingers                   // stays as it is: it is being deleted already
	rewritten                 // stays, being deleted already, but its finalizers change
	departs                   // is told that it has no time left, and then goes
)

// doom says what a delete does to an object, from what would hold it afterwards and whether
// the delete changes its finalizers (rules S87, S96 to S100).
func doom(h holding, finalizersChange bool) fate {
	switch {
	case h.finalizers == 0 && !h.held:
		return goes
	case !h.deleting:
		return marked
	case finalizersChange:
		return rewritten
	}
	return lingers
}

// doomTold says what a delete does to an object that it tells how much time is left, from what
// holds it then (rules S98, S99).
func doomTold(h holding) fate {
	if h.grace == 0 && h.finalizers == 0 && !h.held {
		return departs
	}
	return marked
}
