//lint:file-ignore SA1019 clients still ask for Endpoints

package table

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// networking are the kinds that traffic finds its way with.
func networking() kinds {
	return kinds{
		v1("", "Service"):                           service(),
		v1("", "Endpoints"):                         endpoints(),
		v1(discoveryv1.GroupName, "EndpointSlice"):  endpointSlice(),
		v1(networkingv1.GroupName, "Ingress"):       ingress(),
		v1(networkingv1.GroupName, "IngressClass"):  ingressClass(),
		v1(networkingv1.GroupName, "NetworkPolicy"): networkPolicy(),
		v1(networkingv1.GroupName, "IPAddress"):     ipAddress(),
		v1(networkingv1.GroupName, "ServiceCIDR"): columns(
			name,
			text("CIDRs", swagger(networkingv1.ServiceCIDRSpec{}, "cidrs"), func(s *networkingv1.ServiceCIDR) string { return strings.Join(s.Spec.CIDRs, ",") }),
			age,
		),
	}
}

func service() *Columns {
	type S = *corev1.Service
	doc := func(field string) string { return swagger(corev1.ServiceSpec{}, field) }
	return columns(
		name,
		text("Type", doc("type"), func(s S) string { return string(s.Spec.Type) }),
		text("Cluster-IP", doc("clusterIP"), func(s S) string {
			if len(s.Spec.ClusterIPs) == 0 {
				return none
			}
			return s.Spec.ClusterIPs[0]
		}),
		text("External-IP", doc("externalIPs"), externalIP),
		text("Port(s)", doc("ports"), servicePorts),
		age,
		text("Selector", doc("selector"), func(s S) string { return labels.FormatLabels(s.Spec.Selector) }).wide(),
	)
}

// externalIP is where a service is reached from outside.
func externalIP(s *corev1.Service) string {
	all := strings.Join(s.Spec.ExternalIPs, ",")
	switch s.Spec.Type {
	case corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort:
		return or(all, none)
	case corev1.ServiceTypeExternalName:
		return s.Spec.ExternalName
	case corev1.ServiceTypeLoadBalancer:
		var balancers []string
		for _, in := range s.Status.LoadBalancer.Ingress {
			if address := or(in.IP, in.Hostname); address != "" {
				balancers = append(balancers, address)
			}
		}
		return or(strings.Join(append(sorted(balancers), s.Spec.ExternalIPs...), ","), "<pending>")
	}
	return unknown
}

func servicePorts(s *corev1.Service) string {
	var ports []string
	for _, p := range s.Spec.Ports {
		if p.NodePort > 0 {
			ports = append(ports, fmt.Sprintf("%d:%d/%s", p.Port, p.NodePort, p.Protocol))
			continue
		}
		ports = append(ports, fmt.Sprintf("%d/%s", p.Port, p.Protocol))
	}
	return or(strings.Join(ports, ","), none)
}

// endpointsShown is how many addresses or ports a cell holds.
const endpointsShown = 3

func endpoints() *Columns {
	return columns(
		name,
		text("Endpoints", swagger(corev1.Endpoints{}, "subsets"), func(e *corev1.Endpoints) string {
			if len(e.Subsets) == 0 {
				return none
			}
			var all []string
			for _, s := range e.Subsets {
				all = append(all, addresses(s)...)
			}
			return some(all, endpointsShown)
		}),
		age,
	)
}

// addresses are those of a subset, each with each port if there are any.
func addresses(s corev1.EndpointSubset) []string {
	var all []string
	if len(s.Ports) == 0 {
		for _, a := range s.Addresses {
			all = append(all, a.IP)
		}
	}
	for _, p := range s.Ports {
		for _, a := range s.Addresses {
			all = append(all, net.JoinHostPort(a.IP, strconv.Itoa(int(p.Port))))
		}
	}
	return all
}

func endpointSlice() *Columns {
	type ES = *discoveryv1.EndpointSlice
	doc := func(field string) string { return swagger(discoveryv1.EndpointSlice{}, field) }
	return columns(
		name,
		text("AddressType", doc("addressType"), func(s ES) string { return string(s.AddressType) }),
		text("Ports", doc("ports"), func(s ES) string {
			var all []string
			for _, p := range s.Ports {
				if p.Port != nil {
					all = append(all, strconv.Itoa(int(*p.Port)))
					continue
				}
				all = append(all, at(p.Name, "*"))
			}
			return or(some(all, endpointsShown), unset)
		}),
		text("Endpoints", doc("endpoints"), func(s ES) string {
			var all []string
			for _, e := range s.Endpoints {
				all = append(all, e.Addresses...)
			}
			return or(some(all, endpointsShown), unset)
		}),
		age,
	)
}

func ingress() *Columns {
	type I = *networkingv1.Ingress
	return columns(
		name,
		text("Class", "The name of the IngressClass resource that should be used for additional configuration", func(i I) string {
			return at(i.Spec.IngressClassName, none)
		}),
		text("Hosts", "Hosts that incoming requests are matched against before the ingress rule", ingressHosts),
		text("Address", "Address is a list containing ingress points for the load-balancer", func(i I) string {
			var all []string
			for _, in := range i.Status.LoadBalancer.Ingress {
				if address := or(in.IP, in.Hostname); address != "" {
					all = append(all, address)
				}
			}
			return strings.Join(sorted(all), ",")
		}),
		text("Ports", "Ports of TLS configurations that open", func(i I) string {
			if len(i.Spec.TLS) > 0 {
				return "80, 443"
			}
			return "80"
		}),
		age,
	)
}

// hostsShown is how many hosts a cell holds.
const hostsShown = 3

// ingressHosts names the first hosts. How many more there are counts rules, with or without a
// host.
func ingressHosts(i *networkingv1.Ingress) string {
	var hosts []string
	more := false
	for _, rule := range i.Spec.Rules {
		if more = len(hosts) == hostsShown; more {
			break
		}
		if rule.Host != "" {
			hosts = append(hosts, rule.Host)
		}
	}
	text := or(strings.Join(hosts, ","), "*")
	if more {
		text += fmt.Sprintf(" + %d more...", len(i.Spec.Rules)-hostsShown)
	}
	return text
}

func ingressClass() *Columns {
	type IC = *networkingv1.IngressClass
	return columns(
		named(func(m metav1.Object) string { return defaulted(m, networkingv1.AnnotationIsDefaultIngressClass) }),
		text("Controller", "Controller that is responsible for handling this class", func(c IC) string { return c.Spec.Controller }),
		text("Parameters", "A reference to a resource with additional parameters", func(c IC) string {
			p := c.Spec.Parameters
			switch {
			case p == nil:
				return none
			case p.APIGroup == nil:
				return p.Kind + "/" + p.Name
			}
			return p.Kind + "." + *p.APIGroup + "/" + p.Name
		}),
		age,
	)
}

func networkPolicy() *Columns {
	return columns(
		name,
		text("Pod-Selector", swagger(networkingv1.NetworkPolicySpec{}, "podSelector"), func(p *networkingv1.NetworkPolicy) string {
			return metav1.FormatLabelSelector(&p.Spec.PodSelector)
		}),
		age,
	)
}

func ipAddress() *Columns {
	return columns(
		name,
		text("ParentRef", swagger(networkingv1.IPAddressSpec{}, "parentRef"), func(a *networkingv1.IPAddress) string {
			p := a.Spec.ParentRef
			if p == nil {
				return none
			}
			parts := []string{strings.ToLower(schema.GroupResource{Group: p.Group, Resource: p.Resource}.String())}
			if p.Namespace != "" {
				parts = append(parts, p.Namespace)
			}
			return strings.Join(append(parts, p.Name), "/")
		}),
		age,
	)
}
