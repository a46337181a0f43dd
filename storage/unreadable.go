package storage

// unreadableMax is how many objects that cannot be read one error names (rule K62). Looking for
// more of them would only delay the answer.
const unreadableMax = 100

// unreadable gathers the objects of a list that cannot be read, so that whoever has to see to
// them learns of all at once.
type unreadable []*Error

// add takes in the error of an object, and says whether the list goes on: only after an object
// that cannot be read, and only until there are enough.
func (u *unreadable) add(err error) bool {
	e, ok := err.(*Error)
	if !ok || e.Kind != Corrupt {
		return false
	}
	*u = append(*u, e)
	return len(*u) < unreadableMax
}

// error is what a list ends with, nil if all could be read: one error about all of them. Abort is
// what ended the list before its end, if anything did; alone it is the error (rule K63).
func (u unreadable) error(abort error) error {
	switch {
	case len(u) == 0:
		return abort
	case IsKind(abort, Corrupt):
		abort = nil
	}
	e := *u[0]
	e.Listing, e.Unreadable, e.Aborted = true, u, abort
	return &e
}

// Cut reports whether e names as many objects as one error may, so that there may be more.
func (e *Error) Cut() bool { return len(e.Unreadable) >= unreadableMax }

// Unreadable returns an error of kind [Corrupt] about the items that cannot be read, nil if all
// can. A list by itself reads only what its selector has to look at; whoever sends a page asks
// this first, since an answer that breaks off must not look whole.
func (p *Page) Unreadable() error {
	var u unreadable
	for _, v := range p.Items {
		if _, err := v.document(); err != nil && !u.add(err) {
			return u.error(err)
		}
	}
	return u.error(nil)
}
