package resource

import (
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Audience is who a token is for that does not say: this server.
const Audience = "https://kubernetes.default.svc"

// A Grant is what a token of a service account says (rules H198, B38): whose it is, for whom
// and until when, and without which other object it is void.
type Grant struct {
	Namespace, Name string
	UID             types.UID
	Bound           *authenticationv1.BoundObjectReference // with its uid; nil if to the account alone
	Audiences       []string
	From, Until     time.Time
}
