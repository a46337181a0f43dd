// Package rules holds the specification to its proofs.
//
// docs/spec says how the reference behaves, one rule a line: "- K25. The write succeeds only
// if …". Beside storage.md lies storage.proofs, and says of each rule what stands for it. Two
// things can:
//
//	K25 proved
//		- registry TestCreate
//	K37 decided: There is one index in place of store and cache, so nothing is suggested …
//		- storage TestOnlyACommitMayRestOnAStaleState/"an error is judged again if the object changed (K28)"
//
// A rule is proved if pawl does what it says, and the tests named would fail if it did not. It
// is decided if pawl does something else, or has no such part: then a sentence says what a
// client sees instead, and the tests named show that. A line that begins with a dash names a
// test: the folder of its package, its function and, if only a part of it is meant, the names
// of subtests as they are written in the source. Any other line that is indented goes on with
// the sentence, and one that begins with # is a comment.
//
// The first line says how far the file is: "complete", or "partial", where rules may be missing
// or open:
//
//	K38 open
//
// A test of this package reads all that and the sources, and fails if a rule is missing or
// unknown or if a test that is named is not there. That is said without running anything; the
// command [github.com/pawl-dev/pawl/internal/rules/ran] reads what go test -json says, and
// fails if a test that is named did not run, was skipped or did not pass. .ci/run runs both.
package rules
