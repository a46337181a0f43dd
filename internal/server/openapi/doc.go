// Package openapi serves the OpenAPI documents: one of version 3 for each group version, with
// an index over them, and one of version 2 for everything.
//
// # Where a document comes from
//
// What the built-in resources look like is data, taken from the Kubernetes source tree (see
// data/README.md, and gen for how it is made) and filtered by what the catalogue serves. What
// custom resources look like, each version says itself ([resource.Version.OpenAPI]). Both are merged by group
// version. OpenAPI v2 is made of all these, see [document.Document.Swagger].
//
// # When it is made
//
// When a client first asks for it, and never on the way to being ready. It is kept for as long as
// the resources it is made of are in the catalogue: one definition that changes costs
// its own group version and the index, not the thousand others. The index names the hash of
// every document, so the first reading of it makes them all.
//
// One definition that cannot be published is left out and logged; the others of its group
// version are served (rule C110).
package openapi

//go:generate go run ./gen
