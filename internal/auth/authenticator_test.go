package auth

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
)

func TestCertificates(t *testing.T) {
	ours, theirs := newAuthority(t, "ours"), newAuthority(t, "theirs")
	middle := ours.sign(t, &x509.Certificate{Subject: pkix.Name{CommonName: "middle"}, IsCA: true, KeyUsage: x509.KeyUsageCertSign})
	forServers := &x509.Certificate{Subject: pkix.Name{CommonName: "ann"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	expired := &x509.Certificate{Subject: pkix.Name{CommonName: "ann"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		NotBefore: noon.Add(-2 * time.Hour), NotAfter: noon.Add(-time.Hour)}
	for _, tt := range []struct {
		name   string
		certs  []*x509.Certificate
		user   string
		groups []string
		err    string
	}{
		{"no certificate is no credential", nil, "", nil, ""},
		{"the name and organizations of one of ours are user and groups (rule H197)", []*x509.Certificate{ours.client(t, "ann", "crew", "cooks")}, "ann", []string{"crew", "cooks"}, ""},
		{"one signed through another that comes with it is ours", []*x509.Certificate{middle.client(t, "ann"), middle.cert}, "ann", nil, ""},
		{"one signed through another that does not come with it is not known", []*x509.Certificate{middle.client(t, "ann")}, "", nil, "unknown authority"},
		{"one of another authority is not known", []*x509.Certificate{theirs.client(t, "ann", "system:masters")}, "", nil, "unknown authority"},
		{"one for servers is not for clients", []*x509.Certificate{ours.sign(t, forServers).cert}, "", nil, "incompatible key usage"},
		{"one that has expired is not known", []*x509.Certificate{ours.sign(t, expired).cert}, "", nil, "expired"},
		{"one that names nobody is not known", []*x509.Certificate{ours.client(t, "")}, "", nil, "names nobody"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			known := ours.certificates()
			for range 2 { // the second time from memory
				u, err := known.Authenticate(withCertificates(request("GET", "/"), tt.certs...))
				expectUser(t, u, err, tt.user, tt.groups, tt.err)
				if u != nil && !strings.HasPrefix(u.GetExtra()[user.CredentialIDKey][0], "X509SHA256=") {
					t.Errorf("it does not say by which certificate: %v", u.GetExtra())
				}
			}
		})
	}
	if u, err := ours.certificates().Authenticate(request("GET", "/")); u != nil || err != nil {
		t.Errorf("a request without TLS: got %v, %v", u, err)
	}
}

func expectUser(t *testing.T, u User, err error, name string, groups []string, errText string) {
	t.Helper()
	switch {
	case (err != nil) != (errText != "") || err != nil && !strings.Contains(err.Error(), errText):
		t.Errorf("got error %v, want %q", err, errText)
	case (u != nil) != (name != ""):
		t.Errorf("got user %v, want %q", u, name)
	case u != nil && (u.GetName() != name || !slices.Equal(u.GetGroups(), groups)):
		t.Errorf("got user %v, want %q %q", u, name, groups)
	}
}

func TestACertificateIsRememberedOnlyWhileItIsGood(t *testing.T) {
	ours, theirs := newAuthority(t, "ours"), newAuthority(t, "theirs")
	pool, now := ours.pool(), noon
	known := NewCertificates(func() *x509.CertPool { return pool }, func() time.Time { return now })
	r := withCertificates(request("GET", "/"), ours.client(t, "ann"))
	ask := func(want bool, when string) {
		t.Helper()
		if u, err := known.Authenticate(r); (u != nil) != want {
			t.Errorf("%s: got %v, %v", when, u, err)
		}
	}
	ask(true, "at noon")
	now = noon.Add(13 * time.Hour)
	ask(false, "after it expired")
	now = noon.Add(-13 * time.Hour)
	ask(false, "before it was valid")
	now = noon
	ask(true, "at noon again")
	pool = theirs.pool()
	ask(false, "after the authority changed")
}

func TestRememberedCertificatesAreBounded(t *testing.T) {
	ours := newAuthority(t, "ours")
	known := ours.certificates()
	for i := range maxRemembered {
		known.verified[[32]byte{byte(i), byte(i >> 8)}] = verified{}
	}
	if u, err := known.Authenticate(withCertificates(request("GET", "/"), ours.client(t, "ann"))); u == nil {
		t.Fatal(err)
	}
	if n := len(known.verified); n > maxRemembered {
		t.Errorf("%d are remembered", n)
	}
}

func TestTokens(t *testing.T) {
	known := tokens(t, Token{"s3cret", somebody("ann", "crew")}, Token{"other", somebody("bob")}, Token{"Ümlaut", somebody("cid")})
	for _, tt := range []struct{ name, header, user, err string }{
		{"no header is no credential", "", "", ""},
		{"a token is known by its holder", "Bearer s3cret", "ann", ""},
		{"the last token is found as well", "Bearer Ümlaut", "cid", ""},
		{"the scheme has no case", "bEaReR other", "bob", ""},
		{"white space around does not count", "  Bearer other  ", "bob", ""},
		{"what follows the token does not count", "Bearer other again", "bob", ""},
		{"a token that nobody has is not known", "Bearer s3cre", "", "not known"},
		{"a token that only begins like one is not known", "Bearer s3cret2", "", "not known"},
		{"a token has case", "Bearer S3CRET", "", "not known"},
		{"a scheme alone is no credential", "Bearer", "", ""},
		{"an empty token is no credential", "Bearer ", "", ""},
		{"a token after two spaces is no credential", "Bearer  s3cret", "", ""},
		{"another scheme is no credential", "Basic s3cret", "", ""},
		{"a token without a scheme is no credential", "s3cret", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := request("GET", "/")
			if tt.header != "" {
				r.Header["Authorization"] = []string{tt.header}
			}
			u, err := known.Authenticate(r)
			var groups []string
			if tt.user == "ann" {
				groups = []string{"crew"}
			}
			expectUser(t, u, err, tt.user, groups, tt.err)
			if err != nil && strings.Contains(err.Error(), "s3cre") {
				t.Error("the log would show the token")
			}
		})
	}
	if _, err := tokens(t).Authenticate(request("GET", "/", "Authorization", "Bearer x")); err == nil {
		t.Error("where there are no tokens every token is known")
	}
}

func TestTokensThatWouldLockSomebodyOutAreRefused(t *testing.T) {
	if _, err := NewTokens(Token{"", somebody("ann")}); err == nil || err.Error() != `the token of user "ann" is empty` {
		t.Errorf("got error %v", err)
	}
	if _, err := NewTokens(Token{"x", somebody("ann")}, Token{"x", somebody("bob")}); err == nil || err.Error() != `users "ann" and "bob" have the same token` {
		t.Errorf("got error %v", err)
	}
}

func TestUnion(t *testing.T) {
	ours, theirs := newAuthority(t, "ours"), newAuthority(t, "theirs")
	known := Union{ours.certificates(), tokens(t, Token{"s3cret", somebody("bob", "crew")}, Token{"in", somebody("cid", "system:authenticated")})}
	const good, bad = "Bearer s3cret", "Bearer none"
	for _, tt := range []struct {
		name   string
		cert   *x509.Certificate
		header string
		user   string
		groups []string
		err    string
	}{
		{"no credential at all", nil, "", "", nil, ""},
		{"whoever is known is authenticated (rule H199)", nil, good, "bob", []string{"crew", "system:authenticated"}, ""},
		{"nobody is authenticated twice", nil, "Bearer in", "cid", []string{"system:authenticated"}, ""},
		{"the certificate is asked first", ours.client(t, "ann"), good, "ann", []string{"system:authenticated"}, ""},
		{"a good certificate excuses a bad token", ours.client(t, "ann"), bad, "ann", []string{"system:authenticated"}, ""},
		{"a good token excuses a bad certificate", theirs.client(t, "ann"), good, "bob", []string{"crew", "system:authenticated"}, ""},
		{"a bad certificate alone is not known", theirs.client(t, "ann"), "", "", nil, "unknown authority"},
		{"a bad token alone is not known", nil, bad, "", nil, "not known"},
		{"two bad ones are not known", theirs.client(t, "ann"), bad, "", nil, "not known"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := request("GET", "/")
			if tt.header != "" {
				r.Header.Set("Authorization", tt.header)
			}
			if tt.cert != nil {
				withCertificates(r, tt.cert)
			}
			u, err := known.Authenticate(r)
			expectUser(t, u, err, tt.user, tt.groups, tt.err)
		})
	}
}

func TestReadTokenFile(t *testing.T) {
	for _, tt := range []struct {
		name, content string
		want          []Token
		err           string
	}{
		{"an empty file names nobody", "", nil, ""},
		{"a line names token, user and uid", "t1,ann,u1\n", []Token{{"t1", &user.DefaultInfo{Name: "ann", UID: "u1"}}}, ""},
		{"a uid may be empty", "t1,ann,\n", []Token{{"t1", &user.DefaultInfo{Name: "ann"}}}, ""},
		{"groups are one column, in quotes (rule H196)", `t1,ann,u1,"crew,cooks"`, []Token{{"t1", &user.DefaultInfo{Name: "ann", UID: "u1", Groups: []string{"crew", "cooks"}}}}, ""},
		{"empty groups are none", `t1,ann,u1,", crew,"`, []Token{{"t1", &user.DefaultInfo{Name: "ann", UID: "u1", Groups: []string{"crew"}}}}, ""},
		{"empty lines are passed over", "\nt1,ann,u1\n\nt2,bob,u2\n", []Token{{"t1", &user.DefaultInfo{Name: "ann", UID: "u1"}}, {"t2", &user.DefaultInfo{Name: "bob", UID: "u2"}}}, ""},
		{"two columns are too few", "t1,ann,u1\nt2,bob\n", nil, `line 2 has 2 columns; each line is token,user,uid,"group1,group2"`},
		{"groups without quotes are too many columns", "t1,ann,u1,crew,cooks\n", nil, "line 1 has 5 columns"},
		{"an empty token", ",ann,u1\n", nil, "line 1 has no token"},
		{"a token with white space", "t 1,ann,u1\n", nil, "line 1 has a token with white space in it"},
		{"nobody", "t1,,u1\n", nil, "line 1 names no user"},
		{"a token twice", "t1,ann,u1\n\nt1,bob,u2\n", nil, "line 3 has the same token as line 1"},
		{"a quote that does not end", "t1,\"ann,u1\n", nil, `extraneous or missing " in quoted-field`},
		{"a file that is something else", strings.Repeat("x", maxTokenFileSizeBytes+1), nil, "is it one?"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "tokens.csv")
			if err := os.WriteFile(file, []byte(tt.content), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := ReadTokenFile(file)
			if (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("got error %v, want %q", err, tt.err)
			}
			if err != nil && !strings.Contains(err.Error(), file) {
				t.Errorf("it does not say which file: %v", err)
			}
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
	if _, err := ReadTokenFile(filepath.Join(t.TempDir(), "none")); !os.IsNotExist(err) {
		t.Errorf("a file that is not there: got error %v", err)
	}
}

func FuzzParseTokens(f *testing.F) {
	for _, s := range []string{"t1,ann,u1", "t1,ann,u1,\"a,b\"\n", "\"t1", ",,,", "t1,ann\n", "a,b,c\na,b,c", "\xff,\x00,c"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		ts, err := parseTokens(data)
		if err != nil {
			return
		}
		if _, err := NewTokens(ts...); err != nil {
			t.Errorf("what was read is of no use: %v", err)
		}
	})
}

func BenchmarkAuthenticate(b *testing.B) {
	ours := newAuthority(b, "ours")
	var many []Token
	for i := range 100 {
		many = append(many, Token{fmt.Sprint("token-", i), somebody("ann")})
	}
	for name, tt := range map[string]struct {
		a Authenticator
		r *http.Request
	}{
		"certificate":       {ours.certificates(), withCertificates(request("GET", "/"), ours.client(b, "ann"))},
		"one of 100 tokens": {tokens(b, many...), request("GET", "/", "Authorization", "Bearer token-50")},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if u, err := tt.a.Authenticate(tt.r); u == nil {
					b.Fatal(err)
				}
			}
		})
	}
}
