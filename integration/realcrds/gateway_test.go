package realcrds

import "testing"

// hostname is what a hostname of a listener must match.
const hostname = `^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`

// waiting is the condition that a gateway has until a controller says something of it.
func waiting(kind string) map[string]any {
	return map[string]any{
		"type": kind, "status": "Unknown", "reason": "Pending", "message": "Waiting for controller",
		"lastTransitionTime": "1970-01-01T00:00:00Z",
	}
}

func TestGatewayAPI(t *testing.T) {
	project{
		name:  "gateway-api",
		kinds: 10,
		defaults: []defaulted{
			{"gateway", "spec.listeners[0].tls.mode", "Terminate"},
			{"gateway", "spec.listeners[0].tls.certificateRefs[0].kind", "Secret"},
			{"gateway", "spec.listeners[0].tls.certificateRefs[0].group", ""},
			{"gateway", "spec.listeners[0].allowedRoutes.namespaces.from", "Same"},
			{"gateway", "spec.listeners[1].allowedRoutes.namespaces.from", "Same"},
			{"gateway", "status.conditions", []any{waiting("Accepted"), waiting("Programmed")}},
			{"httproute", "spec.parentRefs[0].group", "gateway.networking.k8s.io"},
			{"httproute", "spec.parentRefs[0].kind", "Gateway"},
			{"httproute", "spec.rules[1].backendRefs[0].weight", int64(1)},
			{"httproute", "spec.rules[1].matches", []any{map[string]any{"path": map[string]any{"type": "PathPrefix", "value": "/"}}}},
		},
		refusals: []refusal{
			{
				name: "a field that is required is missing", sample: "gateway",
				edit: edit{"spec.gatewayClassName", nil},
				want: []string{`spec.gatewayClassName: Required value`, unfinished},
			},
			{
				name: "a value that is not one of those there are", sample: "gateway",
				edit: edit{"spec.listeners[0].tls.mode", "Sometimes"},
				want: []string{`spec.listeners[0].tls.mode: Unsupported value: "Sometimes": supported values: "Terminate", "Passthrough"`, unfinished},
			},
			{
				name: "a hostname that is none", sample: "gateway",
				edit: edit{"spec.listeners[0].hostname", "Not A Host"},
				want: []string{`spec.listeners[0].hostname: Invalid value: "Not A Host": spec.listeners[0].hostname in body should match '` + hostname + `'`},
			},
			{
				name: "a port that no machine has", sample: "gateway",
				edit: edit{"spec.listeners[1].port", int64(70000)},
				want: []string{`spec.listeners[1].port: Invalid value: 70000: spec.listeners[1].port in body should be less than or equal to 65535`},
			},
			{
				name: "the rule that HTTP has no TLS", sample: "gateway",
				edit: edit{"spec.listeners[0].protocol", "HTTP"},
				want: []string{`spec.listeners: Invalid value: tls must not be specified for protocols ['HTTP', 'TCP', 'UDP']`},
			},
			{
				name: "two listeners of one name, by the key of the list and by a rule", sample: "gateway",
				edit: edit{"spec.listeners[1].name", "https"},
				want: []string{`spec.listeners[1]: Duplicate value: {"name":"https"}`, `spec.listeners: Invalid value: Listener name must be unique within the Gateway`},
			},
			{
				name: "the rule that a service is named with its port", sample: "httproute",
				edit: edit{"spec.rules[0].backendRefs[0].port", nil},
				want: []string{`spec.rules[0].backendRefs[0]: Invalid value: Must have port for Service reference`},
			},
			{
				name: "the rule that says which filter a type is for", sample: "httproute",
				edit: edit{"spec.rules[0].filters[0].type", "ResponseHeaderModifier"},
				want: []string{
					`spec.rules[0].filters[0]: Invalid value: filter.requestHeaderModifier must be nil if the filter.type is not RequestHeaderModifier`,
					`spec.rules[0].filters[0]: Invalid value: filter.responseHeaderModifier must be specified for ResponseHeaderModifier filter.type`,
				},
			},
			{
				name: "the rule that authorities come from one place", sample: "backendtlspolicy",
				edit: edit{"spec.validation.caCertificateRefs", []any{map[string]any{"group": "", "kind": "ConfigMap", "name": "ca"}}},
				want: []string{`spec.validation: Invalid value: must not contain both CACertificateRefs and WellKnownCACertificates`},
			},
			{
				name: "the rule that a class keeps its controller", sample: "gatewayclass", when: onUpdate,
				edit: edit{"spec.controllerName", "ratchet.example/others"},
				want: []string{`spec.controllerName: Invalid value: "ratchet.example/others": field is immutable`},
			},
			{
				name: "a status that its part of the schema does not allow", sample: "gateway", when: onStatus,
				edit: edit{"status.conditions[0].status", "Perhaps"},
				want: []string{`status.conditions[0].status: Unsupported value: "Perhaps": supported values: "True", "False", "Unknown"`, unfinished},
			},
		},
	}.run(t)
}
