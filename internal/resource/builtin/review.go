package builtin

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/pawl-dev/pawl/internal/resource"
	"github.com/pawl-dev/pawl/registry"
)

// Reviews returns the resources that are questions: who one is, and who may do what (rules
// B74, H200, H205). Now is by which clock the answers tell the time.
func Reviews(now func() time.Time) []*resource.Resource {
	authn, authz := authenticationv1.SchemeGroupVersion, authorizationv1.SchemeGroupVersion
	return []*resource.Resource{
		review(authn, "SelfSubjectReview", "selfsubjectreview", false, whoAmI(now)),
		review(authn, "TokenReview", "tokenreview", false, whoHolds),
		review(authz, "SelfSubjectAccessReview", "selfsubjectaccessreview", false, mayI),
		review(authz, "SubjectAccessReview", "subjectaccessreview", false, mayThey),
		review(authz, "LocalSubjectAccessReview", "localsubjectaccessreview", true, mayTheyHere),
		review(authz, "SelfSubjectRulesReview", "selfsubjectrulesreview", false, whatMayI),
	}
}

// review makes the resource of one kind of question.
func review[T any, P pointer[T]](gv schema.GroupVersion, kind, singular string, namespaced bool, answer func(ctx context.Context, by resource.Asker, obj P) error) *resource.Resource {
	k := define(Kind{
		Group: gv.Group, Version: gv.Version, Kind: kind, Plural: singular + "s", Singular: singular,
	}, rules[P]{policy: registry.Policy{Namespaced: namespaced}}, nil)
	return &resource.Resource{
		Group: k.Group, Plural: k.Plural, Singular: k.Singular, Kind: k.Kind, Namespaced: namespaced, NoDeleteCollection: true,
		Versions: []*resource.Version{{
			Name: k.Version, Form: k.Form(),
			Review: func(ctx context.Context, by resource.Asker, obj runtime.Object) error {
				typed, ok := obj.(P)
				if !ok {
					return k.mistaken(obj)
				}
				return answer(ctx, by, typed)
			},
		}},
	}
}

// whoAmI answers who sent the request.
func whoAmI(now func() time.Time) func(context.Context, resource.Asker, *authenticationv1.SelfSubjectReview) error {
	return func(_ context.Context, by resource.Asker, r *authenticationv1.SelfSubjectReview) error {
		r.CreationTimestamp = metav1.NewTime(now().UTC().Truncate(time.Second))
		r.Status = authenticationv1.SelfSubjectReviewStatus{UserInfo: infoOf(by.User())}
		return nil
	}
}

func infoOf(u user.Info) authenticationv1.UserInfo {
	info := authenticationv1.UserInfo{Username: u.GetName(), UID: u.GetUID(), Groups: u.GetGroups()}
	for key, values := range u.GetExtra() {
		if info.Extra == nil {
			info.Extra = map[string]authenticationv1.ExtraValue{}
		}
		info.Extra[key] = values
	}
	return info
}

// whoHolds answers who holds a token, and for whom of those who were named it is. One that is for none
// of them is not known.
func whoHolds(ctx context.Context, by resource.Asker, r *authenticationv1.TokenReview) error {
	if r.Spec.Token == "" {
		return apierrors.NewBadRequest("token is required for TokenReview in authentication")
	}
	r.Status = authenticationv1.TokenReviewStatus{}
	asked := r.Spec.Audiences
	if len(asked) == 0 {
		asked = []string{resource.Audience}
	}
	for _, audience := range asked {
		if u := by.Holder(ctx, r.Spec.Token, audience); u != nil {
			r.Status.Authenticated, r.Status.User = true, infoOf(u)
			r.Status.Audiences = append(r.Status.Audiences, audience)
		}
	}
	return nil
}

// mayI answers whether the sender may do something.
func mayI(_ context.Context, by resource.Asker, r *authorizationv1.SelfSubjectAccessReview) error {
	s := r.Spec
	errs := append(wrongAccess(s.ResourceAttributes, s.NonResourceAttributes), wrongReviewMeta(r.ObjectMeta, "")...)
	if len(errs) > 0 {
		return wrongReview(errs)
	}
	r.Status = judge(by, by.User(), s.ResourceAttributes, s.NonResourceAttributes)
	return nil
}

// mayThey answers whether somebody else may.
func mayThey(_ context.Context, by resource.Asker, r *authorizationv1.SubjectAccessReview) error {
	if errs := append(wrongAsked(&r.Spec), wrongReviewMeta(r.ObjectMeta, "")...); len(errs) > 0 {
		return wrongReview(errs)
	}
	r.Status = judge(by, askedFor(&r.Spec), r.Spec.ResourceAttributes, r.Spec.NonResourceAttributes)
	return nil
}

// mayTheyHere answers whether somebody else may in one namespace, to those who may ask only there.
func mayTheyHere(_ context.Context, by resource.Asker, r *authorizationv1.LocalSubjectAccessReview) error {
	r.Namespace = by.Namespace()
	errs := append(wrongAsked(&r.Spec), wrongReviewMeta(r.ObjectMeta, "except for namespace")...)
	if at := r.Spec.ResourceAttributes; at != nil && at.Namespace != r.Namespace {
		errs = append(errs, field.Invalid(field.NewPath("spec", "resourceAttributes", "namespace"), at.Namespace, "must match metadata.namespace"))
	}
	if path := r.Spec.NonResourceAttributes; path != nil {
		errs = append(errs, field.Invalid(field.NewPath("spec", "nonResourceAttributes"), path, "disallowed on this kind of request"))
	}
	if len(errs) > 0 {
		return wrongReview(errs)
	}
	r.Status = judge(by, askedFor(&r.Spec), r.Spec.ResourceAttributes, nil)
	return nil
}

// whatMayI answers with all that the sender may do in a namespace.
func whatMayI(_ context.Context, by resource.Asker, r *authorizationv1.SelfSubjectRulesReview) error {
	if r.Spec.Namespace == "" {
		return apierrors.NewBadRequest("no namespace on request")
	}
	r.Status = by.Rules(by.User(), r.Spec.Namespace)
	return nil
}

// judge is what the authorizer in place says. Nothing here forbids what something else allows,
// so nothing is denied.
func judge(by resource.Asker, who user.Info, at *authorizationv1.ResourceAttributes, path *authorizationv1.NonResourceAttributes) authorizationv1.SubjectAccessReviewStatus {
	allowed, reason := by.Allowed(who, at, path)
	return authorizationv1.SubjectAccessReviewStatus{Allowed: allowed, Reason: reason}
}

func askedFor(s *authorizationv1.SubjectAccessReviewSpec) user.Info {
	u := &user.DefaultInfo{Name: s.User, UID: s.UID, Groups: s.Groups}
	for key, values := range s.Extra {
		if u.Extra == nil {
			u.Extra = map[string][]string{}
		}
		u.Extra[key] = values
	}
	return u
}

func wrongAsked(s *authorizationv1.SubjectAccessReviewSpec) field.ErrorList {
	errs := wrongAccess(s.ResourceAttributes, s.NonResourceAttributes)
	if s.User == "" && len(s.Groups) == 0 {
		errs = append(errs, field.Invalid(field.NewPath("spec", "user"), s.User, "at least one of user or group must be specified"))
	}
	return errs
}

// wrongAccess wants one thing to be asked about: a resource, or a path.
func wrongAccess(at *authorizationv1.ResourceAttributes, path *authorizationv1.NonResourceAttributes) field.ErrorList {
	if (at == nil) == (path == nil) {
		return field.ErrorList{field.Invalid(field.NewPath("spec"), path, "exactly one of nonResourceAttributes or resourceAttributes must be specified")}
	}
	return nil
}

// wrongReviewMeta wants no metadata: there is no object that it could be about.
func wrongReviewMeta(have metav1.ObjectMeta, except string) field.ErrorList {
	rest := have
	rest.ManagedFields = nil
	if except != "" {
		rest.Namespace, except = "", " "+except
	}
	if equality.Semantic.DeepEqual(rest, metav1.ObjectMeta{}) {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("metadata"), have, fmt.Sprintf("must be empty%s", except))}
}

// wrongReview is the answer to a question that makes no sense; the reference does not name
// the kind in it.
func wrongReview(errs field.ErrorList) error {
	return apierrors.NewInvalid(schema.GroupKind{Group: authorizationv1.GroupName}, "", errs)
}
