package storage

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"
)

// latestPage in place of a revision in a continue token means: go on at the newest state
// (rule K70). Every other negative number means the same to whoever reads it (rule K52).
const latestPage = -1

// continueVersion marks the one form of continue tokens there is (rule K65).
const continueVersion = "meta.k8s.io/v1"

type continueToken struct {
	Version  string `json:"v"`
	Revision int64  `json:"rv"`
	Start    string `json:"start"`
}

// encodeContinue makes a token that goes on just after last, a key relative to the list's
// prefix, at a revision or at the newest state.
func encodeContinue(last string, rev int64) string {
	return encodeToken(last+"\x00", rev)
}

func encodeToken(start string, rev int64) string {
	data, _ := json.Marshal(continueToken{continueVersion, rev, start}) // strings and numbers always marshal
	return base64.RawURLEncoding.EncodeToString(data)
}

// decodeContinue reads a token: the relative key to begin at, and the revision or
// latestPage. Everything that a client may have made up gets one of the reference's texts
// (rules K66 to K68).
func decodeContinue(token string) (start string, rev int64, err error) {
	data, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return "", 0, fmt.Errorf("continue key is not valid: %v", err)
	}
	var c continueToken
	if err := json.Unmarshal(data, &c); err != nil {
		return "", 0, fmt.Errorf("continue key is not valid: %v", err)
	}
	switch {
	case c.Version != continueVersion:
		return "", 0, fmt.Errorf("continue key is not valid: server does not recognize this encoded version %v", c.Version)
	case c.Revision == 0:
		return "", 0, fmt.Errorf("continue key is not valid: incorrect encoded start resourceVersion (version %s)", continueVersion)
	case c.Start == "":
		return "", 0, fmt.Errorf("continue key is not valid: encoded start key empty (version %s)", continueVersion)
	}
	rooted := c.Start
	if !strings.HasPrefix(rooted, "/") {
		rooted = "/" + rooted
	}
	if path.Clean(rooted) != rooted {
		return "", 0, fmt.Errorf("continue key is not valid: %s", c.Start)
	}
	return rooted[1:], max(c.Revision, latestPage), nil
}

// The texts of a token whose revision is gone (rule K69).
const (
	continueExpired = "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list."
	listExpired     = "The resourceVersion for the provided list is too old."
)

// tooLate turns the error of a read that came after its revision was forgotten into the one that
// a list from f gives; any other error stays as it is. A page that cannot be had at its revision
// can be had at the newest (rule K69).
func tooLate(err error, f From) error {
	var e *Error
	if !errors.As(err, &e) || e.Kind != Expired {
		return err
	}
	e.Listing = true
	e.Err = errors.New(listExpired) //lint:ignore ST1005 the reference's words
	if c, ok := f.(ContinueAt); ok {
		e.Err = errors.New(continueExpired) //lint:ignore ST1005 the reference's words
		e.Continue = encodeToken(c.Start, latestPage)
	}
	return e
}
