package pki

import "fmt"

// An Error is a file that cannot be used as it is. Nothing was changed.
type Error struct {
	File    string
	Problem string // what is wrong with it: "is damaged"
	Remedy  string // what to do about it
	Err     error  // what said so, if anything did
}

func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s %s: %v; %s", e.File, e.Problem, e.Err, e.Remedy)
	}
	return fmt.Sprintf("%s %s; %s", e.File, e.Problem, e.Remedy)
}

// Hint returns what to do; the error's text ends with it.
func (e *Error) Hint() string { return e.Remedy }

// Unwrap returns what said so.
func (e *Error) Unwrap() error { return e.Err }
