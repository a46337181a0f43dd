package builtin

import "testing"

// ingressTo is an ingress with one path, sent to one backend.
func ingressTo(path, backend string) string {
	return `{"metadata":{"name":"a","generation":3},"spec":{"rules":[{"http":{"paths":[{` + path + `,"backend":{` + backend + `}}]}}]}}`
}

const (
	prefix = `"pathType":"Prefix","path":"/"`
	web    = `"service":{"name":"web","port":{"number":80}}`
)

func TestIngressesAreFilledIn(t *testing.T) {
	sent := ingressTo(prefix, web)
	parts(t, []part{
		{"a new ingress has generation 1", "Ingress", "", "", sent, "metadata.generation", "1"},
		{"and no addresses", "Ingress", "", "", `{"status":{"loadBalancer":{"ingress":[{"ip":"1.2.3.4"}]}}}`, "status", `{"loadBalancer":{}}`},
		{"another path raises the generation", "Ingress", "", sent, ingressTo(`"pathType":"Exact","path":"/"`, web), "metadata.generation", "4"},
		{"rule B10: the door for status gives it addresses", "Ingress", "status", sent, `{"status":{"loadBalancer":{"ingress":[{"ip":"1.2.3.4"}]}}}`, "status.loadBalancer.ingress.0.ip", `"1.2.3.4"`},
		{"rule B10: and changes no rule", "Ingress", "status", sent, `{"spec":{}}`, "spec.rules.0.http.paths.0.path", `"/"`},
	})
}

func TestWhatIsWrongWithIngresses(t *testing.T) { // rules B16, B69
	const subdomain = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character " +
		`(e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`
	const at = "spec.rules[0].http.paths[0]"
	refusals(t, []write{
		{"one as it should be", "Ingress", "", "", ingressTo(prefix, web), ""},
		{"a port may have a name", "Ingress", "", "", ingressTo(prefix, `"service":{"name":"web","port":{"name":"http"}}`), ""},
		{"traffic may go to some other object", "Ingress", "", "", ingressTo(prefix, `"resource":{"apiGroup":"x.example","kind":"Bucket","name":"b"}`), ""},
		{"or all to one place", "Ingress", "", "", `{"spec":{"defaultBackend":{` + web + `},"ingressClassName":"x","tls":[{"hosts":["*.x.example","x.example"],"secretName":"s"}]}}`, ""},
		{"an ingress leads somewhere", "Ingress", "", "", `{"spec":{}}`, "spec: Invalid value: null: either `defaultBackend` or `rules` must be specified"},
		{"rule B69: a path has a type", "Ingress", "", "", ingressTo(`"path":"/"`, web), at + ".pathType: Required value: pathType must be specified"},
		{"which is one that there is", "Ingress", "", "", ingressTo(`"pathType":"Odd","path":"x"`, web),
			at + `.pathType: Unsupported value: "Odd": supported values: "Exact", "ImplementationSpecific", "Prefix"`},
		{"a path begins at the top", "Ingress", "", "", ingressTo(`"pathType":"Exact"`, web), at + `.path: Invalid value: "": must be an absolute path`},
		{"where it is said what it means, it may be left out", "Ingress", "", "", ingressTo(`"pathType":"ImplementationSpecific"`, web), ""},
		{"and begins at the top otherwise", "Ingress", "", "", ingressTo(`"pathType":"ImplementationSpecific","path":"x"`, web), at + `.path: Invalid value: "x": must be an absolute path`},
		{"a path is plain", "Ingress", "", "", ingressTo(`"pathType":"Prefix","path":"/a//b/%2f/.."`, web),
			"[" + at + `.path: Invalid value: "/a//b/%2f/..": must not contain '//', ` + at + `.path: Invalid value: "/a//b/%2f/..": must not contain '%2f', ` +
				at + `.path: Invalid value: "/a//b/%2f/..": cannot end with '/..']`},
		{"rules without paths", "Ingress", "", "", `{"spec":{"rules":[{"http":{"paths":[]}},{"host":"x.example"}]}}`, "spec.rules[0].http.paths: Required value"},
		{"a host has a name", "Ingress", "", "", `{"spec":{"rules":[{"host":"01.2.3.4"},{"host":"A"},{"host":"a.*"}]}}`,
			`[spec.rules[0].host: Invalid value: "01.2.3.4": must be a DNS name, not an IP address, spec.rules[1].host: Invalid value: "A": ` + subdomain + `, ` +
				`spec.rules[2].host: Invalid value: "a.*": a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case ` +
				`alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is ` +
				`'\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')]`},
		{"names are such", "Ingress", "", "", `{"spec":{"defaultBackend":{` + web + `},"ingressClassName":"A","tls":[{"hosts":["B"],"secretName":"C"}]}}`,
			`[spec.tls[0].hosts[0]: Invalid value: "B": ` + subdomain + `, spec.tls[0].secretName: Invalid value: "C": ` + subdomain + `, spec.ingressClassName: Invalid value: "A": ` + subdomain + `]`},
		{"a backend is something", "Ingress", "", "", ingressTo(prefix, ""), at + `.backend: Invalid value: "": resource or service backend is required`},
		{"and one thing", "Ingress", "", "", ingressTo(prefix, web+`,"resource":{"kind":"K","name":"n"}`), at + `.backend: Invalid value: "": cannot set both resource and service backends`},
		{"a service has a name and a port", "Ingress", "", "", ingressTo(prefix, `"service":{}`),
			"[" + at + ".backend.service.name: Required value, " + at + ".backend: Required value: port name or number is required]"},
		{"which is said one way", "Ingress", "", "", ingressTo(prefix, `"service":{"name":"web","port":{"name":"http","number":80}}`),
			at + `.backend: Invalid value: "": cannot set both port name & port number`},
		{"and is one that there is", "Ingress", "", "", ingressTo(prefix, `"service":{"name":"web","port":{"number":70000}}`),
			at + ".backend.service.port.number: Invalid value: 70000: must be between 1 and 65535, inclusive"},
		{"or could be", "Ingress", "", "", ingressTo(prefix, `"service":{"name":"web","port":{"name":"1"}}`),
			at + `.backend.service.port.name: Invalid value: "1": must contain at least one letter (a-z)`},
		{"some other object is named", "Ingress", "", "", ingressTo(prefix, `"resource":{"apiGroup":"A","name":"a/b"}`),
			"[" + at + `.backend.resource.apiGroup: Invalid value: "A": ` + subdomain + ", " + at + ".backend.resource.kind: Required value, " +
				at + `.backend.resource.name: Invalid value: "a/b": may not contain '/']`},
		{"a class that is said twice is the same", "Ingress", "", "",
			`{"metadata":{"annotations":{"kubernetes.io/ingress.class":"x"}},"spec":{"ingressClassName":"y","defaultBackend":{` + web + `}}}`,
			"annotations.kubernetes.io/ingress.class: Invalid value: \"x\": must match `ingressClassName` when both are specified"},
	})
}
