package kv

import (
	"errors"
	"fmt"
)

// Check returns the [ErrInvalid] of a transaction that breaks a rule of this package, nil if none is
// broken. Every engine refuses what does not pass.
func (txn Txn) Check() error {
	if n := len(txn.Ops) + len(txn.Conditions); n > MaxTxnOps {
		return invalid("", fmt.Sprintf("%d conditions and changes in one transaction, at most %d are allowed", n, MaxTxnOps))
	}
	for _, c := range txn.Conditions {
		if problem := CheckKey(c.Key); problem != "" {
			return invalid(c.Key, problem)
		}
	}
	var size int
	for _, op := range txn.Ops {
		if problem := op.check(); problem != "" {
			return invalid(op.Key, problem)
		}
		size += len(op.Key) + len(op.Value)
	}
	if key, twice := changedTwice(txn.Ops); twice {
		return invalid(key, "changed twice in one transaction")
	}
	if size > MaxTxnBytes {
		return invalid("", fmt.Sprintf("%d bytes of keys and values in one transaction, at most %d are allowed", size, MaxTxnBytes))
	}
	return nil
}

// changedTwice returns a key that more than one of ops changes, and whether there is one.
func changedTwice(ops []Op) (key string, twice bool) {
	if len(ops) < 2 {
		return "", false
	}
	seen := make(map[string]struct{}, len(ops))
	for _, op := range ops {
		if _, twice := seen[op.Key]; twice {
			return op.Key, true
		}
		seen[op.Key] = struct{}{}
	}
	return "", false
}

// check reports what is wrong with op, "" if nothing is.
func (op Op) check() string {
	problem := CheckKey(op.Key)
	switch {
	case problem != "":
		return problem
	case op.Delete && (op.Value != nil || op.Expiry.Kind != Keep || op.Slot != nil):
		return "a deletion has neither value nor expiry nor slot"
	case op.Delete:
		return ""
	case op.Value == nil:
		return "a put without a value; use an empty one, or a deletion"
	case len(op.Value) > MaxValueBytes:
		return fmt.Sprintf("value of %d bytes, at most %d are allowed", len(op.Value), MaxValueBytes)
	case op.Expiry.Kind > After:
		return "no such kind of expiry"
	case op.Expiry.Kind == After && op.Expiry.For <= 0:
		return "an expiry must lie in the future"
	}
	return ""
}

func invalid(key, problem string) error {
	return &Error{Op: "commit", Key: key, Kind: ErrInvalid, Err: errors.New(problem)}
}
