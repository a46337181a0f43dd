package builtin

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"
)

// ingressClassAnnotation is where an ingress said its class before there was a field for it.
const ingressClassAnnotation = "kubernetes.io/ingress.class"

var pathTypes = []networkingv1.PathType{networkingv1.PathTypeExact, networkingv1.PathTypeImplementationSpecific, networkingv1.PathTypePrefix}

// ingresses is what holds for ingresses (rule B69).
var ingresses = rules[*networkingv1.Ingress]{
	policy:  workloadPolicy,
	spec:    func(i, from *networkingv1.Ingress) { i.Spec = from.Spec },
	status:  func(i, from *networkingv1.Ingress) { i.Status = from.Status },
	tracked: func(i *networkingv1.Ingress) any { return i.Spec },
	wrong: func(i *networkingv1.Ingress) field.ErrorList {
		s, errs := &i.Spec, wrongFinalizers(i)
		if len(s.Rules) == 0 && s.DefaultBackend == nil {
			errs = append(errs, field.Invalid(specPath, s.Rules, "either `defaultBackend` or `rules` must be specified"))
		}
		if s.DefaultBackend != nil {
			errs = append(errs, wrongBackend(s.DefaultBackend, specPath.Child("defaultBackend"))...)
		}
		for i, r := range s.Rules {
			errs = append(errs, wrongIngressRule(&r, specPath.Child("rules").Index(i))...)
		}
		for i, t := range s.TLS {
			errs = append(errs, wrongIngressTLS(&t, specPath.Child("tls").Index(i))...)
		}
		if s.IngressClassName != nil {
			errs = append(errs, wrongSubdomain(*s.IngressClassName, specPath.Child("ingressClassName"))...)
		}
		return errs
	},
	wrongNew: func(i *networkingv1.Ingress) field.ErrorList {
		old, said := i.Annotations[ingressClassAnnotation]
		if class := i.Spec.IngressClassName; said && class != nil && old != *class {
			path := field.NewPath("annotations", ingressClassAnnotation)
			return field.ErrorList{field.Invalid(path, old, "must match `ingressClassName` when both are specified")}
		}
		return nil
	},
	warnNew: func(i *networkingv1.Ingress) []string {
		if _, said := i.Annotations[ingressClassAnnotation]; said && i.Spec.IngressClassName == nil {
			return []string{fmt.Sprintf("annotation %q is deprecated, please use 'spec.ingressClassName' instead", ingressClassAnnotation)}
		}
		return nil
	},
}

func ingressKinds() []Kind {
	return []Kind{define(Kind{
		Group: networkingv1.GroupName, Version: "v1", Kind: "Ingress", Plural: "ingresses", Singular: "ingress", ShortNames: []string{"ing"}, Revision: 1,
		Subresources: []Subresource{statusDoor(ingresses)},
	}, ingresses, nil)}
}

// wrongHost says why host is neither a DNS name nor one with a star in front.
func wrongHost(host string, path *field.Path) (errs field.ErrorList) {
	if !strings.Contains(host, "*") {
		return wrongSubdomain(host, path)
	}
	for _, why := range utilvalidation.IsWildcardDNS1123Subdomain(host) {
		errs = append(errs, field.Invalid(path, host, why))
	}
	return errs
}

func wrongIngressTLS(t *networkingv1.IngressTLS, path *field.Path) (errs field.ErrorList) {
	for i, host := range t.Hosts {
		errs = append(errs, wrongHost(host, path.Child("hosts").Index(i))...)
	}
	if t.SecretName != "" {
		errs = append(errs, wrongSubdomain(t.SecretName, path.Child("secretName"))...)
	}
	return errs
}

func wrongIngressRule(r *networkingv1.IngressRule, path *field.Path) (errs field.ErrorList) {
	if r.Host != "" {
		if netutils.ParseIPSloppy(r.Host) != nil {
			errs = append(errs, field.Invalid(path.Child("host"), r.Host, "must be a DNS name, not an IP address"))
		}
		errs = append(errs, wrongHost(r.Host, path.Child("host"))...)
	}
	if r.HTTP == nil {
		return errs
	}
	paths := path.Child("http", "paths")
	if len(r.HTTP.Paths) == 0 {
		errs = append(errs, field.Required(paths, ""))
	}
	for i, p := range r.HTTP.Paths {
		errs = append(errs, wrongIngressPath(&p, paths.Index(i))...)
	}
	return errs
}

func wrongIngressPath(p *networkingv1.HTTPIngressPath, path *field.Path) (errs field.ErrorList) {
	if p.PathType == nil {
		return field.ErrorList{field.Required(path.Child("pathType"), "pathType must be specified")}
	}
	at, plain := path.Child("path"), *p.PathType == networkingv1.PathTypeExact || *p.PathType == networkingv1.PathTypePrefix
	known := plain || *p.PathType == networkingv1.PathTypeImplementationSpecific
	if !known {
		errs = append(errs, field.NotSupported(path.Child("pathType"), *p.PathType, pathTypes))
	}
	if known && !strings.HasPrefix(p.Path, "/") && (plain || p.Path != "") {
		errs = append(errs, field.Invalid(at, p.Path, "must be an absolute path"))
	}
	if plain {
		for _, odd := range []string{"//", "/./", "/../", "%2f", "%2F"} {
			if strings.Contains(p.Path, odd) {
				errs = append(errs, field.Invalid(at, p.Path, fmt.Sprintf("must not contain '%s'", odd)))
			}
		}
		for _, odd := range []string{"/..", "/."} {
			if strings.HasSuffix(p.Path, odd) {
				errs = append(errs, field.Invalid(at, p.Path, fmt.Sprintf("cannot end with '%s'", odd)))
			}
		}
	}
	return append(errs, wrongBackend(&p.Backend, path.Child("backend"))...)
}

// wrongBackend says what is wrong with where traffic is sent: to a port of a service, or to some other object.
func wrongBackend(b *networkingv1.IngressBackend, path *field.Path) field.ErrorList {
	switch {
	case b.Resource != nil && b.Service != nil:
		return field.ErrorList{field.Invalid(path, "", "cannot set both resource and service backends")}
	case b.Resource != nil:
		return wrongBackendObject(b.Resource, path.Child("resource"))
	case b.Service == nil:
		return field.ErrorList{field.Invalid(path, "", "resource or service backend is required")}
	}
	service := path.Child("service")
	errs := missing(b.Service.Name, service.Child("name"))
	if b.Service.Name != "" {
		errs = append(errs, wrongLabel(b.Service.Name, service.Child("name"))...)
	}
	switch port := b.Service.Port; {
	case port.Name != "" && port.Number != 0:
		errs = append(errs, field.Invalid(path, "", "cannot set both port name & port number"))
	case port.Name != "":
		for _, why := range utilvalidation.IsValidPortName(port.Name) {
			errs = append(errs, field.Invalid(service.Child("port", "name"), port.Name, why))
		}
	case port.Number != 0:
		errs = append(errs, wrongPort(port.Number, service.Child("port", "number"))...)
	default:
		errs = append(errs, field.Required(path, "port name or number is required"))
	}
	return errs
}

func wrongBackendObject(r *corev1.TypedLocalObjectReference, path *field.Path) (errs field.ErrorList) {
	if r.APIGroup != nil {
		errs = append(errs, wrongSubdomain(*r.APIGroup, path.Child("apiGroup"))...)
	}
	for _, part := range []struct{ field, value string }{{"kind", r.Kind}, {"name", r.Name}} {
		if part.value == "" {
			errs = append(errs, field.Required(path.Child(part.field), ""))
			continue
		}
		for _, why := range content.IsPathSegmentName(part.value) {
			errs = append(errs, field.Invalid(path.Child(part.field), part.value, why))
		}
	}
	return errs
}
