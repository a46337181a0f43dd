package auth

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/pawl-dev/pawl/internal/resource"
)

// maxTokenFileSizeBytes bounds a token file: some ten thousand users.
const maxTokenFileSizeBytes = 1 << 20

// A Token is a bearer token and who holds it.
type Token struct {
	Value string
	User  User
}

// Tokens knows the holders of bearer tokens (rule H196).
//
// A token is found by comparing its digest with that of every token there is, each in
// constant time and none left out, so that how long it takes tells nothing about how much was
// right. That takes time in proportion to the tokens, which is why there may
// be thousands but not millions.
type Tokens struct {
	digests [][sha256.Size]byte
	users   []User
}

// NewTokens returns an authenticator for those tokens. An empty token, and one that
// two hold, is an error.
func NewTokens(tokens ...Token) (*Tokens, error) {
	ts := &Tokens{}
	seen := map[[sha256.Size]byte]User{}
	for _, t := range tokens {
		if t.Value == "" {
			return nil, fmt.Errorf("the token of user %q is empty", t.User.GetName())
		}
		digest := sha256.Sum256([]byte(t.Value))
		if other := seen[digest]; other != nil {
			return nil, fmt.Errorf("users %q and %q have the same token", other.GetName(), t.User.GetName())
		}
		seen[digest] = t.User
		ts.digests = append(ts.digests, digest)
		ts.users = append(ts.users, t.User)
	}
	return ts, nil
}

// Authenticate implements [Authenticator].
func (ts *Tokens) Authenticate(r *http.Request) (User, error) {
	token, ok := bearer(r.Header.Get("Authorization"))
	if !ok {
		return nil, nil
	}
	if AudienceFrom(r.Context()) != resource.Audience {
		return nil, errors.New("the bearer tokens of this server are for nobody else")
	}
	if u := ts.find(token); u != nil {
		return u, nil
	}
	return nil, errors.New("the bearer token is not known")
}

// find returns who holds the token, nil if nobody does.
func (ts *Tokens) find(token string) User {
	digest := sha256.Sum256([]byte(token))
	found := -1
	for i := range ts.digests {
		same := subtle.ConstantTimeCompare(digest[:], ts.digests[i][:])
		found = subtle.ConstantTimeSelect(same, i, found)
	}
	if found < 0 {
		return nil
	}
	return ts.users[found]
}

// bearer returns the token of an Authorization header. What is no bearer token is not our
// kind of credential, and neither is one with a second space before it: the
// reference takes both as no credential at all.
func bearer(header string) (token string, ok bool) {
	scheme, rest, _ := strings.Cut(strings.TrimSpace(header), " ")
	token, _, _ = strings.Cut(rest, " ")
	return token, token != "" && strings.EqualFold(scheme, "bearer")
}

// ReadTokenFile reads the CSV lines of a token file: token, user, uid, and if need be
// "group1,group2" (rule H196). The file is read once, at start: a server is restarted to take up another.
// What the reference passes over with a warning (an empty token, a token twice) is
// an error here, because it leaves somebody locked out.
func ReadTokenFile(file string) ([]Token, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxTokenFileSizeBytes+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxTokenFileSizeBytes {
		return nil, fmt.Errorf("token file %s is larger than %d bytes: is it one?", file, maxTokenFileSizeBytes)
	}
	tokens, err := parseTokens(data)
	if err != nil {
		return nil, fmt.Errorf(`token file %s: %w; each line is token,user,uid,"group1,group2"`, file, err)
	}
	return tokens, nil
}

func parseTokens(data []byte) ([]Token, error) {
	var tokens []Token
	lines := csv.NewReader(bytes.NewReader(data))
	lines.FieldsPerRecord = -1
	seen := map[string]int{}
	for {
		record, err := lines.Read()
		if err == io.EOF {
			return tokens, nil
		}
		if err != nil {
			return nil, err // names the line
		}
		line, _ := lines.FieldPos(0)
		t, err := parseToken(record)
		if err != nil {
			return nil, fmt.Errorf("line %d %w", line, err)
		}
		if before, twice := seen[t.Value]; twice {
			return nil, fmt.Errorf("line %d has the same token as line %d", line, before)
		}
		seen[t.Value] = line
		tokens = append(tokens, t)
	}
}

// parseToken never puts what it refuses in its error, as it may be a token.
func parseToken(record []string) (Token, error) {
	switch {
	case len(record) < 3 || len(record) > 4:
		return Token{}, fmt.Errorf("has %d columns", len(record))
	case record[0] == "":
		return Token{}, errors.New("has no token")
	case strings.ContainsAny(record[0], " \t\n\r"):
		return Token{}, errors.New("has a token with white space in it, which no header can carry")
	case record[1] == "":
		return Token{}, errors.New("names no user")
	}
	u := &user.DefaultInfo{Name: record[1], UID: record[2]}
	if len(record) == 4 {
		for g := range strings.SplitSeq(record[3], ",") {
			if g = strings.TrimSpace(g); g != "" {
				u.Groups = append(u.Groups, g)
			}
		}
	}
	return Token{Value: record[0], User: u}, nil
}
