package builtin

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pawl-dev/pawl/registry"
)

// services is what holds for services (rules B53 to B57). Where their addresses come from is in
// address.go.
var services = rules[*corev1.Service]{
	policy: registry.Policy{
		Namespaced: true, CreateOnUpdate: true, UnconditionalUpdate: true, ReturnDeleted: true, Name: validation.NameIsDNS1035Label,
	},
	spec:     func(s, from *corev1.Service) { s.Spec = from.Spec },
	status:   func(s, from *corev1.Service) { s.Status = from.Status },
	defaults: fillInService,
	born:     func(s *corev1.Service) { pairIPs(s, nil) },
	keep: func(s, old *corev1.Service) {
		old = old.DeepCopy()
		keepAddresses(s, old)
		pairIPs(s, old)
		dropForType(s, old)
	},
	wrong: wrongService,
	wrongAfter: func(s, old *corev1.Service) (errs field.ErrorList) {
		if !hasAddress(s) || !hasAddress(old) || headless(s) && headless(old) {
			return nil
		}
		path := specPath.Child("clusterIPs").Index(0)
		switch {
		case len(s.Spec.ClusterIPs) == 0 && len(old.Spec.ClusterIPs) > 0:
			return field.ErrorList{field.Invalid(path, s.Spec.ClusterIPs, "primary clusterIP can not be unset")}
		case len(old.Spec.ClusterIPs) > 0 && s.Spec.ClusterIPs[0] != old.Spec.ClusterIPs[0]:
			return field.ErrorList{field.Invalid(path, s.Spec.ClusterIPs, "may not change once set")}
		}
		return nil
	},
	claim: claimForService,
}

func serviceKinds() []Kind {
	return []Kind{define(Kind{
		Version: "v1", Kind: "Service", Plural: "services", Singular: "service", ShortNames: []string{"svc"}, Categories: []string{"all"}, Revision: 1,
		Subresources: []Subresource{statusDoor(services)},
	}, services, map[string]func(*corev1.Service) string{
		"spec.clusterIP": func(s *corev1.Service) string { return s.Spec.ClusterIP },
		"spec.type":      func(s *corev1.Service) string { return string(s.Spec.Type) },
	})}
}

func hasAddress(s *corev1.Service) bool { return s.Spec.Type != corev1.ServiceTypeExternalName }

func headless(s *corev1.Service) bool {
	return slices.Equal(s.Spec.ClusterIPs, []string{corev1.ClusterIPNone})
}

func hasNodePorts(s *corev1.Service) bool {
	return s.Spec.Type == corev1.ServiceTypeNodePort || s.Spec.Type == corev1.ServiceTypeLoadBalancer
}

// wantsNodePorts reports whether ports that name no node port get one.
func wantsNodePorts(s *corev1.Service) bool {
	return s.Spec.Type == corev1.ServiceTypeNodePort ||
		s.Spec.Type == corev1.ServiceTypeLoadBalancer && (s.Spec.AllocateLoadBalancerNodePorts == nil || *s.Spec.AllocateLoadBalancerNodePorts)
}

func reachableFromOutside(s *corev1.Service) bool {
	return hasNodePorts(s) || s.Spec.Type == corev1.ServiceTypeClusterIP && len(s.Spec.ExternalIPs) > 0
}

func fillInService(svc *corev1.Service) {
	s := &svc.Spec
	or(&s.SessionAffinity, corev1.ServiceAffinityNone)
	switch s.SessionAffinity {
	case corev1.ServiceAffinityNone:
		s.SessionAffinityConfig = nil
	case corev1.ServiceAffinityClientIP:
		orNew(&s.SessionAffinityConfig, corev1.SessionAffinityConfig{})
		orNew(&s.SessionAffinityConfig.ClientIP, corev1.ClientIPConfig{})
		orNew(&s.SessionAffinityConfig.ClientIP.TimeoutSeconds, corev1.DefaultClientIPServiceAffinitySeconds)
	}
	or(&s.Type, corev1.ServiceTypeClusterIP)
	for i := range s.Ports {
		p := &s.Ports[i]
		or(&p.Protocol, corev1.ProtocolTCP)
		if p.TargetPort == intstr.FromInt32(0) || p.TargetPort == intstr.FromString("") {
			p.TargetPort = intstr.FromInt32(p.Port)
		}
	}
	if reachableFromOutside(svc) {
		or(&s.ExternalTrafficPolicy, corev1.ServiceExternalTrafficPolicyCluster)
	}
	if hasAddress(svc) {
		orNew(&s.InternalTrafficPolicy, corev1.ServiceInternalTrafficPolicyCluster)
	}
	if s.Type == corev1.ServiceTypeLoadBalancer {
		orNew(&s.AllocateLoadBalancerNodePorts, true)
		for i := range svc.Status.LoadBalancer.Ingress {
			if ingress := &svc.Status.LoadBalancer.Ingress[i]; ingress.IP != "" {
				orNew(&ingress.IPMode, corev1.LoadBalancerIPModeVIP)
			}
		}
	}
}

// keepAddresses puts back the addresses and node ports that an update leaves out (rule B56).
func keepAddresses(s, old *corev1.Service) {
	if hasAddress(s) && hasAddress(old) {
		or(&s.Spec.ClusterIP, old.Spec.ClusterIP)
		if len(s.Spec.ClusterIPs) == 0 {
			s.Spec.ClusterIPs = old.Spec.ClusterIPs
		}
		if s.Spec.IPFamilyPolicy == nil {
			s.Spec.IPFamilyPolicy = old.Spec.IPFamilyPolicy
		}
		if len(s.Spec.IPFamilies) == 0 {
			s.Spec.IPFamilies = old.Spec.IPFamilies
		}
	}
	if !hasNodePorts(s) || !hasNodePorts(old) {
		return
	}
	named, used := map[string]int32{}, map[int32]bool{}
	for _, p := range old.Spec.Ports {
		named[p.Name] = p.NodePort
	}
	for _, p := range s.Spec.Ports {
		used[p.NodePort] = true
	}
	for i := range s.Spec.Ports {
		if p := &s.Spec.Ports[i]; p.NodePort == 0 && !used[named[p.Name]] {
			p.NodePort = named[p.Name]
		}
	}
	or(&s.Spec.HealthCheckNodePort, old.Spec.HealthCheckNodePort)
}

// pairIPs makes the one address and the list agree, where a client that knows only the one
// changed it; old is nil for a new service.
func pairIPs(s, old *corev1.Service) {
	switch {
	case old == nil:
		if s.Spec.ClusterIP != "" && len(s.Spec.ClusterIPs) == 0 {
			s.Spec.ClusterIPs = []string{s.Spec.ClusterIP}
		}
	case s.Spec.ClusterIP != old.Spec.ClusterIP && slices.Equal(s.Spec.ClusterIPs, old.Spec.ClusterIPs):
		s.Spec.ClusterIPs = nil
		if s.Spec.ClusterIP != "" {
			s.Spec.ClusterIPs = []string{s.Spec.ClusterIP}
		}
	}
}

// dropForType drops what only the old type of a service had, unless the client changed it.
func dropForType(s, old *corev1.Service) {
	is, was := &s.Spec, &old.Spec
	if hasAddress(old) && !hasAddress(s) {
		if is.ClusterIP == was.ClusterIP && slices.Equal(is.ClusterIPs, was.ClusterIPs) {
			is.ClusterIP, is.ClusterIPs = "", nil
		}
		if slices.Equal(is.IPFamilies, was.IPFamilies) {
			is.IPFamilies = nil
		}
		if samePointed(is.IPFamilyPolicy, was.IPFamilyPolicy) {
			is.IPFamilyPolicy = nil
		}
	}
	if hasNodePorts(old) && !hasNodePorts(s) && slices.Equal(nodePortsOf(s), nodePortsOf(old)) {
		for i := range is.Ports {
			is.Ports[i].NodePort = 0
		}
		is.HealthCheckNodePort = 0
	}
	if was.Type == corev1.ServiceTypeLoadBalancer && is.Type != corev1.ServiceTypeLoadBalancer {
		if samePointed(is.AllocateLoadBalancerNodePorts, was.AllocateLoadBalancerNodePorts) {
			is.AllocateLoadBalancerNodePorts = nil
		}
		if samePointed(is.LoadBalancerClass, was.LoadBalancerClass) {
			is.LoadBalancerClass = nil
		}
	}
	if reachableFromOutside(old) && !reachableFromOutside(s) && is.ExternalTrafficPolicy == was.ExternalTrafficPolicy {
		is.ExternalTrafficPolicy = ""
	}
	if is.Type != corev1.ServiceTypeLoadBalancer {
		s.Status.LoadBalancer = corev1.LoadBalancerStatus{}
	}
}

func samePointed[T comparable](a, b *T) bool {
	return a == b || a != nil && b != nil && *a == *b
}

func nodePortsOf(s *corev1.Service) []int32 {
	ports := map[int32]bool{}
	for _, p := range s.Spec.Ports {
		ports[p.NodePort] = true
	}
	ports[s.Spec.HealthCheckNodePort] = true
	delete(ports, 0)
	return slices.Sorted(maps.Keys(ports))
}

var (
	serviceTypes = []corev1.ServiceType{
		corev1.ServiceTypeClusterIP, corev1.ServiceTypeExternalName, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeNodePort,
	}
	affinities = []corev1.ServiceAffinity{corev1.ServiceAffinityClientIP, corev1.ServiceAffinityNone}
)

func wrongService(svc *corev1.Service) field.ErrorList {
	s := &svc.Spec
	errs := wrongFinalizers(svc)
	if len(s.Ports) == 0 && hasAddress(svc) && !headless(svc) {
		errs = append(errs, field.Required(specPath.Child("ports"), ""))
	}
	switch {
	case !hasAddress(svc):
		errs = append(errs, wrongExternalName(svc)...)
	case hasNodePorts(svc) && headless(svc):
		errs = append(errs, field.Invalid(specPath.Child("clusterIPs").Index(0), s.ClusterIPs[0], "may not be set to 'None' for "+string(s.Type)+" services"))
	}
	errs = append(errs, wrongServicePorts(svc)...)
	errs = append(errs, metav1validation.ValidateLabels(s.Selector, specPath.Child("selector"))...)
	errs = append(errs, oneOf(s.SessionAffinity, specPath.Child("sessionAffinity"), affinities...)...)
	if hasAddress(svc) {
		errs = append(errs, wrongIPs(s)...)
	}
	for i, ip := range s.ExternalIPs {
		errs = append(errs, utilvalidation.IsValidIP(specPath.Child("externalIPs").Index(i), ip)...)
	}
	errs = append(errs, oneOf(s.Type, specPath.Child("type"), serviceTypes...)...)
	errs = append(errs, wrongNodePorts(svc)...)
	if s.Type != corev1.ServiceTypeLoadBalancer {
		only := "may only be used when `type` is 'LoadBalancer'"
		if len(s.LoadBalancerSourceRanges) > 0 {
			errs = append(errs, field.Forbidden(specPath.Child("LoadBalancerSourceRanges"), only))
		}
		if s.AllocateLoadBalancerNodePorts != nil {
			errs = append(errs, field.Forbidden(specPath.Child("allocateLoadBalancerNodePorts"), only))
		}
	}
	return errs
}

func wrongExternalName(svc *corev1.Service) (errs field.ErrorList) {
	s, never := &svc.Spec, "may not be set for ExternalName services"
	if len(s.ClusterIPs) > 0 {
		errs = append(errs, field.Forbidden(specPath.Child("clusterIPs"), never))
	}
	if len(s.IPFamilies) > 0 {
		errs = append(errs, field.Forbidden(specPath.Child("ipFamilies"), never))
	}
	if s.IPFamilyPolicy != nil {
		errs = append(errs, field.Forbidden(specPath.Child("ipFamilyPolicy"), never))
	}
	path := specPath.Child("externalName")
	if name := strings.TrimSuffix(s.ExternalName, "."); name != "" {
		return append(errs, wrongSubdomain(name, path)...)
	}
	return append(errs, field.Required(path, ""))
}

// wrongServicePorts says what is wrong with each port by itself; several need names (rule B57).
func wrongServicePorts(svc *corev1.Service) (errs field.ErrorList) {
	names := map[string]bool{}
	for i, p := range svc.Spec.Ports {
		path := specPath.Child("ports").Index(i)
		switch {
		case p.Name != "":
			errs = append(errs, wrongLabel(p.Name, path.Child("name"))...)
			if names[p.Name] {
				errs = append(errs, field.Duplicate(path.Child("name"), p.Name))
			}
			names[p.Name] = true
		case len(svc.Spec.Ports) > 1:
			errs = append(errs, field.Required(path.Child("name"), ""))
		}
		errs = append(errs, wrongPort(p.Port, path.Child("port"))...)
		errs = append(errs, oneOf(p.Protocol, path.Child("protocol"), protocols...)...)
		target := path.Child("targetPort")
		if p.TargetPort.Type == intstr.Int {
			errs = append(errs, wrongPort(p.TargetPort.IntVal, target)...)
			continue
		}
		for _, why := range utilvalidation.IsValidPortName(p.TargetPort.StrVal) {
			errs = append(errs, field.Invalid(target, p.TargetPort.StrVal, why))
		}
	}
	return errs
}

// wrongIPs says what is wrong with the addresses of a service, as far as it shows by themselves.
func wrongIPs(s *corev1.ServiceSpec) (errs field.ErrorList) {
	path := specPath.Child("clusterIPs")
	switch {
	case s.ClusterIP != "" && len(s.ClusterIPs) == 0:
		errs = append(errs, field.Required(path, ""))
	case s.ClusterIP != "" && s.ClusterIPs[0] != s.ClusterIP:
		errs = append(errs, field.Invalid(path, s.ClusterIPs, "first value must match `clusterIP`"))
	case s.ClusterIP == "" && len(s.ClusterIPs) > 0:
		errs = append(errs, field.Invalid(path, s.ClusterIPs, "must be empty when `clusterIP` is not specified"))
	}
	for i, ip := range s.ClusterIPs {
		if i == 0 && ip == corev1.ClusterIPNone {
			if len(s.ClusterIPs) > 1 {
				errs = append(errs, field.Invalid(path, s.ClusterIPs, "'None' must be the first and only value"))
			}
			continue
		}
		errs = append(errs, utilvalidation.IsValidIP(path.Index(i), ip)...)
	}
	if len(s.ClusterIPs) > 2 {
		errs = append(errs, field.Invalid(path, s.ClusterIPs, "may only hold up to 2 values"))
	}
	return errs
}

// wrongNodePorts says where node ports may not be, and which ports of a service are the same.
func wrongNodePorts(svc *corev1.Service) (errs field.ErrorList) {
	type of struct {
		protocol corev1.Protocol
		port     int32
	}
	onNodes, ports := map[of]bool{}, map[of]bool{}
	path := specPath.Child("ports")
	if svc.Spec.Type == corev1.ServiceTypeClusterIP {
		for i, p := range svc.Spec.Ports {
			if p.NodePort != 0 {
				errs = append(errs, field.Forbidden(path.Index(i).Child("nodePort"), "may not be used when `type` is 'ClusterIP'"))
			}
		}
	}
	for i, p := range svc.Spec.Ports {
		if key := (of{p.Protocol, p.NodePort}); p.NodePort != 0 {
			if onNodes[key] {
				errs = append(errs, field.Duplicate(path.Index(i).Child("nodePort"), p.NodePort))
			}
			onNodes[key] = true
		}
	}
	for i, p := range svc.Spec.Ports {
		if ports[of{p.Protocol, p.Port}] {
			errs = append(errs, field.Duplicate(path.Index(i), corev1.ServicePort{Protocol: p.Protocol, Port: p.Port}))
		}
		ports[of{p.Protocol, p.Port}] = true
	}
	return errs
}
