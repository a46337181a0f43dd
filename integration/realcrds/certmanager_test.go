package realcrds

import "testing"

func TestCertManager(t *testing.T) {
	const parent = "spec.acme.solvers[0].http01.gatewayHTTPRoute.parentRefs[0]"
	project{
		name:  "cert-manager",
		kinds: 6,
		defaults: []defaulted{
			{"clusterissuer", parent + ".group", "gateway.networking.k8s.io"},
			{"clusterissuer", parent + ".kind", "Gateway"},
		},
		refusals: []refusal{
			{
				name: "a field that is required is missing", sample: "certificate",
				edit: edit{"spec.secretName", nil},
				want: []string{`spec.secretName: Required value`},
			},
			{
				name: "a value that is not one of those there are", sample: "certificate",
				edit: edit{"spec.privateKey.algorithm", "DSA"},
				want: []string{`spec.privateKey.algorithm: Unsupported value: "DSA": supported values: "RSA", "ECDSA", "Ed25519"`},
			},
			{
				name: "a duration that is none", sample: "certificate",
				edit: edit{"spec.renewal.windows[0].windowDuration", "soon"},
				want: []string{`spec.renewal.windows[0].windowDuration: Invalid value: "soon": spec.renewal.windows[0].windowDuration in body should match '^([0-9]+(\.[0-9]+)?(s|m|h))+$'`},
			},
			{
				name: "a number where a text belongs", sample: "certificate",
				edit: edit{"spec.duration", int64(90)},
				want: []string{`spec.duration: Invalid value: "integer": spec.duration in body must be of type string: "integer"`},
			},
			{
				name: "bytes that are not written as such", sample: "certificaterequest",
				edit: edit{"spec.request", "!"},
				want: []string{`spec.request: Invalid value: "!": spec.request in body must be of type byte: "!"`},
			},
			{
				name: "a type of challenge that there is not", sample: "challenge",
				edit: edit{"spec.type", "TLS-ALPN-01"},
				want: []string{`spec.type: Unsupported value: "TLS-ALPN-01": supported values: "HTTP-01", "DNS-01"`},
			},
			{
				name: "the rule that an issuer asks one service", sample: "issuer",
				edit: edit{"spec.venafi.cloud", map[string]any{"apiTokenSecretRef": map[string]any{"name": "token"}}},
				want: []string{`spec.venafi: Invalid value: exactly one of tpp, cloud, or ngts must be configured`},
			},
			{
				name: "a required field is missing where there are rules as well", sample: "issuer",
				edit: edit{"spec.venafi.zone", nil},
				want: []string{`spec.venafi.zone: Required value`, unfinished},
			},
		},
	}.run(t)
}
