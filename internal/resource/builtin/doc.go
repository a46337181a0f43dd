// Package builtin declares the resources that every server has.
//
// # A kind is a row
//
// [Kinds] is the table: one [Kind] for each resource, with its names, the Go type of its
// objects from k8s.io/api, the fields that selectors know, and its rules. Rules are plain
// functions over the Go type: what is filled in, what a client may not set, what is wrong.
// What is ordinary is not said, so a kind about which nothing is particular is its names and
// its policy. To add a kind, add a row.
//
// # Defaults, and the fingerprint
//
// Defaults are filled in when a client's document is decoded and when a stored object is, so
// they show in every answer and in what is stored (rule B6). Stored JSON is sent as it is only
// while its [storage.Fingerprint] is the current one: whoever changes what the defaults of a
// kind do raises its Revision, and older JSON is decoded again before anybody sees it.
//
// # What is not here
//
// The syntax of metadata is the registry's affair, and so are names, but for saying which form
// they have (rule B14). What happens to objects of a namespace that goes is admission's.
package builtin
