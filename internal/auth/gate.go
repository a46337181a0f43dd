package auth

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
)

// A Gate lets requests in to those behind it.
type Gate struct {
	Authenticator Authenticator
	Authorizer    Authorizer // who may impersonate

	// Fail answers a request that is not let in. Nil means in JSON.
	Fail func(http.ResponseWriter, *http.Request, *apierrors.StatusError)

	// Logger hears why credentials were refused. Nil means silence.
	Logger *slog.Logger
}

// WithAuthentication finds out who sent a request and puts them in the context for next. It
// answers 401 to those who present a credential that nobody knows (rule H195), and to those who
// present none unless the path is open (rule H36). Credentials go no further (rule H201).
func (g *Gate) WithAuthentication(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u, err := g.Authenticator.Authenticate(r)
		if err == nil && u == nil && isOpen(r.URL.Path) {
			u = anonymous
		}
		if u == nil || inGroup(u, user.AllUnauthenticated) {
			hangUp(w, r)
		}
		if u == nil {
			if err != nil && g.Logger != nil {
				g.Logger.InfoContext(r.Context(), "a credential was refused", "from", r.RemoteAddr, "err", err)
			}
			g.fail(w, r, apierrors.NewUnauthorized("Unauthorized"))
			return
		}
		r = r.WithContext(WithUser(r.Context(), u)) // its headers are shared with what was sent
		stripCredentials(r.Header)
		next.ServeHTTP(w, r)
	})
}

// hangUp ends a connection of HTTP/2 after this request: one connection can carry requests by
// the thousand, and somebody unknown should not have one for nothing.
func hangUp(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor == 2 {
		w.Header().Set("Connection", "close")
	}
}

// stripCredentials takes out of h what proves, or claims to prove, who somebody is. The
// X-Remote headers are a proxy's claims, which we never believe.
func stripCredentials(h http.Header) {
	h.Del("Authorization")
	for name := range h {
		if name == "X-Remote-User" || name == "X-Remote-Uid" || name == "X-Remote-Group" || strings.HasPrefix(name, "X-Remote-Extra-") {
			h.Del(name)
		}
	}
}

func (g *Gate) fail(w http.ResponseWriter, r *http.Request, err *apierrors.StatusError) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if g.Fail != nil {
		g.Fail(w, r, err)
		return
	}
	status := err.Status()
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(status.Code))
	json.NewEncoder(w).Encode(status) // whoever hung up does not need to be told
}
