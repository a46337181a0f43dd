package builtin

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"strconv"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pawl-dev/pawl/registry"
)

// door returns the strategy of a kind, or of one of its subresources.
func door(t testing.TB, kind, sub string) registry.Strategy {
	t.Helper()
	k := kindOf(t, kind)
	if sub == "" {
		return k.Strategy
	}
	for _, s := range k.Subresources {
		if s.Name == sub {
			return s.Strategy
		}
	}
	t.Fatalf("%s has no %s", kind, sub)
	return nil
}

// read returns the object that a document stands for, nil for none.
func read(t testing.TB, kind, document string) runtime.Object {
	t.Helper()
	if document == "" {
		return nil
	}
	obj, _, err := kindOf(t, kind).Form().Decode([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	return obj
}

// A write is what becomes of what a client sends through one door of a kind. What is stored
// before is old; want is what is stored then or, where that is asked, what is wrong with it.
type write struct{ name, kind, sub, old, sent, want string }

func TestWrites(t *testing.T) {
	writes(t, []write{
		{"rule B27: a new namespace is active, held, and labelled with its name", "Namespace", "", "",
			`{"metadata":{"name":"a"},"status":{"phase":"Terminating","conditions":[{"type":"x","status":"True"}]}}`,
			`{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"a","labels":{"kubernetes.io/metadata.name":"a"}},"spec":{"finalizers":["kubernetes"]},"status":{"phase":"Active"}}`},
		{"rule B27: finalizers that a new namespace brings stay beside that of the server", "Namespace", "", "",
			`{"metadata":{"name":"a"},"spec":{"finalizers":["x.example/y"]}}`,
			`{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"a","labels":{"kubernetes.io/metadata.name":"a"}},"spec":{"finalizers":["x.example/y","kubernetes"]},"status":{"phase":"Active"}}`},
		{"rule B30: the main door changes neither finalizers in spec nor status, and puts the label back", "Namespace", "",
			`{"metadata":{"name":"a"},"spec":{"finalizers":["kubernetes"]},"status":{"phase":"Active"}}`,
			`{"metadata":{"name":"a","labels":{"team":"red"}},"spec":{"finalizers":[]},"status":{"phase":"Terminating"}}`,
			`{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"a","labels":{"kubernetes.io/metadata.name":"a","team":"red"}},"spec":{"finalizers":["kubernetes"]},"status":{"phase":"Active"}}`},
		{"rule H173: status changes nothing in spec", "Namespace", "status",
			`{"metadata":{"name":"a"},"spec":{"finalizers":["kubernetes"]},"status":{"phase":"Active"}}`,
			`{"metadata":{"name":"a"},"status":{"conditions":[{"type":"NamespaceContentRemaining","status":"False","lastTransitionTime":"2020-01-02T03:04:05Z"}]}}`,
			`{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"a","labels":{"kubernetes.io/metadata.name":"a"}},"spec":{"finalizers":["kubernetes"]},` +
				`"status":{"phase":"Active","conditions":[{"type":"NamespaceContentRemaining","status":"False","lastTransitionTime":"2020-01-02T03:04:05Z"}]}}`},
		{"rule B30: finalize changes finalizers in spec and leaves status", "Namespace", "finalize",
			`{"metadata":{"name":"a"},"spec":{"finalizers":["kubernetes"]},"status":{"phase":"Active"}}`,
			`{"metadata":{"name":"a"},"spec":{"finalizers":["kubernetes","x.example/y"]},"status":{"phase":"Terminating"}}`,
			`{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"a","labels":{"kubernetes.io/metadata.name":"a"}},"spec":{"finalizers":["kubernetes","x.example/y"]},"status":{"phase":"Active"}}`},
		{"fields of coordinated leader election are dropped, since that is off", "Lease", "", "",
			`{"metadata":{"name":"a"},"spec":{"holderIdentity":"ann","strategy":"OldestEmulationVersion","preferredHolder":"bob"}}`,
			`{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"a"},"spec":{"holderIdentity":"ann"}}`},
		{"rule B8: neither a new ConfigMap nor a changed one has a generation", "ConfigMap", "",
			`{"metadata":{"name":"a"}}`, `{"metadata":{"name":"a"},"data":{"k":"v"}}`,
			`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"},"data":{"k":"v"}}`},
	})
}

func writes(t *testing.T, all []write) {
	for _, tt := range all {
		t.Run(tt.name, func(t *testing.T) {
			s, obj, old := door(t, tt.kind, tt.sub), read(t, tt.kind, tt.sent), read(t, tt.kind, tt.old)
			if old == nil {
				s.PrepareForCreate(t.Context(), obj)
			} else {
				s.PrepareForUpdate(t.Context(), obj, old)
			}
			s.Canonicalize(obj)
			data, err := kindOf(t, tt.kind).Form().Encode(obj)
			if err != nil || string(data) != tt.want {
				t.Errorf("\n got %s, %v\nwant %s", data, err, tt.want)
			}
		})
	}
}

// A part is one value, found by a path such as spec.ports.0.port, of what is stored after a write:
// its JSON, "" if there is none.
type part struct{ name, kind, sub, old, sent, path, want string }

func parts(t *testing.T, all []part) {
	for _, tt := range all {
		t.Run(tt.name, func(t *testing.T) {
			s, obj, old := door(t, tt.kind, tt.sub), read(t, tt.kind, tt.sent), read(t, tt.kind, tt.old)
			if old == nil {
				s.PrepareForCreate(t.Context(), obj)
			} else {
				s.PrepareForUpdate(t.Context(), obj, old)
			}
			s.Canonicalize(obj)
			if got := partOf(t, kindOf(t, tt.kind), obj, tt.path); got != tt.want {
				t.Errorf("%s: got %s, want %s", tt.path, got, tt.want)
			}
		})
	}
}

func partOf(t *testing.T, k Kind, obj runtime.Object, path string) string {
	t.Helper()
	data, err := k.Form().Encode(obj)
	if err != nil {
		t.Fatal(err)
	}
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		t.Fatal(err)
	}
	for _, step := range strings.Split(path, ".") {
		switch in := value.(type) {
		case map[string]any:
			value = in[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(in) {
				t.Fatalf("%s is no index of %v", step, in)
			}
			value = in[i]
		default:
			value = nil
		}
	}
	if value == nil {
		return ""
	}
	data, err = json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestObjectsMadeInGoGetTheirDefaultsToo(t *testing.T) {
	s := &corev1.Secret{StringData: map[string]string{"k": "v"}}
	door(t, "Secret", "").PrepareForCreate(t.Context(), s)
	if s.Type != corev1.SecretTypeOpaque || string(s.Data["k"]) != "v" || s.StringData != nil {
		t.Errorf("got %v", s)
	}
}

const badKey = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', " +
	"regex used for validation is '[-._a-zA-Z0-9]+')"

// TestWhatIsWrong holds the texts that clients see, as the message of a 422.
func TestWhatIsWrong(t *testing.T) {
	const terminating = `{"metadata":{"name":"a","deletionTimestamp":"2020-01-01T00:00:00Z"},"spec":{"finalizers":["kubernetes"]},"status":{"phase":"Terminating"}}`
	const immutable = `{"metadata":{"name":"a"},"immutable":true,"data":{"k":"dg=="}}`
	mebibyte := strings.Repeat("x", 1<<20)
	refusals(t, []write{
		{"a new namespace may bring finalizers with a domain", "Namespace", "", "", `{"metadata":{"name":"a"},"spec":{"finalizers":["x.example/y"]}}`, ""},
		{"finalizers in spec need a domain", "Namespace", "", "", `{"metadata":{"name":"a"},"spec":{"finalizers":["bad"]}}`,
			`spec.finalizers: Invalid value: "bad": name is neither a standard finalizer name nor is it fully qualified`},
		{"finalize counts the finalizers it refuses", "Namespace", "finalize", `{"metadata":{"name":"a"}}`, `{"metadata":{"name":"a"},"spec":{"finalizers":["kubernetes","bad"]}}`,
			`spec.finalizers[1]: Invalid value: "bad": name is neither a standard finalizer name nor is it fully qualified`},
		{"in kinds of the core group finalizers in metadata need a domain too", "ConfigMap", "", "", `{"metadata":{"name":"a","finalizers":["orphan","bad"]}}`,
			`metadata.finalizers[1]: Invalid value: "bad": name is neither a standard finalizer name nor is it fully qualified`},
		{"in other groups they do not", "Lease", "", "", `{"metadata":{"name":"a","finalizers":["bad"]}}`, ""},
		{"a namespace that stays is active", "Namespace", "status", `{"metadata":{"name":"a"}}`, `{"metadata":{"name":"a"},"status":{"phase":"Terminating"}}`,
			"status.Phase: Invalid value: \"Terminating\": may only be 'Active' if `deletionTimestamp` is empty"},
		{"a namespace that goes is terminating", "Namespace", "status", terminating, strings.Replace(terminating, `"phase":"Terminating"`, `"phase":"Active"`, 1),
			"status.Phase: Invalid value: \"Active\": may only be 'Terminating' if `deletionTimestamp` is not empty"},
		{"status of a namespace that goes may change otherwise", "Namespace", "status", terminating, terminating, ""},

		{"rule B33: keys are names of files", "Secret", "", "", `{"stringData":{"bad key":"v"}}`, `data[bad key]: Invalid value: "bad key": ` + badKey},
		{"rule B33: keys of binary data are names of files", "ConfigMap", "", "", `{"binaryData":{"bad key":""}}`, `binaryData[bad key]: Invalid value: "bad key": ` + badKey},
		{"rule B33: a key has at most 253 characters", "ConfigMap", "", "", `{"data":{"` + strings.Repeat("k", 254) + `":""}}`,
			`data[` + strings.Repeat("k", 254) + `]: Invalid value: "` + strings.Repeat("k", 254) + `": must be no more than 253 characters`},
		{"rule B33: a key is in data or in binary data", "ConfigMap", "", "", `{"data":{"k":"v"},"binaryData":{"k":"AA=="}}`,
			`data[k]: Invalid value: "k": duplicate of key present in binaryData`},
		{"rule B33: one mebibyte is allowed", "ConfigMap", "", "", `{"data":{"k":"` + mebibyte + `"}}`, ""},
		{"rule B33: more than one mebibyte, in both together, is too long", "ConfigMap", "", "", `{"data":{"k":"` + mebibyte + `"},"binaryData":{"l":"AA=="}}`,
			"[]: Too long: may not be more than 1048576 bytes"},
		{"rule B33: a secret of more than one mebibyte is too long", "Secret", "", "", `{"stringData":{"k":"` + mebibyte + `","l":"x"}}`,
			"data: Too long: may not be more than 1048576 bytes"},

		{"rule B36: an immutable secret keeps its data", "Secret", "", immutable, `{"metadata":{"name":"a"},"immutable":true,"stringData":{"k":"w"}}`,
			"data: Forbidden: field is immutable when `immutable` is set"},
		{"rule B36: the same data is no change", "Secret", "", immutable, `{"metadata":{"name":"a"},"immutable":true,"stringData":{"k":"v"}}`, ""},
		{"rule B36: an immutable secret stays immutable", "Secret", "", immutable, `{"metadata":{"name":"a"},"immutable":false,"stringData":{"k":"v"}}`,
			"immutable: Forbidden: field is immutable when `immutable` is set"},
		{"rule B36: an immutable ConfigMap keeps all it has", "ConfigMap", "", `{"immutable":true,"data":{"k":"v"}}`, `{"binaryData":{"l":"AA=="}}`,
			"[immutable: Forbidden: field is immutable when `immutable` is set, data: Forbidden: field is immutable when `immutable` is set, " +
				"binaryData: Forbidden: field is immutable when `immutable` is set]"},
		{"rule B36: metadata of an immutable ConfigMap may change", "ConfigMap", "", `{"immutable":true,"data":{"k":"v"}}`,
			`{"metadata":{"labels":{"a":"b"}},"immutable":true,"data":{"k":"v"},"binaryData":{}}`, ""},
		{"rule B36: a ConfigMap may become immutable while it changes", "ConfigMap", "", `{"data":{"k":"v"}}`, `{"immutable":true,"data":{"k":"w"}}`, ""},

		{"rule B35: the type of a secret does not change", "Secret", "", `{"type":"a"}`, `{"type":"b"}`, `type: Invalid value: "b": field is immutable`},
		{"rule B35: an update that leaves the type out means Opaque", "Secret", "", `{"type":"a"}`, `{}`, `type: Invalid value: "Opaque": field is immutable`},
		{"rule B35: types of one's own need no keys", "Secret", "", "", `{"type":"x.example/y"}`, ""},
		{"rule B35: a TLS secret has a certificate and a key", "Secret", "", "", `{"type":"kubernetes.io/tls"}`,
			"[data[tls.crt]: Required value, data[tls.key]: Required value]"},
		{"rule B35: both may be empty", "Secret", "", "", `{"type":"kubernetes.io/tls","data":{"tls.crt":"","tls.key":""}}`, ""},
		{"rule B35: a docker configuration is there", "Secret", "", "", `{"type":"kubernetes.io/dockerconfigjson"}`, "data[.dockerconfigjson]: Required value"},
		{"rule B35: a docker configuration is JSON, and not shown", "Secret", "", "", `{"type":"kubernetes.io/dockerconfigjson","stringData":{".dockerconfigjson":"hush"}}`,
			`data[.dockerconfigjson]: Invalid value: "<secret contents redacted>": invalid character 'h' looking for beginning of value`},
		{"rule B35: an old docker configuration is there", "Secret", "", "", `{"type":"kubernetes.io/dockercfg"}`, "data[.dockercfg]: Required value"},
		{"rule B35: an old docker configuration may be any object", "Secret", "", "", `{"type":"kubernetes.io/dockercfg","stringData":{".dockercfg":"{}"}}`, ""},
		{"rule B35: basic authentication has a user or a password", "Secret", "", "", `{"type":"kubernetes.io/basic-auth"}`,
			"[data[username]: Required value, data[password]: Required value]"},
		{"rule B35: one of them is enough", "Secret", "", "", `{"type":"kubernetes.io/basic-auth","data":{"password":""}}`, ""},
		{"rule B35: an SSH key is there, and not empty", "Secret", "", "", `{"type":"kubernetes.io/ssh-auth","data":{"ssh-privatekey":""}}`,
			"data[ssh-privatekey]: Required value"},
		{"rule B35: the token of a service account says whose", "Secret", "", "", `{"type":"kubernetes.io/service-account-token"}`,
			"metadata.annotations[kubernetes.io/service-account.name]: Required value"},
		{"rule B35: said by an annotation", "Secret", "", "",
			`{"metadata":{"annotations":{"kubernetes.io/service-account.name":"x"}},"type":"kubernetes.io/service-account-token"}`, ""},

		{"rule B45: a lease lasts, and is taken over no less than never", "Lease", "", "", `{"spec":{"leaseDurationSeconds":0,"leaseTransitions":-1}}`,
			"[spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0, spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0]"},
		{"rule B45: a lease may say nothing", "Lease", "", "", `{}`, ""},
	})
}

// refusals checks the message of a 422, or that there is none.
func refusals(t *testing.T, all []write) {
	for _, tt := range all {
		t.Run(tt.name, func(t *testing.T) {
			s, obj, old := door(t, tt.kind, tt.sub), read(t, tt.kind, tt.sent), read(t, tt.kind, tt.old)
			errs := s.Validate(t.Context(), obj)
			if old != nil {
				errs = s.ValidateUpdate(t.Context(), obj, old)
			}
			got := ""
			if len(errs) > 0 {
				k := kindOf(t, tt.kind)
				got = apierrors.NewInvalid(k.GroupVersionKind().GroupKind(), "a", errs).Error()
			}
			want := tt.want
			if want != "" {
				want = kindOf(t, tt.kind).GroupVersionKind().GroupKind().String() + ` "a" is invalid: ` + want
			}
			if got != want {
				t.Errorf("\n got %.2000s\nwant %.2000s", got, want)
			}
		})
	}
}

func TestPolicies(t *testing.T) {
	for _, tt := range []struct {
		kind, sub                                                                           string
		namespaced, createOnUpdate, unconditional, returnDeleted, sensitive, keeps, orphans bool
	}{
		{kind: "Namespace", unconditional: true, returnDeleted: true},
		{kind: "Namespace", sub: "status", unconditional: true, returnDeleted: true, keeps: true},
		{kind: "Namespace", sub: "finalize", unconditional: true, returnDeleted: true},
		{kind: "ConfigMap", namespaced: true, unconditional: true},
		{kind: "Secret", namespaced: true, unconditional: true, sensitive: true},
		{kind: "Lease", namespaced: true, createOnUpdate: true},
		{kind: "ServiceAccount", namespaced: true, unconditional: true, returnDeleted: true},
		{kind: "Event", namespaced: true, createOnUpdate: true, unconditional: true},
		{kind: "Event.events.k8s.io", namespaced: true, createOnUpdate: true, unconditional: true},
		{kind: "Pod", namespaced: true, unconditional: true, returnDeleted: true},
		{kind: "Pod", sub: "status", namespaced: true, unconditional: true, returnDeleted: true},
		{kind: "Service", namespaced: true, createOnUpdate: true, unconditional: true, returnDeleted: true},
		{kind: "Node", unconditional: true},
		{kind: "Endpoints", namespaced: true, createOnUpdate: true, unconditional: true},
		{kind: "LimitRange", namespaced: true, createOnUpdate: true, unconditional: true},
		{kind: "Deployment", namespaced: true, unconditional: true},
		{kind: "ReplicaSet", namespaced: true, unconditional: true},
		{kind: "StatefulSet", namespaced: true, unconditional: true},
		{kind: "DaemonSet", namespaced: true, unconditional: true},
		{kind: "Job", namespaced: true, unconditional: true, orphans: true},
		{kind: "CronJob", namespaced: true, unconditional: true},
		{kind: "ReplicationController", namespaced: true, unconditional: true, orphans: true},
		{kind: "PersistentVolume", unconditional: true, returnDeleted: true},
		{kind: "PersistentVolumeClaim", namespaced: true, unconditional: true, returnDeleted: true},
		{kind: "Ingress", namespaced: true, unconditional: true},
		{kind: "Role", namespaced: true, createOnUpdate: true, unconditional: true},
		{kind: "RoleBinding", namespaced: true, createOnUpdate: true, unconditional: true},
		{kind: "ClusterRole", createOnUpdate: true, unconditional: true},
		{kind: "ClusterRoleBinding", createOnUpdate: true, unconditional: true},
		{kind: "PriorityClass", unconditional: true},
	} {
		t.Run("rules B11 to B13 and B63 for "+tt.kind+" "+tt.sub, func(t *testing.T) {
			p := door(t, tt.kind, tt.sub).Policy()
			if p.Namespaced != tt.namespaced || p.CreateOnUpdate != tt.createOnUpdate || p.UnconditionalUpdate != tt.unconditional ||
				p.ReturnDeleted != tt.returnDeleted || p.Sensitive != tt.sensitive || p.KeepMetadata != tt.keeps ||
				(p.Dependents == registry.Orphaned) != tt.orphans {
				t.Errorf("got %+v, want %+v", p, tt)
			}
		})
	}
}

func TestNamespacesAreNamedLikeDNSLabels(t *testing.T) { // rule B14
	name := door(t, "Namespace", "").Policy().Name
	if why := name("a.b", false); len(why) == 0 {
		t.Error("a.b may name a namespace")
	}
	if why := name("a-", true); len(why) != 0 {
		t.Errorf("a- may not begin a generated name: %v", why)
	}
}

func TestANamespaceStaysWhileItsSpecHasFinalizers(t *testing.T) { // rules B29, B30
	for _, sub := range []string{"", "status", "finalize"} {
		s := door(t, "Namespace", sub)
		holder := s.(registry.Holder)
		if !holder.Holds(read(t, "Namespace", `{"spec":{"finalizers":["kubernetes"]}}`)) || holder.Holds(read(t, "Namespace", `{}`)) {
			t.Errorf("through %q it does not", sub)
		}
	}
	if door(t, "Secret", "").(registry.Holder).Holds(&corev1.Secret{}) {
		t.Error("a secret is held by nothing")
	}
}

func TestDeletingANamespaceBeginsWithItsPhase(t *testing.T) { // rule B29
	ns := read(t, "Namespace", `{"spec":{"finalizers":["kubernetes"]}}`).(*corev1.Namespace)
	door(t, "Namespace", "").(registry.DeletePreparer).PrepareForDelete(t.Context(), ns)
	if ns.Status.Phase != corev1.NamespaceTerminating || len(ns.Spec.Finalizers) != 1 {
		t.Errorf("got %v, %v", ns.Status, ns.Spec)
	}
	l := &coordinationv1.Lease{}
	door(t, "Lease", "").(registry.DeletePreparer).PrepareForDelete(t.Context(), l)
	if l.DeletionTimestamp != nil {
		t.Error("a lease is changed by its deletion")
	}
}

func TestPreparingAnUpdateLeavesTheOldObjectAlone(t *testing.T) {
	const stored = `{"metadata":{"name":"a"},"spec":{"finalizers":["kubernetes"]},"status":{"phase":"Active","conditions":[{"type":"x","status":"True"}]}}`
	for _, sub := range []string{"", "status", "finalize"} {
		old, obj := read(t, "Namespace", stored).(*corev1.Namespace), read(t, "Namespace", stored).(*corev1.Namespace)
		s := door(t, "Namespace", sub)
		s.PrepareForUpdate(t.Context(), obj, old)
		obj.Spec.Finalizers[0], obj.Status.Conditions[0].Type, obj.Labels["team"] = "y", "y", "y"
		if old.Spec.Finalizers[0] != "kubernetes" || old.Status.Conditions[0].Type != "x" || old.Labels["team"] != "" {
			t.Errorf("through %q what was stored changes with what is to be stored", sub)
		}
	}
}

func TestATLSSecretWhoseKeyDoesNotFitWarns(t *testing.T) { // rule B37
	cert, key := pair(t)
	_, other := pair(t)
	for _, tt := range []struct {
		name      string
		cert, key []byte
		kind      corev1.SecretType
		want      []string
	}{
		{"a key that fits", cert, key, corev1.SecretTypeTLS, nil},
		{"the key of another", cert, other, corev1.SecretTypeTLS, []string{"tls: private key does not match public key"}},
		{"no certificate at all", nil, key, corev1.SecretTypeTLS, []string{"tls: failed to find any PEM data in certificate input"}},
		{"a secret of another type", nil, nil, corev1.SecretTypeOpaque, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &corev1.Secret{Type: tt.kind, Data: map[string][]byte{corev1.TLSCertKey: tt.cert, corev1.TLSPrivateKeyKey: tt.key}}
			got := door(t, "Secret", "").Warnings(t.Context(), s, nil)
			if strings.Join(got, "; ") != strings.Join(tt.want, "; ") {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func pair(t *testing.T) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	certDER, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certDER}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
}

func TestTheTable(t *testing.T) {
	for _, k := range Kinds() {
		t.Run(k.Kind, func(t *testing.T) {
			var through []registry.Strategy
			res := k.Resource(func(_ Kind, _ string, s registry.Strategy) *registry.Store {
				through = append(through, s)
				return &registry.Store{}
			})
			v := res.Version(k.Version)
			if v == nil || v.Form == nil || v.Store == nil || res.StorageVersion != k.Version || res.ListKind != k.Kind+"List" {
				t.Fatalf("the resource lacks something: %+v", res)
			}
			doors := len(k.Subresources)
			if k.Scaled != nil {
				doors++
			}
			if len(through) != 1+len(k.Subresources) || len(v.Subresources) != doors {
				t.Errorf("%d stores for %d subresources", len(through), len(k.Subresources))
			}
			if k.Revision < 1 || k.Singular != strings.ToLower(k.Kind) || res.Namespaced != k.Strategy.Policy().Namespaced {
				t.Errorf("the row is not right: %+v", k)
			}
			if gvk := v.Form.New().GetObjectKind().GroupVersionKind(); gvk != k.GroupVersionKind() || gvk != v.Form.GroupVersionKind() {
				t.Errorf("a new object says it is %v", gvk)
			}
			want := "application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json, application/apply-patch+yaml"
			if got := strings.Join(v.Form.Patches(), ", "); got != want { // rule H129
				t.Errorf("patches are %s", got)
			}
		})
	}
	if res := kindOf(t, "Namespace").Resource(func(Kind, string, registry.Strategy) *registry.Store { return nil }); !res.NoDeleteCollection || // rule H20
		strings.Join(res.Versions[0].Subresources["finalize"].Verbs, " ") != "update" {
		t.Errorf("namespaces: %+v", res)
	}
}
