// Package auth says who sent a request, and what they may do.
//
// # Who
//
// An [Authenticator] looks at one kind of credential: [Certificates] at client certificates
// (rule H197), [Tokens] at bearer tokens (rule H196), [Accounts] at those of service accounts (rule H198), a [Union] at several, in turn. There
// are three answers. A user: the credential is known. No user and no error: no
// credential of that kind was presented. An error: one was presented that nobody knows, and
// that is a 401 wherever the request was going, even to a path that is open to all (rule H195).
//
// A request without credentials is [Anonymous] on the paths that say whether the server lives
// and which it is (rule H36), and a 401 on every other.
//
// # What
//
// An [Authorizer] judges [Attributes]: who wants to do what to which resource or path. Until
// there are roles to judge by, [Masters] is the whole law. [Forbidden] says no in the words
// that clients know (rule H204).
//
// # In front of a server
//
// A [Gate] does both for an http.Handler: [Gate.WithAuthentication] puts the user in the
// context, where [UserFrom] finds them, and [Gate.WithImpersonation] puts another in their place if they
// may ask for it (rule H207). What comes after never sees a credential (rule H201).
// Judging the request itself is the server's part, for only it knows what a path names.
package auth
