// Package lint holds what is true of the whole tree, as tests that read it: which package may
// import which, what the root module may require, that every package says what it is for,
// and how long a function may be.
//
// A failure says which rule was broken, where, and why there is such a rule.
package lint
