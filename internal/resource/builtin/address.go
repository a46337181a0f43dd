package builtin

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"net/netip"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pawl-dev/pawl/storage"
)

// An address, or a port of the nodes, is a key that is put in the same commit as the service that
// has it, on the condition that it is free. So no address is ever held by a service that does not
// exist, none is given twice, and nothing has to be repaired.

var serviceRange = netip.MustParsePrefix("10.0.0.0/24") // the addresses of services (rule B54)

const (
	nodePortFirst, nodePortLast = 30000, 32767 // rule B55
	addressesReserved           = 17           // the first, and what clients are likely to ask for by hand
)

// claimForService takes the addresses and ports that a service needs, and gives back those that
// it, or the old one, had and has no more (rules B54 to B56).
func claimForService(view *storage.View, s, old *corev1.Service) field.ErrorList {
	c := claims{view: view, addresses: view.ClaimPrefix("serviceaddresses"), ports: view.ClaimPrefix("servicenodeports")}
	c.had = c.keysOf(old)
	if s != nil {
		c.owner = s.Namespace + "/" + s.Name
		c.forService(s)
	}
	if len(c.errs) > 0 {
		return c.errs
	}
	has := c.keysOf(s)
	for _, key := range c.had {
		if !slices.Contains(has, key) {
			view.Delete(key)
		}
	}
	return nil
}

// keysOf are the keys that a service holds.
func (c *claims) keysOf(s *corev1.Service) (keys []string) {
	if s == nil {
		return nil
	}
	for _, ip := range s.Spec.ClusterIPs {
		if ip != corev1.ClusterIPNone {
			keys = append(keys, c.addresses+ip)
		}
	}
	for _, port := range nodePortsOf(s) {
		keys = append(keys, c.ports+strconv.Itoa(int(port)))
	}
	return keys
}

// claims are what one service takes in one attempt.
type claims struct {
	view             *storage.View
	owner            string
	addresses, ports string // what their keys begin with
	had, taken       []string
	errs             field.ErrorList
}

func (c *claims) forService(s *corev1.Service) {
	if !hasAddress(s) {
		return
	}
	if c.families(s); len(c.errs) > 0 {
		return
	}
	if !headless(s) {
		c.address(s)
	}
	if hasNodePorts(s) {
		c.nodePorts(s)
	}
}

// families fills in the families of addresses: this server has one, IPv4.
func (c *claims) families(s *corev1.Service) {
	selected := headless(s) && len(s.Spec.Selector) == 0 // whoever wrote its endpoints chose the families
	if selected {
		orNew(&s.Spec.IPFamilyPolicy, corev1.IPFamilyPolicyRequireDualStack)
	}
	orNew(&s.Spec.IPFamilyPolicy, corev1.IPFamilyPolicySingleStack)
	if len(s.Spec.IPFamilies) == 0 {
		s.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}
	}
	if selected {
		if *s.Spec.IPFamilyPolicy != corev1.IPFamilyPolicySingleStack && len(s.Spec.IPFamilies) == 1 {
			s.Spec.IPFamilies = append(s.Spec.IPFamilies, other(s.Spec.IPFamilies[0]))
		}
		return
	}
	if *s.Spec.IPFamilyPolicy == corev1.IPFamilyPolicyRequireDualStack {
		c.errs = append(c.errs, field.Invalid(specPath.Child("ipFamilyPolicy"), s.Spec.IPFamilyPolicy, "this cluster is not configured for dual-stack services"))
	}
	for i, family := range s.Spec.IPFamilies {
		if family != corev1.IPv4Protocol {
			c.errs = append(c.errs, field.Invalid(specPath.Child("ipFamilies").Index(i), family, "not configured on this cluster"))
		}
	}
}

func other(f corev1.IPFamily) corev1.IPFamily {
	if f == corev1.IPv4Protocol {
		return corev1.IPv6Protocol
	}
	return corev1.IPv4Protocol
}

func (c *claims) address(s *corev1.Service) {
	path := specPath.Child("clusterIPs")
	if len(s.Spec.ClusterIPs) == 0 && s.Spec.ClusterIP == "" {
		n, ok := c.free(s, c.addresses, 1<<(32-serviceRange.Bits())-1, addressesReserved, func(n int) string { return addressAt(n).String() })
		if !ok {
			c.errs = append(c.errs, field.Invalid(path, s.Spec.ClusterIPs, "failed to allocate IP: range is full"))
			return
		}
		s.Spec.ClusterIP = addressAt(n).String()
		s.Spec.ClusterIPs = []string{s.Spec.ClusterIP}
		return
	}
	for i, text := range s.Spec.ClusterIPs {
		ip, err := netip.ParseAddr(text)
		if err != nil {
			c.errs = append(c.errs, field.Invalid(path.Index(i), text, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"))
			return
		}
		why := ""
		switch {
		case slices.Contains(c.had, c.addresses+text):
			continue
		case !ip.Is4():
			c.errs = append(c.errs, field.Invalid(path.Index(i), s.Spec.ClusterIPs, "IPv6 is not configured on this cluster"))
			return
		case !serviceRange.Contains(ip):
			why = fmt.Sprintf("the provided IP (%s) is not in the valid range. The range of valid IPs is %s", text, serviceRange)
		case !c.take(c.addresses + text):
			why = "provided IP is already allocated"
		}
		if why != "" {
			c.errs = append(c.errs, field.Invalid(path, s.Spec.ClusterIPs, fmt.Sprintf("failed to allocate IP %s: %s", text, why)))
		}
	}
}

// FirstServiceAddress is that of the service kubernetes (rule B24).
func FirstServiceAddress() string { return addressAt(1).String() }

// addressAt is the n-th address of the range.
func addressAt(n int) netip.Addr {
	a := serviceRange.Addr().As4()
	a[3] += byte(n)
	return netip.AddrFrom4(a)
}

// nodePorts takes a port of the nodes for each that is asked for, or wanted. Ports of one number and
// different protocols share one.
func (c *claims) nodePorts(s *corev1.Service) {
	given := map[int32]int32{} // node ports by port
	for i := range s.Spec.Ports {
		if p := &s.Spec.Ports[i]; p.NodePort != 0 {
			c.port(p.NodePort, specPath.Child("ports").Index(i).Child("nodePort"))
			given[p.Port] = cmp.Or(given[p.Port], p.NodePort)
		}
	}
	for i := range s.Spec.Ports {
		p := &s.Spec.Ports[i]
		if p.NodePort != 0 || !wantsNodePorts(s) {
			continue
		}
		if given[p.Port] == 0 {
			given[p.Port] = c.anyPort(s, specPath.Child("ports").Index(i).Child("nodePort"))
		}
		p.NodePort = given[p.Port]
	}
	if path := specPath.Child("healthCheckNodePort"); s.Spec.HealthCheckNodePort != 0 {
		c.port(s.Spec.HealthCheckNodePort, path)
	} else if s.Spec.Type == corev1.ServiceTypeLoadBalancer && s.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal {
		s.Spec.HealthCheckNodePort = c.anyPort(s, path)
	}
}

func (c *claims) port(port int32, path *field.Path) {
	key := c.ports + strconv.Itoa(int(port))
	switch {
	case slices.Contains(c.had, key) || slices.Contains(c.taken, key):
	case port < nodePortFirst || port > nodePortLast:
		c.errs = append(c.errs, field.Invalid(path, port, fmt.Sprintf(
			"provided port is not in the valid range. The range of valid ports is %d-%d", nodePortFirst, nodePortLast)))
	case !c.take(key):
		c.errs = append(c.errs, field.Invalid(path, port, "provided port is already allocated"))
	}
}

func (c *claims) anyPort(s *corev1.Service, path *field.Path) int32 {
	n, ok := c.free(s, c.ports, nodePortLast-nodePortFirst+1, 0, func(n int) string { return strconv.Itoa(nodePortFirst + n) })
	if !ok {
		c.errs = append(c.errs, field.Invalid(path, 0, "failed to allocate a nodePort: range is full"))
		return 0
	}
	return int32(nodePortFirst + n)
}

// take puts a key if it is free. That it is, or is not, becomes a condition.
func (c *claims) take(key string) bool {
	if v := c.view.Get(key); v != nil && !v.Deleted {
		return false
	}
	c.view.Put(key, []byte(c.owner))
	c.taken = append(c.taken, key)
	return true
}

// free takes some free key out of size many. It begins at a place that depends on the service alone,
// and comes to the reserved ones last.
func (c *claims) free(s *corev1.Service, prefix string, size, reserved int, name func(n int) string) (int, bool) {
	h := fnv.New32a()
	h.Write([]byte(s.UID))
	ordinary := size - reserved
	start := int(h.Sum32() % uint32(ordinary))
	for i := range size {
		n := reserved + (start+i)%ordinary
		if i >= ordinary {
			n = i - ordinary
		}
		if reserved > 0 && n < 2 {
			continue // the address of the range itself, and that of the server (rule B24)
		}
		key := prefix + name(n)
		if v := c.view.Peek(key); (v == nil || v.Deleted) && !slices.Contains(c.taken, key) && c.take(key) {
			return n, true
		}
	}
	return 0, false
}
