package auth

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"

	"github.com/pawl-dev/pawl/internal/resource"
)

// accounts signs with a new key, and tells the time by now; void is why every grant is void.
func accounts(t *testing.T, now *time.Time, void error) *Accounts {
	t.Helper()
	a, err := NewAccounts(newAuthority(t, "x").key, func() time.Time { return *now }, func(context.Context, resource.Grant) error { return void })
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func grantAtNoon() resource.Grant {
	return resource.Grant{Namespace: "shop", Name: "bot", UID: "u1", Audiences: []string{resource.Audience, "bank"}, From: noon, Until: noon.Add(time.Hour)}
}

func issue(t *testing.T, a *Accounts, g resource.Grant) string {
	t.Helper()
	token, err := a.Issue(g)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func TestAccountsAreKnownByTheirTokens(t *testing.T) { // rule H198
	for _, tt := range []struct {
		name     string
		at       time.Duration // after noon
		audience string
		void     error
		err      string
	}{
		{"a token that is good", 0, resource.Audience, nil, ""},
		{"shortly before it ends", time.Hour - time.Second, resource.Audience, nil, ""},
		{"when it ends", time.Hour, resource.Audience, nil, "has expired"},
		{"before it begins", -time.Second, resource.Audience, nil, "not good yet"},
		{"another audience that it is for", 0, "bank", nil, ""},
		{"an audience that it is not for", 0, "thief", nil, `is for ["https://kubernetes.default.svc" "bank"] and not for "thief"`},
		{"an account that is gone", 0, resource.Audience, errors.New("bot is gone"), "the token of system:serviceaccount:shop:bot is void: bot is gone"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			now := noon
			a := accounts(t, &now, tt.void)
			r := request("GET", "/", "Authorization", "Bearer "+issue(t, a, grantAtNoon()))
			now = noon.Add(tt.at)
			u, err := a.Authenticate(r.WithContext(ForAudience(t.Context(), tt.audience)))
			want := "system:serviceaccount:shop:bot"
			if tt.err != "" {
				want = ""
			}
			expectUser(t, u, err, want, []string{"system:serviceaccounts", "system:serviceaccounts:shop"}, tt.err)
			if u != nil && u.GetUID() != "u1" {
				t.Errorf("uid %q", u.GetUID())
			}
		})
	}
}

func TestATokenSaysWhatItIsBoundTo(t *testing.T) {
	for _, kind := range []string{"Pod", "Secret", "Node"} {
		t.Run(kind, func(t *testing.T) {
			now := noon
			var asked resource.Grant
			a := accounts(t, &now, nil)
			a.void = func(_ context.Context, g resource.Grant) error { asked = g; return nil }
			g := grantAtNoon()
			g.Bound = &authenticationv1.BoundObjectReference{Kind: kind, APIVersion: "v1", Name: "thing", UID: "u2"}
			u, err := a.Authenticate(request("GET", "/", "Authorization", "Bearer "+issue(t, a, g)))
			if err != nil {
				t.Fatal(err)
			}
			if asked.Bound == nil || *asked.Bound != *g.Bound || asked.Name != g.Name || asked.UID != g.UID {
				t.Errorf("asked about %+v, want %+v", asked, g)
			}
			if pods := u.GetExtra()[serviceaccount.PodNameKey]; slices.Equal(pods, []string{"thing"}) != (kind == "Pod") {
				t.Errorf("the pod is %v", pods)
			}
		})
	}
}

// TestATokenThatWasTouchedIsNotBelieved changes each character of a token.
func TestATokenThatWasTouchedIsNotBelieved(t *testing.T) {
	now := noon
	a := accounts(t, &now, nil)
	token := issue(t, a, grantAtNoon())
	for i := range token {
		other := byte('A')
		if token[i] == other {
			other = 'B'
		}
		if u, _ := a.Authenticate(request("GET", "/", "Authorization", "Bearer "+token[:i]+string(other)+token[i+1:])); u != nil {
			t.Fatalf("character %d made no difference", i)
		}
	}
}

func TestTokensOfOthersAreNotBelieved(t *testing.T) {
	now := noon
	a, b := accounts(t, &now, nil), accounts(t, &now, nil)
	ours := issue(t, a, grantAtNoon())
	_, text, _ := strings.Cut(ours, ".")
	for _, tt := range []struct{ name, token, err string }{
		{"another server's", issue(t, b, grantAtNoon()), "signed by somebody else"},
		{"one that says it needs no signature", encode([]byte(`{"alg":"none"}`)) + "." + text, "signed by somebody else"},
		{"one without a signature", ours[:strings.LastIndex(ours, ".")+1], "its signature is none"},
		{"one that is no JSON", encode([]byte("x")) + ".x.y", "invalid character"},
		{"one that is no base64", "!.x.y", "illegal base64"},
		{"something else altogether is no credential of this kind", "s3cret", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			u, err := a.Authenticate(request("GET", "/", "Authorization", "Bearer "+tt.token))
			expectUser(t, u, err, "", nil, tt.err)
		})
	}
}

func TestTheTokensOfAServerAreForNobodyElse(t *testing.T) {
	r := request("GET", "/", "Authorization", "Bearer s3cret")
	u, err := tokens(t, Token{"s3cret", somebody("ann")}).Authenticate(r.WithContext(ForAudience(t.Context(), "bank")))
	expectUser(t, u, err, "", nil, "for nobody else")
}
