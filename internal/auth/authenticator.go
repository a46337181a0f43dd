package auth

import (
	"errors"
	"net/http"
)

// An Authenticator knows who holds one kind of credential. It is safe for concurrent use,
// and does not change the request.
type Authenticator interface {
	// Authenticate returns who sent r; nil without an error if r presents no
	// credential of this kind; an error if it presents one that is not known. The error is
	// for the log: senders learn only that they are not known.
	Authenticate(r *http.Request) (User, error)
}

// A Union asks authenticators in turn (rule H195). The first that knows the sender is
// believed, whatever those before it said: a client may present a certificate for
// somebody else's server beside a good token. Whoever is known is in
// group system:authenticated (rule H199).
type Union []Authenticator

// Authenticate implements [Authenticator].
func (us Union) Authenticate(r *http.Request) (User, error) {
	var errs []error
	for _, a := range us {
		u, err := a.Authenticate(r)
		if u != nil && err == nil {
			return authenticated(u), nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}
