// Package patch applies the patches that clients send to the JSON of an object.
//
// # What comes in, what goes out
//
// [Apply] takes the media type of the patch, the object as its version's JSON, and the
// document that the client sent. It gives back the patched JSON, which nobody has decoded or
// checked yet, and what strict field validation would say about the document itself. Whoever
// decodes the result adds what was found there, and answers with [Invalid] if the two together
// are a reason to refuse, or if the result does not decode at all (rules H68, H133).
//
// Apply has no memory: it may run again for every attempt of an update that lost a race
// (rule H131), and none of its arguments is changed. [Check] is the part that needs no object,
// so that a hopeless document is refused before anything is read.
//
// Server-side apply is not here: it needs to know who owns what.
//
// # Whose fault
//
// Errors are API statuses. A document that is no patch is 400; one that does not fit the
// object (a failed test, a missing path) is 422; one that asks for too much is 413. Nothing that
// a client can send is a fault of the server: where the libraries underneath panic on an odd
// document, that document is answered as one that does not fit.
//
// # One process-wide value
//
// The size that the copies of one JSON patch may add is a variable of the JSON patch library
// (rule H134). It is set once, before main, and only if the program has not set it; a program
// that also runs the reference's packages sees the value that those would have set.
package patch
