package table

import (
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	nodev1 "k8s.io/api/node/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
)

// policies are who may do what, who holds what, and who is who.
func policies() kinds {
	return kinds{
		v1(rbacv1.GroupName, "RoleBinding"): binding("roleBinding", swagger(rbacv1.RoleBinding{}, "roleRef"),
			func(b *rbacv1.RoleBinding) (rbacv1.RoleRef, []rbacv1.Subject) { return b.RoleRef, b.Subjects }),
		v1(rbacv1.GroupName, "ClusterRoleBinding"): binding("clusterRoleBinding", swagger(rbacv1.ClusterRoleBinding{}, "roleRef"),
			func(b *rbacv1.ClusterRoleBinding) (rbacv1.RoleRef, []rbacv1.Subject) { return b.RoleRef, b.Subjects }),
		v1(coordinationv1.GroupName, "Lease"): columns(
			name,
			text("Holder", swagger(coordinationv1.LeaseSpec{}, "holderIdentity"), func(l *coordinationv1.Lease) string { return at(l.Spec.HolderIdentity, "") }),
			age,
		),
		v1(nodev1.GroupName, "RuntimeClass"): columns(
			name, text("Handler", "", func(c *nodev1.RuntimeClass) string { return c.Handler }), age,
		),
		v1(certificatesv1.GroupName, "CertificateSigningRequest"): signingRequest(),
	}
}

func binding[T runtime.Object](kind, doc string, of func(T) (rbacv1.RoleRef, []rbacv1.Subject)) *Columns {
	subjects := func(kind string) func(T) string {
		return func(b T) string {
			var all []string
			_, subjects := of(b)
			for _, s := range subjects {
				switch {
				case s.Kind != kind:
				case kind == rbacv1.ServiceAccountKind:
					all = append(all, s.Namespace+"/"+s.Name)
				default:
					all = append(all, s.Name)
				}
			}
			return strings.Join(all, ", ")
		}
	}
	return columns(
		name,
		text("Role", doc, func(b T) string {
			role, _ := of(b)
			return role.Kind + "/" + role.Name
		}),
		age,
		text("Users", "Users in the "+kind, subjects(rbacv1.UserKind)).wide(),
		text("Groups", "Groups in the "+kind, subjects(rbacv1.GroupKind)).wide(),
		text("ServiceAccounts", "ServiceAccounts in the "+kind, subjects(rbacv1.ServiceAccountKind)).wide(),
	)
}

func signingRequest() *Columns {
	type CSR = *certificatesv1.CertificateSigningRequest
	spec := func(field string) string { return swagger(certificatesv1.CertificateSigningRequestSpec{}, field) }
	return columns(
		name,
		age,
		text("SignerName", spec("signerName"), func(r CSR) string { return or(r.Spec.SignerName, none) }),
		text("Requestor", spec("request"), func(r CSR) string { return r.Spec.Username }),
		text("RequestedDuration", spec("expirationSeconds"), func(r CSR) string {
			if r.Spec.ExpirationSeconds == nil {
				return none
			}
			return duration.HumanDuration(time.Duration(*r.Spec.ExpirationSeconds) * time.Second)
		}),
		text("Condition", swagger(certificatesv1.CertificateSigningRequestStatus{}, "conditions"), signingCondition),
	)
}

func signingCondition(r *certificatesv1.CertificateSigningRequest) string {
	has := func(t certificatesv1.RequestConditionType) bool {
		return slices.ContainsFunc(r.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool { return c.Type == t })
	}
	status := "Pending"
	switch {
	case has(certificatesv1.CertificateDenied):
		status = "Denied"
	case has(certificatesv1.CertificateApproved):
		status = "Approved"
	}
	if has(certificatesv1.CertificateFailed) {
		status += ",Failed"
	}
	if len(r.Status.Certificate) > 0 {
		status += ",Issued"
	}
	return status
}

// registrations are the kinds that extend the API.
func registrations() kinds {
	return kinds{
		v1(apiextensionsv1.GroupName, "CustomResourceDefinition"): definition(),
		v1(admissionv1.GroupName, "MutatingWebhookConfiguration"): columns(
			name,
			number("Webhooks", "Webhooks indicates the number of webhooks registered in this configuration",
				func(c *admissionv1.MutatingWebhookConfiguration) int { return len(c.Webhooks) }),
			age,
		),
		v1(admissionv1.GroupName, "ValidatingWebhookConfiguration"): columns(
			name,
			number("Webhooks", "Webhooks indicates the number of webhooks registered in this configuration",
				func(c *admissionv1.ValidatingWebhookConfiguration) int { return len(c.Webhooks) }),
			age,
		),
		v1(admissionv1.GroupName, "ValidatingAdmissionPolicy"): columns(
			name,
			number("Validations", "Validations indicates the number of validation rules defined in this configuration",
				func(p *admissionv1.ValidatingAdmissionPolicy) int { return len(p.Spec.Validations) }),
			text("ParamKind", "ParamKind specifies the kind of resources used to parameterize this policy",
				func(p *admissionv1.ValidatingAdmissionPolicy) string { return paramKind(p.Spec.ParamKind) }),
			age,
		),
		v1(admissionv1.GroupName, "ValidatingAdmissionPolicyBinding"): columns(
			name,
			text("PolicyName", "PolicyName indicates the policy definition which the policy binding binded to",
				func(b *admissionv1.ValidatingAdmissionPolicyBinding) string { return b.Spec.PolicyName }),
			text("ParamRef", "ParamRef indicates the param resource which sets the configuration param",
				func(b *admissionv1.ValidatingAdmissionPolicyBinding) string { return paramRef(b.Spec.ParamRef) }),
			age,
		),
		v1(admissionv1.GroupName, "MutatingAdmissionPolicy"): columns(
			name,
			number("Mutations", "Mutation indicates the number of mutations rules defined in this configuration",
				func(p *admissionv1.MutatingAdmissionPolicy) int { return len(p.Spec.Mutations) }),
			text("ParamKind", "ParamKind specifies the kind of resources used to parameterize this policy",
				func(p *admissionv1.MutatingAdmissionPolicy) string { return paramKind(p.Spec.ParamKind) }),
			age,
		),
		v1(admissionv1.GroupName, "MutatingAdmissionPolicyBinding"): columns(
			name,
			text("PolicyName", "PolicyName indicates the policy definition which the policy binding binded to",
				func(b *admissionv1.MutatingAdmissionPolicyBinding) string { return b.Spec.PolicyName }),
			text("ParamRef", "ParamRef indicates the param resource which sets the configuration param",
				func(b *admissionv1.MutatingAdmissionPolicyBinding) string { return paramRef(b.Spec.ParamRef) }),
			age,
		),
	}
}

func paramKind(k *admissionv1.ParamKind) string {
	if k == nil {
		return unset
	}
	return k.APIVersion + "/" + k.Kind
}

// paramRef names the parameters of a policy. Whether their kind has namespaces cannot be told
// from here: the star may stand for none.
func paramRef(r *admissionv1.ParamRef) string {
	switch {
	case r != nil && r.Name != "":
		return or(r.Namespace, "*") + "/" + r.Name
	case r != nil && r.Selector != nil:
		return r.Selector.String()
	}
	return unset
}

func definition() *Columns {
	type CRD = *apiextensionsv1.CustomResourceDefinition
	return columns(
		name,
		text("Scope", "Cluster/Namespaced", func(d CRD) string { return string(d.Spec.Scope) }),
		text("Versions", "Served versions", func(d CRD) string {
			var served []string
			for _, v := range d.Spec.Versions {
				switch {
				case v.Served && v.Storage:
					served = append(served, v.Name+"(storage)")
				case v.Served:
					served = append(served, v.Name)
				}
			}
			return strings.Join(sorted(served), ",")
		}),
		created,
		text("Group", "API group", func(d CRD) string { return d.Spec.Group }).wide(),
		text("Kind", "CustomResource kind", func(d CRD) string { return d.Spec.Names.Kind }).wide(),
		text("ShortNames", "Short names", func(d CRD) string { return strings.Join(d.Spec.Names.ShortNames, ",") }).wide(),
		truth("Established", "Established status", func(d CRD) bool {
			return slices.ContainsFunc(d.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
				return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
			})
		}).wide(),
	)
}
