package builtin

import (
	"strings"
	"testing"
)

func serviceOf(spec string) string {
	return `{"metadata":{"name":"a","namespace":"b"},"spec":{` + spec + `}}`
}

const webPort = `"ports":[{"port":80}]`

func TestServicesAreFilledIn(t *testing.T) { // rules B53, B56
	const addressed = `"clusterIP":"10.0.0.9","clusterIPs":["10.0.0.9"],"ipFamilies":["IPv4"],"ipFamilyPolicy":"SingleStack"`
	onNodes := serviceOf(`"type":"NodePort",` + addressed + `,"ports":[{"name":"x","port":80,"nodePort":30080},{"name":"y","port":81,"nodePort":30081}]`)
	named := `{"metadata":{"name":"a"},"spec":{"type":"ExternalName","externalName":"x.example"}}`
	parts(t, []part{
		{"a service has an address", "Service", "", "", serviceOf(webPort), "spec.type", `"ClusterIP"`},
		{"and keeps clients nowhere", "Service", "", "", serviceOf(webPort), "spec.sessionAffinity", `"None"`},
		{"or for three hours", "Service", "", "", serviceOf(`"sessionAffinity":"ClientIP"`), "spec.sessionAffinityConfig", `{"clientIP":{"timeoutSeconds":10800}}`},
		{"ports are TCP, and the same behind it", "Service", "", "", serviceOf(webPort), "spec.ports", `[{"port":80,"protocol":"TCP","targetPort":80}]`},
		{"what comes from inside goes anywhere", "Service", "", "", serviceOf(webPort), "spec.internalTrafficPolicy", `"Cluster"`},
		{"what comes from outside too", "Service", "", "", serviceOf(`"type":"NodePort"`), "spec.externalTrafficPolicy", `"Cluster"`},
		{"if anything can", "Service", "", "", serviceOf(webPort), "spec.externalTrafficPolicy", ""},
		{"a load balancer has ports of nodes", "Service", "", "", serviceOf(`"type":"LoadBalancer"`), "spec.allocateLoadBalancerNodePorts", "true"},
		{"an external name has no policy inside", "Service", "", "", named, "spec.internalTrafficPolicy", ""},
		{"rule B7: a new service has no status", "Service", "", "", `{"metadata":{"name":"a"},"spec":{},"status":{"conditions":[{"type":"x"}]}}`, "status", `{"loadBalancer":{}}`},
		{"an old client gives one address", "Service", "", "", serviceOf(`"clusterIP":"10.0.0.9"`), "spec.clusterIPs", `["10.0.0.9"]`},

		{"an update that leaves the address out keeps it", "Service", "", serviceOf(addressed), serviceOf(webPort), "spec.clusterIPs", `["10.0.0.9"]`},
		{"and the policy", "Service", "", serviceOf(addressed), serviceOf(webPort), "spec.ipFamilyPolicy", `"SingleStack"`},
		{"one that leaves ports of nodes out keeps them, by name", "Service", "", onNodes, serviceOf(`"type":"NodePort","ports":[{"name":"y","port":81},{"name":"z","port":82}]`), "spec.ports",
			`[{"name":"y","nodePort":30081,"port":81,"protocol":"TCP","targetPort":81},{"name":"z","port":82,"protocol":"TCP","targetPort":82}]`},
		{"unless another port took it", "Service", "", onNodes, serviceOf(`"type":"NodePort","ports":[{"name":"y","port":81},{"name":"z","port":82,"nodePort":30081}]`), "spec.ports.0.nodePort", ""},
		{"what becomes an external name loses its address", "Service", "", serviceOf(addressed),
			strings.Replace(serviceOf(addressed+`,"externalName":"x"`), `"spec":{`, `"spec":{"type":"ExternalName",`, 1), "spec",
			`{"externalName":"x","sessionAffinity":"None","type":"ExternalName"}`},
		{"what no longer is on nodes loses its ports there", "Service", "", onNodes, strings.Replace(onNodes, "NodePort", "ClusterIP", 1), "spec.ports.0.nodePort", ""},
		{"rule B10: status by its door", "Service", "status", serviceOf(addressed), `{"metadata":{"name":"a"},"spec":{},"status":{"loadBalancer":{"ingress":[{"ip":"1.2.3.4"}]}}}`,
			"status.loadBalancer.ingress", `[{"ip":"1.2.3.4"}]`},
	})
}

func TestWhatIsWrongWithServices(t *testing.T) { // rules B16, B56, B57
	refusals(t, []write{
		{"a service has ports", "Service", "", "", serviceOf(``), "spec.ports: Required value"},
		{"but for a headless one", "Service", "", "", serviceOf(`"clusterIP":"None","clusterIPs":["None"]`), ""},
		{"several ports have names", "Service", "", "", serviceOf(`"ports":[{"port":80,"name":"a"},{"port":81}]`), "spec.ports[1].name: Required value"},
		{"which are different", "Service", "", "", serviceOf(`"ports":[{"port":80,"name":"a"},{"port":81,"name":"a"}]`), `spec.ports[1].name: Duplicate value: "a"`},
		{"as are the ports", "Service", "", "", serviceOf(`"ports":[{"port":80,"name":"a"},{"port":80,"name":"b"}]`), `spec.ports[1]: Duplicate value: {"protocol":"TCP","port":80,"targetPort":0}`},
		{"a port is a number of a port", "Service", "", "", serviceOf(`"ports":[{"port":0,"targetPort":"Not a name"}]`),
			"[spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive, " +
				`spec.ports[0].targetPort: Invalid value: "Not a name": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)]`},
		{"a type is one of four", "Service", "", "", serviceOf(`"type":"Odd",` + webPort),
			`spec.type: Unsupported value: "Odd": supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort"`},
		{"an external name is one", "Service", "", "", serviceOf(`"type":"ExternalName","clusterIPs":["10.0.0.1"]`),
			"[spec.clusterIPs: Forbidden: may not be set for ExternalName services, spec.externalName: Required value]"},
		{"ports of nodes are for those who want them", "Service", "", "", serviceOf(`"ports":[{"port":80,"nodePort":30000}]`),
			"spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'"},
		{"no address, no ports of nodes", "Service", "", "", serviceOf(`"type":"NodePort","clusterIP":"None","clusterIPs":["None"],` + webPort),
			`spec.clusterIPs[0]: Invalid value: "None": may not be set to 'None' for NodePort services`},
		{"the address is the first of the list", "Service", "", "", serviceOf(`"clusterIP":"10.0.0.1","clusterIPs":["10.0.0.2"],` + webPort),
			"spec.clusterIPs: Invalid value: [\"10.0.0.2\"]: first value must match `clusterIP`"},
		{"an address does not change", "Service", "", serviceOf(`"clusterIP":"10.0.0.1","clusterIPs":["10.0.0.1"],` + webPort), serviceOf(`"clusterIP":"10.0.0.2","clusterIPs":["10.0.0.2"],` + webPort),
			`spec.clusterIPs[0]: Invalid value: ["10.0.0.2"]: may not change once set`},
		{"but by way of an external name", "Service", "", serviceOf(`"type":"ExternalName","externalName":"x"`), serviceOf(`"clusterIP":"10.0.0.2","clusterIPs":["10.0.0.2"],` + webPort), ""},
	})
}
