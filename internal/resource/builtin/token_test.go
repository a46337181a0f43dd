package builtin

import (
	"context"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pawl-dev/pawl/internal/resource"
)

// shop holds an account, two pods and a secret; what is issued is written into granted.
func shop(granted *resource.Grant) Tokens {
	things := map[string]runtime.Object{
		"serviceaccounts/shop/bot": &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "bot", UID: "u1"}},
		"pods/shop/till":           &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "till", UID: "u2"}, Spec: corev1.PodSpec{ServiceAccountName: "bot"}},
		"pods/shop/door":           &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "door", UID: "u3"}},
		"nodes//n1":                &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "u4"}},
	}
	return Tokens{
		Find: func(_ context.Context, plural, namespace, name string) (runtime.Object, error) {
			if obj := things[plural+"/"+namespace+"/"+name]; obj != nil {
				return obj, nil
			}
			return nil, apierrors.NewNotFound(corev1.Resource(plural), name)
		},
		Issue: func(g resource.Grant) (string, error) { *granted = g; return "t", nil },
		Now:   func() time.Time { return time.Unix(1000, 5) },
	}
}

func TestTokensAreAskedFor(t *testing.T) { // rule B38
	for _, tt := range []struct{ name, account, request, bound, err string }{
		{"nothing need be said", "bot", `{}`, "", ""},
		{"the account may be named", "bot", `{"metadata":{"name":"bot","uid":"u1"}}`, "", ""},
		{"another name is a mistake", "bot", `{"metadata":{"name":"rob"}}`, "", "must match the service account name if specified"},
		{"another account of that name", "bot", `{"metadata":{"uid":"u0"}}`, "", "the UID in the token request (u0) does not match the UID of the service account (u1)"},
		{"an account that is not there", "rob", `{}`, "", `serviceaccounts "rob" not found`},
		{"too short a life", "bot", `{"spec":{"expirationSeconds":599}}`, "", "spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes"},
		{"too long a life", "bot", `{"spec":{"expirationSeconds":4294967297}}`, "", "may not specify a duration larger than 2^32 seconds"},
		{"bound to a pod of the account", "bot", `{"spec":{"boundObjectRef":{"kind":"Pod","apiVersion":"v1","name":"till"}}}`, "u2", ""},
		{"bound to a pod of another account", "bot", `{"spec":{"boundObjectRef":{"kind":"Pod","apiVersion":"v1","name":"door"}}}`, "", "pod running with different serviceaccount name"},
		{"bound to a pod that was another", "bot", `{"spec":{"boundObjectRef":{"kind":"Pod","apiVersion":"v1","name":"till","uid":"u9"}}}`, "", "does not match the UID in record"},
		{"bound to a node", "bot", `{"spec":{"boundObjectRef":{"kind":"Node","apiVersion":"v1","name":"n1"}}}`, "u4", ""},
		{"bound to what is not there", "bot", `{"spec":{"boundObjectRef":{"kind":"Secret","apiVersion":"v1","name":"s"}}}`, "", `secrets "s" not found`},
		{"bound to what nothing is bound to", "bot", `{"spec":{"boundObjectRef":{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","name":"s"}}}`, "", "cannot bind token to object of type coordination.k8s.io/v1, Kind=Lease"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var granted resource.Grant
			door := shop(&granted).Door()
			obj, _, err := door.Posted.Form.Decode([]byte(tt.request))
			if err != nil {
				t.Fatal(err)
			}
			answer, err := door.Posted.Do(t.Context(), resource.Address{Namespace: "shop", Name: tt.account}, obj)
			if (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Fatalf("got error %v, want %q", err, tt.err)
			}
			if err != nil {
				return
			}
			r := answer.(*authenticationv1.TokenRequest)
			if r.Status.Token != "t" || r.Status.ExpirationTimestamp.Unix() != 4600 || r.Name != "bot" || r.UID != "u1" {
				t.Errorf("got %+v", r)
			}
			if g := granted; g.Name != "bot" || g.UID != "u1" || g.From.Unix() != 1000 || g.Until.Unix() != 4600 || len(g.Audiences) != 1 {
				t.Errorf("granted %+v", g)
			}
			if bound := granted.Bound; (bound != nil) != (tt.bound != "") || bound != nil && string(bound.UID) != tt.bound {
				t.Errorf("bound to %+v, want %s", bound, tt.bound)
			}
		})
	}
}

func TestATokenIsVoidOnceWhatItIsBoundToIsGone(t *testing.T) { // rule H198
	pod := func(name string, uid types.UID) *authenticationv1.BoundObjectReference {
		return &authenticationv1.BoundObjectReference{Kind: "Pod", Name: name, UID: uid}
	}
	node := &authenticationv1.BoundObjectReference{Kind: "Node", Name: "n1", UID: "u4"}
	for _, tt := range []struct {
		name    string
		account string
		uid     types.UID
		bound   *authenticationv1.BoundObjectReference
		void    bool
	}{
		{"the account is there", "bot", "u1", nil, false},
		{"the account is gone", "rob", "u1", nil, true},
		{"the account was made anew", "bot", "u0", nil, true},
		{"the pod is there", "bot", "u1", pod("till", "u2"), false},
		{"the pod is gone", "bot", "u1", pod("desk", "u2"), true},
		{"the pod was made anew", "bot", "u1", pod("till", "u0"), true},
		{"a node is in no namespace", "bot", "u1", node, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := shop(nil).Void(t.Context(), resource.Grant{Namespace: "shop", Name: tt.account, UID: tt.uid, Bound: tt.bound}); (err != nil) != tt.void {
				t.Error(err)
			}
		})
	}
}
