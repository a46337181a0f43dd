package auth

import (
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/pawl-dev/pawl/internal/resource"
)

// Accounts issues the tokens of service accounts, and knows their holders (rule H198). A
// token is a JWT, signed with ES256 by a key that only this server has:
//
//	base64(header) . base64(claims) . base64(signature of both)
//
// It says whose it is; nothing of it is stored. So whether the account is still there has to be
// asked each time.
type Accounts struct {
	key  *ecdsa.PrivateKey
	id   string
	now  func() time.Time
	void func(context.Context, resource.Grant) error
}

// NewAccounts returns the accounts of a server that signs with key. Void says why a grant is not
// good any more; nil if it is.
func NewAccounts(key *ecdsa.PrivateKey, now func() time.Time, void func(context.Context, resource.Grant) error) (*Accounts, error) {
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(public)
	return &Accounts{key: key, id: encode(sum[:]), now: now, void: void}, nil
}

// A tokenHeader is the first part of a token.
type tokenHeader struct {
	Algorithm string `json:"alg"`
	KeyID     string `json:"kid"`
}

const algorithm = "ES256"

// claims is the second part.
type claims struct {
	Audiences []string `json:"aud"`
	Expires   int64    `json:"exp"`
	IssuedAt  int64    `json:"iat"`
	Issuer    string   `json:"iss"`
	ID        string   `json:"jti"`
	NotBefore int64    `json:"nbf"`
	Subject   string   `json:"sub"`
	Place     place    `json:"kubernetes.io"`
}

// A place says which objects a token is about.
type place struct {
	Namespace string `json:"namespace"`
	Account   named  `json:"serviceaccount"`
	Node      *named `json:"node,omitempty"`
	Pod       *named `json:"pod,omitempty"`
	Secret    *named `json:"secret,omitempty"`
}

type named struct {
	Name string    `json:"name"`
	UID  types.UID `json:"uid"`
}

// bound returns where a reference to an object of that kind goes.
func (p *place) bound(kind string) **named {
	switch kind {
	case "Node":
		return &p.Node
	case "Pod":
		return &p.Pod
	}
	return &p.Secret
}

// grant is what the claims say.
func (c *claims) grant() resource.Grant {
	g := resource.Grant{
		Namespace: c.Place.Namespace, Name: c.Place.Account.Name, UID: c.Place.Account.UID,
		Audiences: c.Audiences, From: time.Unix(c.NotBefore, 0), Until: time.Unix(c.Expires, 0),
	}
	for _, kind := range []string{"Node", "Pod", "Secret"} {
		if to := *c.Place.bound(kind); to != nil {
			g.Bound = &authenticationv1.BoundObjectReference{Kind: kind, APIVersion: "v1", Name: to.Name, UID: to.UID}
		}
	}
	return g
}

// Issue returns a token.
func (a *Accounts) Issue(g resource.Grant) (string, error) {
	c := claims{
		Audiences: g.Audiences, Expires: g.Until.Unix(), IssuedAt: g.From.Unix(), NotBefore: g.From.Unix(),
		Issuer: resource.Audience, ID: rand.Text(), Subject: serviceaccount.MakeUsername(g.Namespace, g.Name),
		Place: place{Namespace: g.Namespace, Account: named{g.Name, g.UID}},
	}
	if b := g.Bound; b != nil {
		*c.Place.bound(b.Kind) = &named{b.Name, b.UID}
	}
	header, err := json.Marshal(tokenHeader{algorithm, a.id})
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(c)
	if err != nil {
		return "", err
	}
	signed := encode(header) + "." + encode(text)
	sum := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, a.key, sum[:])
	if err != nil {
		return "", err
	}
	signature := make([]byte, 2*halfSizeBytes)
	r.FillBytes(signature[:halfSizeBytes])
	s.FillBytes(signature[halfSizeBytes:])
	return signed + "." + encode(signature), nil
}

// halfSizeBytes is the size of each of the two numbers that are a signature on P-256.
const halfSizeBytes = 32

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// Authenticate implements [Authenticator]. A token that this server has not signed is another's
// to know.
func (a *Accounts) Authenticate(r *http.Request) (User, error) {
	token, ok := bearer(r.Header.Get("Authorization"))
	if !ok || strings.Count(token, ".") != 2 {
		return nil, nil
	}
	c, err := a.open(token)
	if err != nil {
		return nil, fmt.Errorf("the token of a service account: %w", err)
	}
	switch now, audience := a.now().Unix(), AudienceFrom(r.Context()); {
	case now < c.NotBefore:
		return nil, errors.New("the token of a service account is not good yet")
	case now >= c.Expires:
		return nil, errors.New("the token of a service account has expired")
	case !slices.Contains(c.Audiences, audience):
		return nil, fmt.Errorf("the token of a service account is for %q and not for %q", c.Audiences, audience)
	}
	if err := a.void(r.Context(), c.grant()); err != nil {
		return nil, fmt.Errorf("the token of %s is void: %w", c.Subject, err)
	}
	return c.user(), nil
}

// open returns what a token says if this server has signed it.
func (a *Accounts) open(token string) (*claims, error) {
	signed, signature, _ := cutLast(token, ".")
	header, text, _ := strings.Cut(signed, ".")
	var h tokenHeader
	if err := decode(header, &h); err != nil {
		return nil, err
	}
	if h != (tokenHeader{algorithm, a.id}) {
		return nil, errors.New("it is signed by somebody else")
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(signature)
	if err != nil || len(raw) != 2*halfSizeBytes {
		return nil, errors.New("its signature is none")
	}
	sum := sha256.Sum256([]byte(signed))
	r, s := new(big.Int).SetBytes(raw[:halfSizeBytes]), new(big.Int).SetBytes(raw[halfSizeBytes:])
	if !ecdsa.Verify(&a.key.PublicKey, sum[:], r, s) {
		return nil, errors.New("its signature does not fit what it says")
	}
	c := &claims{}
	return c, decode(text, c)
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

func decode(part string, into any) error {
	text, err := base64.RawURLEncoding.Strict().DecodeString(part)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// user is who holds the token.
func (c *claims) user() User {
	u := &user.DefaultInfo{
		Name: c.Subject, UID: string(c.Place.Account.UID), Groups: serviceaccount.MakeGroupNames(c.Place.Namespace),
		Extra: map[string][]string{user.CredentialIDKey: {"JTI=" + c.ID}},
	}
	if p := c.Place.Pod; p != nil {
		u.Extra[serviceaccount.PodNameKey], u.Extra[serviceaccount.PodUIDKey] = []string{p.Name}, []string{string(p.UID)}
	}
	if n := c.Place.Node; n != nil {
		u.Extra[serviceaccount.NodeNameKey], u.Extra[serviceaccount.NodeUIDKey] = []string{n.Name}, []string{string(n.UID)}
	}
	return u
}

type audienceKey struct{}

// ForAudience returns a context in which tokens are judged as the audience would.
func ForAudience(ctx context.Context, audience string) context.Context {
	return context.WithValue(ctx, audienceKey{}, audience)
}

// AudienceFrom returns for whom a token has to be: this server, if nobody said.
func AudienceFrom(ctx context.Context) string {
	if audience, ok := ctx.Value(audienceKey{}).(string); ok {
		return audience
	}
	return resource.Audience
}
