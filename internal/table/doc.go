// Package table says how objects look as rows of a table, which is what kubectl get prints
// (rules H216 to H219, B75 to B77, C100 to C104).
//
// A [Columns] is the header and what fills it in. [Of] has those of the built-in kinds,
// [Custom] makes those that a CustomResourceDefinition asks for, and [Default] is for kinds
// that have none. All columns are always there: those for -o wide have a priority, and the
// client leaves them out.
//
// # Adding a kind
//
// A kind is one entry in the files named after the API groups: its columns in their order, each
// with the function that makes its cell of the typed object. Columns that many kinds share,
// such as name and age, have names. A cell never fails: an object that lacks what a column
// shows, even an empty one, has [none] or [unknown] there.
//
// Ages are told by a clock that is given.
package table
