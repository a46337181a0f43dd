// Package discovery serves what the server says it serves: /api, /apis and the documents of
// each group and version (rules H15 to H30).
//
// # Two forms
//
// The legacy form has a document for the core versions, for the list of groups, for each group and for
// each version. The aggregated form has everything in two: the core group at /api, the
// named ones at /apis. Which one is sent, and in which encoding, the Accept header decides:
// [choose] is that decision.
//
// # When a document is made
//
// When it is first asked for; it is then kept until the catalogue changes. As the catalogue in place
// is taken for each request, a definition is in every document from the moment the catalogue
// has it (rule H29).
//
// # What is not there
//
// An unknown path is a Status where the group is a built-in one, and plain text elsewhere, for so
// the reference answers (rule H8): its built-in groups are routed by one library, the rest by
// another. [NotFound] is that answer, for all who serve paths below /api and /apis.
package discovery
