package builtin

import (
	"cmp"
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pawl-dev/pawl/internal/resource"
)

// Tokens are the door of service accounts through which tokens for them are asked for (rule
// B38). All fields are needed.
type Tokens struct {
	// Find returns what is stored: of serviceaccounts, pods, secrets and nodes. The error is
	// that of a GET.
	Find func(ctx context.Context, plural, namespace, name string) (runtime.Object, error)
	// Issue signs a token.
	Issue func(resource.Grant) (string, error)
	Now   func() time.Time
}

// The bounds of the life of a token, in seconds.
const (
	tokenLife    = 3600 // of one for which nobody says
	tokenLifeMin = 600
	tokenLifeMax = 1 << 32
)

// Door returns the subresource.
func (t Tokens) Door() *resource.Subresource {
	k := define(Kind{Group: authenticationv1.GroupName, Version: "v1", Kind: "TokenRequest"}, rules[*authenticationv1.TokenRequest]{
		defaults: func(r *authenticationv1.TokenRequest) { orNew(&r.Spec.ExpirationSeconds, tokenLife) },
	}, nil)
	return &resource.Subresource{
		Name: "token", Kind: k.Kind, Verbs: []string{"create"},
		Posted: &resource.Posted{Form: k.Form(), Do: func(ctx context.Context, at resource.Address, obj runtime.Object) (runtime.Object, error) {
			r, ok := obj.(*authenticationv1.TokenRequest)
			if !ok {
				return nil, k.mistaken(obj)
			}
			return r, t.answer(ctx, at, r)
		}},
	}
}

// answer completes a request with a token.
func (t Tokens) answer(ctx context.Context, at resource.Address, r *authenticationv1.TokenRequest) error {
	kind := authenticationv1.SchemeGroupVersion.WithKind("TokenRequest").GroupKind()
	if r.Name != "" && r.Name != at.Name {
		return apierrors.NewInvalid(kind, at.Name, field.ErrorList{
			field.Invalid(field.NewPath("metadata", "name"), r.Name, "must match the service account name if specified"),
		})
	}
	account, err := t.find(ctx, "serviceaccounts", at.Namespace, at.Name)
	if err != nil {
		return err
	}
	uid := account.GetUID()
	if r.UID != "" && r.UID != uid {
		return apierrors.NewConflict(schema.GroupResource{Group: kind.Group, Resource: kind.Kind}, at.Name, fmt.Errorf(
			"the UID in the token request (%s) does not match the UID of the service account (%s)", r.UID, uid))
	}
	if errs := wrongToken(r); len(errs) > 0 {
		return apierrors.NewInvalid(kind, "", errs)
	}
	bound, err := t.bound(ctx, at, r.Spec.BoundObjectRef)
	if err != nil {
		return err
	}
	if len(r.Spec.Audiences) == 0 {
		r.Spec.Audiences = []string{resource.Audience}
	}
	now := t.Now().UTC().Truncate(time.Second)
	until := now.Add(time.Duration(*r.Spec.ExpirationSeconds) * time.Second)
	token, err := t.Issue(resource.Grant{
		Namespace: at.Namespace, Name: at.Name, UID: uid, Bound: bound, Audiences: r.Spec.Audiences, From: now, Until: until,
	})
	if err != nil {
		return err
	}
	r.Name, r.Namespace, r.UID, r.CreationTimestamp = at.Name, at.Namespace, uid, metav1.NewTime(now)
	r.Status = authenticationv1.TokenRequestStatus{Token: token, ExpirationTimestamp: metav1.NewTime(until)}
	return nil
}

func wrongToken(r *authenticationv1.TokenRequest) field.ErrorList {
	path, life := field.NewPath("spec", "expirationSeconds"), *r.Spec.ExpirationSeconds
	switch {
	case life < tokenLifeMin:
		return field.ErrorList{field.Invalid(path, life, "may not specify a duration less than 10 minutes")}
	case life > tokenLifeMax:
		return field.ErrorList{field.Invalid(path, life, "may not specify a duration larger than 2^32 seconds")}
	}
	return nil
}

// bindable are the kinds that a token may be bound to, and their plurals.
var bindable = map[string]string{"Pod": "pods", "Secret": "secrets", "Node": "nodes"}

// bound looks up what a token is to be bound to, and returns the reference with its uid.
func (t Tokens) bound(ctx context.Context, at resource.Address, ref *authenticationv1.BoundObjectReference) (*authenticationv1.BoundObjectReference, error) {
	if ref == nil {
		return nil, nil
	}
	gvk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	plural := bindable[gvk.Kind]
	if gvk.Group != "" || plural == "" {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("cannot bind token to object of type %s", gvk))
	}
	namespace := at.Namespace
	if plural == "nodes" {
		namespace = ""
	}
	obj, err := t.find(ctx, plural, namespace, ref.Name)
	if err != nil {
		return nil, err
	}
	// Pods are data here, and need not say which account they have: then it is the default one.
	if p, ok := obj.(*corev1.Pod); ok && cmp.Or(p.Spec.ServiceAccountName, "default") != at.Name {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("cannot bind token for serviceaccount %q to pod running with different serviceaccount name.", at.Name))
	}
	if uid := obj.GetUID(); ref.UID != "" && ref.UID != uid {
		return nil, apierrors.NewConflict(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, ref.Name, fmt.Errorf(
			"the UID in the bound object reference (%s) does not match the UID in record. The object might have been deleted and then recreated", ref.UID))
	}
	full := *ref
	full.UID = obj.GetUID()
	return &full, nil
}

func (t Tokens) find(ctx context.Context, plural, namespace, name string) (metav1.Object, error) {
	obj, err := t.Find(ctx, plural, namespace, name)
	if err != nil {
		return nil, err
	}
	return meta.Accessor(obj)
}

// Void says why a token of a grant is not good any more: what it is bound to is gone, or
// another (rule H198). Nil if it is good.
func (t Tokens) Void(ctx context.Context, g resource.Grant) error {
	if err := t.same(ctx, "serviceaccounts", g.Namespace, g.Name, g.UID); err != nil || g.Bound == nil {
		return err
	}
	namespace := g.Namespace
	if g.Bound.Kind == "Node" {
		namespace = ""
	}
	return t.same(ctx, bindable[g.Bound.Kind], namespace, g.Bound.Name, g.Bound.UID)
}

func (t Tokens) same(ctx context.Context, plural, namespace, name string, uid types.UID) error {
	obj, err := t.find(ctx, plural, namespace, name)
	switch {
	case err != nil:
		return err
	case obj.GetUID() != uid:
		return fmt.Errorf("%s %s/%s is another by now", plural, namespace, name)
	}
	return nil
}
