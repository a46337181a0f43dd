// Package crd makes resources of CustomResourceDefinitions.
//
// # Definitions
//
// A CustomResourceDefinition is itself a resource with a Go type: [DefinitionForm],
// [DefinitionCodec], [Strategy] and [StatusStrategy] serve it. What a client may write there
// is decided when it is written, by the library that the reference uses, so that
// everything later may rely on a stored definition: its schema is structural, its
// defaults fit, its rules compile.
//
// # Names
//
// Definitions of one group share plurals, singulars, short names, kinds and list kinds.
// [Accept] says which of its names a definition gets, and [Establish] that it is served; both
// are pure, and tested as tables. A definition is served once its names are accepted, under
// the accepted names (rules C23, C27).
//
// # Kinds
//
// [Compile] turns one version of a definition into a [Kind]: how its objects are
// read, checked, stored and sent. Nothing is compiled before it is first needed, for a
// server with a thousand definitions must not compile them to start: the structural schema is
// made when the first object is read, the validator and the rules when the first is written, the
// OpenAPI document when a client asks.
//
// Objects are *unstructured.Unstructured whose numbers are int64 or float64. They are stored in
// the storage version and read in any; the version stored fills in defaults, then only
// apiVersion changes, and the version read prunes (rules C81 to C84).
//
// # In step
//
// A [Manager] follows the stored definitions, gives them their status, and keeps the catalogue
// equal to them. Whoever wrote a definition waits with [Manager.WaitFor] until the catalogue
// holds the outcome, so that a definition is usable the moment the call returns.
package crd
