package registry

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pawl-dev/pawl/storage"
)

// A Strategy says what is particular about one resource. Embed [Default] and override
// what differs. Methods get objects of the Store's own type; those that prepare may
// change obj, none may change old, and all may run more than once for one request.
type Strategy interface {
	// Policy says what may be done, and how. It is asked once, when the store is made.
	Policy() Policy

	// PrepareForCreate clears what a client may not set, and fills in defaults (rule S43).
	PrepareForCreate(ctx context.Context, obj runtime.Object)
	// Validate says what is wrong with a new object, beyond what is wrong with its
	// metadata (rule S43b).
	Validate(ctx context.Context, obj runtime.Object) field.ErrorList

	// PrepareForUpdate puts back what a client may not change, and raises the
	// generation where that is called for (rules S60, S61).
	PrepareForUpdate(ctx context.Context, obj, old runtime.Object)
	// ValidateUpdate says what is wrong with obj as the successor of old, beyond what
	// is wrong with its metadata (rule S62).
	ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList

	// Warnings returns what the client should be told about an object that passed
	// validation; old is nil for a new one (rules S43c, S65).
	Warnings(ctx context.Context, obj, old runtime.Object) []string

	// Canonicalize brings an object that passed validation into its stored form.
	Canonicalize(obj runtime.Object)
}

// A Policy is what a resource allows.
type Policy struct {
	Namespaced bool
	// CreateOnUpdate lets an update of what does not exist create it (rules S44, B12).
	CreateOnUpdate bool
	// UnconditionalUpdate lets an update name no resourceVersion (rules S48, S49, B11).
	UnconditionalUpdate bool
	// ReturnDeleted makes a delete answer with the object in place of a Status (rule B13).
	ReturnDeleted bool
	// Dependents says what becomes of dependents when nobody says anything (rule B63).
	Dependents Dependents
	// Sensitive keeps values out of explanations: only paths are told.
	Sensitive bool
	// Name checks metadata.name; nil means a DNS subdomain (rule H180).
	Name validation.ValidateNameFunc
	// Blames is the kind that errors of an invalid object name; the zero value means the store's.
	Blames schema.GroupKind
	// KeepMetadata makes updates through this strategy keep the stored metadata, but
	// for managedFields (a subresource such as status, rule C91).
	KeepMetadata bool
	// NoGrace makes a deletion that something holds note no deletionGracePeriodSeconds: kinds with
	// a deletion of their own in the reference, such as namespaces, have none.
	NoGrace bool
}

// Default is a [Strategy] for resources about which nothing is particular. Its zero
// value is a cluster-scoped resource; set Policies for anything else.
type Default struct{ Policies Policy }

// Policy returns d.Policies.
func (d Default) Policy() Policy { return d.Policies }

// PrepareForCreate does nothing.
func (Default) PrepareForCreate(context.Context, runtime.Object) {}

// Validate finds nothing.
func (Default) Validate(context.Context, runtime.Object) field.ErrorList { return nil }

// PrepareForUpdate does nothing.
func (Default) PrepareForUpdate(context.Context, runtime.Object, runtime.Object) {}

// ValidateUpdate finds nothing.
func (Default) ValidateUpdate(context.Context, runtime.Object, runtime.Object) field.ErrorList {
	return nil
}

// Warnings returns none.
func (Default) Warnings(context.Context, runtime.Object, runtime.Object) []string { return nil }

// Canonicalize does nothing.
func (Default) Canonicalize(runtime.Object) {}

// AnyPathSegment accepts every name that fits into a URL path: RBAC kinds (rule B14).
func AnyPathSegment(name string, prefix bool) []string {
	if prefix {
		return content.IsPathSegmentPrefix(name)
	}
	return content.IsPathSegmentName(name)
}

// A Hook is told of one attempt to write, and how it ended. It takes the place of the
// reference's Begin, finish and After functions (rules S26 to S33): its Begin runs before the
// strategy, for every attempt; the function that Begin returns runs once, after that
// attempt, with what really happened to it, also when something panics. In a dry run it is
// told what would have happened.
type Hook interface {
	Begin(ctx context.Context, verb Verb, obj, old runtime.Object, dryRun bool) (func(context.Context, Ending), error)
}

// A Verb is what a [Hook] is told is being done.
type Verb string

// The verbs of a Hook.
const (
	Create Verb = "create"
	Update Verb = "update"
	Delete Verb = "delete"
)

// An Ending is how an attempt ended.
type Ending struct {
	Outcome Ended
	Object  metav1.Object // as stored, or as it was when it was removed; nil unless Written or Removed
}

// Ended is one of the ways an attempt ends.
type Ended uint8

const (
	Refused   Ended = iota // nothing was written: lost a race, invalid, or failed
	Written                // stored
	Unchanged              // nothing to store
	Removed                // the object is gone
	Uncertain              // the store failed: it was written, wholly, or it was not
)

// A Holder is a [Strategy] whose objects may have to stay although they are being deleted
// and no finalizer is left in their metadata (rule S70: a namespace with spec.finalizers).
type Holder interface {
	Holds(obj runtime.Object) bool
}

// A DeletePreparer is a [Strategy] that changes an object when its deletion is first asked
// for: a namespace becomes Terminating (rule B29), a definition gets a finalizer (rule C30).
// It runs before it is decided whether the object must stay, and never on an object that
// is being deleted already.
type DeletePreparer interface {
	PrepareForDelete(ctx context.Context, obj runtime.Object)
}

// An Expirer is a [Strategy] whose objects go by themselves. TTL returns how long obj is kept after
// it is written, on create and on every update that changes it: 0 means forever, and less that an
// update leaves it as long as it had (rules S77, S78, B41).
type Expirer interface {
	TTL(obj runtime.Object) time.Duration
}

// A Claimer is a [Strategy] whose objects hold what only one object may have, such as an address.
// Claim takes it for obj by putting keys through view, and deletes those of what old had and obj
// has no more; it may write what it took into obj. Old is nil for a new object, obj for one that
// is removed. What it finds wrong refuses the write like any other invalid field. Keys are put
// with the object in one commit or not at all, so nothing is ever held by an object that does
// not exist.
type Claimer interface {
	Claim(ctx context.Context, view *storage.View, obj, old runtime.Object) field.ErrorList
}

// A Graceful strategy gives its objects time to end (rules S84 to S89). Grace returns how many
// seconds obj has left once its deletion is asked for; asked is what the client wants, nil if it
// does not say. If it is not graceful the object goes at once, as without this interface.
type Graceful interface {
	Grace(obj runtime.Object, asked *int64) (seconds int64, graceful bool)
}
