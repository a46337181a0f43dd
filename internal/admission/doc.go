// Package admission refuses, on the way in, what depends on more than the object that is written.
//
// # Namespaces
//
// An object comes into being only in a namespace that is there and is not being deleted
// (rule B28). [NamespaceGuard] looks at the namespace through the view of the attempt, so the
// commit is tied to the namespace as it was seen: a create that races with the deletion of its
// namespace either lands before the namespace is marked, and is deleted with everything else in
// it, or is refused. Nothing is ever left behind.
//
// [ProtectNamespaces] refuses the deletion of the namespaces that a server cannot be without
// (rule B19), and [Bootstrap] makes those that every server has (rule B18).
package admission
