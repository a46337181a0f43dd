// Package certain says of objects of custom resources what is certain about them, quickly, so that
// the library's slow ways need to be gone only when it is not.
//
// # What it promises
//
// A [Schema] judges values as the library's validator does: [Valid] means that the
// library finds nothing wrong, [Invalid] that it finds something, [Unsure] nothing at all. It never
// says what is wrong: the words of a refusal are the library's (rule C58). A valid object needs
// no ratcheting (rule C64), for an update is only forgiven what it would be blamed for.
//
// A [Structure] says of an object that pruning, the dropping of nulls and defaulting would not
// change it ([Structure.Order]), and that no list repeats what it must not ([Structure.Distinct]).
// Metadata is not looked at here.
//
// # What it costs
//
// A schema is compiled once; a judgement walks the object once and makes no garbage. What
// is rare in schemas (dependencies, patterns for names, embedded resources) is Unsure.
package certain
