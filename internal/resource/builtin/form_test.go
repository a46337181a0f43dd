package builtin

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pawl-dev/pawl/storage"
)

// kindOf returns the kind of that name; Event.events.k8s.io names the group too.
func kindOf(t testing.TB, name string) Kind {
	t.Helper()
	for _, k := range Kinds() {
		if k.Kind == name || k.GroupVersionKind().GroupKind().String() == name {
			return k
		}
	}
	t.Fatalf("there is no kind %s", name)
	return Kind{}
}

func TestDecoding(t *testing.T) {
	for _, tt := range []struct {
		name, kind, in, want string
		findings             []string
	}{
		{"rule B35: a secret without a type is opaque", "Secret", `{"metadata":{"name":"a"}}`,
			`{"kind":"Secret","apiVersion":"v1","metadata":{"name":"a"},"type":"Opaque"}`, nil},
		{"rule B34: string data is written over data and gone", "Secret",
			`{"metadata":{"name":"a"},"data":{"other":"eA==","user":"Ym9i"},"stringData":{"user":"ann"}}`,
			`{"kind":"Secret","apiVersion":"v1","metadata":{"name":"a"},"data":{"other":"eA==","user":"YW5u"},"type":"Opaque"}`, nil},
		{"rule B27: a namespace has its name as a label, whatever was sent", "Namespace",
			`{"metadata":{"name":"a","labels":{"kubernetes.io/metadata.name":"b","team":"red"}}}`,
			`{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"a","labels":{"kubernetes.io/metadata.name":"a","team":"red"}},"spec":{},"status":{"phase":"Active"}}`, nil},
		{"rule B45: times of a lease keep their microseconds", "Lease",
			`{"metadata":{"name":"boss"},"spec":{"renewTime":"2020-01-01T00:00:00.000000Z","leaseTransitions":0}}`,
			`{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"boss"},"spec":{"renewTime":"2020-01-01T00:00:00.000000Z","leaseTransitions":0}}`, nil},
		{"rule H65: unknown fields are found and dropped", "ConfigMap",
			`{"metadata":{"name":"a","flavour":"x"},"data":{"k":"v"},"dataa":{"k":"v"}}`,
			`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"},"data":{"k":"v"}}`,
			[]string{`unknown field "metadata.flavour"`, `unknown field "dataa"`}},
		{"rule H65: of duplicate keys of a map the last one counts", "ConfigMap", `{"metadata":{"name":"a"},"data":{"k":"v","k":"w"}}`,
			`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"},"data":{"k":"w"}}`, []string{`duplicate field "data.k"`}},
		{"a map that stands twice is read twice", "ConfigMap", `{"metadata":{"name":"a"},"data":{"k":"v"},"data":{"l":"w"}}`,
			`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"},"data":{"k":"v","l":"w"}}`, []string{`duplicate field "data"`}},
		{"rule H72: names of fields are case-sensitive", "ConfigMap", `{"metadata":{"name":"a"},"Data":{"k":"v"}}`,
			`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"}}`, []string{`unknown field "Data"`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := kindOf(t, tt.kind).Form()
			obj, findings, err := f.Decode([]byte(tt.in))
			if err != nil {
				t.Fatal(err)
			}
			if got, want := strings.Join(findings, "; "), strings.Join(tt.findings, "; "); got != want {
				t.Errorf("findings: got %s, want %s", got, want)
			}
			data, err := f.Encode(obj)
			if err != nil || string(data) != tt.want {
				t.Errorf("encoded again:\n got %s, %v\nwant %s", data, err, tt.want)
			}
		})
	}
}

func TestWhatDoesNotDecode(t *testing.T) {
	for _, tt := range []struct{ name, kind, in, want string }{
		{"a number as a value of data", "ConfigMap", `{"data":{"k":1}}`, "json: cannot unmarshal number into Go struct field ConfigMap.data of type string"},
		{"a list as data", "ConfigMap", `{"data":[]}`, "json: cannot unmarshal array into Go struct field ConfigMap.data of type map[string]string"},
		{"a number as the name", "ConfigMap", `{"metadata":{"name":1}}`, "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.name of type string"},
		{"a bool as a label", "ConfigMap", `{"metadata":{"labels":{"a":true}}}`, "json: cannot unmarshal bool into Go struct field ObjectMeta.metadata.labels of type string"},
		{"binary data that is not base64", "ConfigMap", `{"binaryData":{"k":"***"}}`, "illegal base64 data at input byte 0"},
		{"secret data that is not base64", "Secret", `{"data":{"k":"not base64!"}}`, "illegal base64 data at input byte 3"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			obj, findings, err := kindOf(t, tt.kind).Form().Decode([]byte(tt.in))
			if err == nil || err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
			if obj != nil || findings != nil {
				t.Errorf("with the error came %v and %v", obj, findings)
			}
		})
	}
}

func TestStoredJSON(t *testing.T) {
	seen := map[storage.Fingerprint]string{}
	for _, k := range Kinds() {
		if k.view != nil {
			continue // stored as another kind
		}
		t.Run(k.Kind, func(t *testing.T) {
			f, c := k.Form(), k.Codec()
			obj, _, err := f.Decode([]byte(`{"metadata":{"name":"a","namespace":"b","uid":"c"}}`))
			if err != nil {
				t.Fatal(err)
			}
			sent, err := f.Encode(obj)
			if err != nil {
				t.Fatal(err)
			}
			stored, print, err := c.Encode(obj)
			if err != nil || !bytes.Equal(stored, sent) {
				t.Errorf("what is stored is not what is sent:\n%s, %v\n%s", stored, err, sent)
			}
			if print == storage.Unfit || print != c.Fingerprint() {
				t.Errorf("fingerprint %d, the codec's own is %d", print, c.Fingerprint())
			}
			if other := seen[print]; other != "" {
				t.Errorf("%s has the same fingerprint", other)
			}
			seen[print] = k.Kind
			back, err := c.Decode(stored)
			if err != nil || !equality.Semantic.DeepEqual(back, obj) {
				t.Errorf("read back:\n got %v, %v\nwant %v", back, err, obj)
			}
			if !startsWithItsHead(stored) {
				t.Errorf("apiVersion, kind and metadata are not the first three fields of %s", stored)
			}
			k.Revision++
			if k.Codec().Fingerprint() == print {
				t.Error("a new revision has the old fingerprint")
			}
		})
	}
}

func startsWithItsHead(data []byte) bool {
	d, depth, head := json.NewDecoder(bytes.NewReader(data)), 0, map[string]bool{}
	for value := false; len(head) < 3; {
		tok, err := d.Token()
		if err != nil {
			return false
		}
		switch delim, isDelim := tok.(json.Delim); {
		case isDelim && (delim == '{' || delim == '['):
			depth++
			value = false
		case isDelim:
			depth--
		case depth == 1 && !value:
			head[tok.(string)] = true
			value = true
		default:
			value = false
		}
	}
	return head["apiVersion"] && head["kind"] && head["metadata"]
}

func TestReadingFillsInWhatWasStoredBeforeADefaultExisted(t *testing.T) {
	obj, err := kindOf(t, "Secret").Codec().Decode([]byte(`{"kind":"Secret","apiVersion":"v1","metadata":{"name":"a"}}`))
	if err != nil || obj.(*corev1.Secret).Type != corev1.SecretTypeOpaque {
		t.Errorf("got %v, %v", obj, err)
	}
}

// TestWhoeverChangesADefaultRaisesTheRevision pins what decoding fills in. If it fails because
// a default was changed on purpose, raise the Revision of that kind, and then change the row here.
func TestWhoeverChangesADefaultRaisesTheRevision(t *testing.T) {
	for _, tt := range []struct {
		kind     string
		revision int
		spec     string
		filledIn string
	}{
		{"Namespace", 1, "", `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"a","labels":{"kubernetes.io/metadata.name":"a"}},"spec":{},"status":{"phase":"Active"}}`},
		{"ConfigMap", 1, "", `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"}}`},
		{"Secret", 1, "", `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"a"},"type":"Opaque"}`},
		{"Lease", 1, "", `{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"a"},"spec":{}}`},
		{"ServiceAccount", 1, "", `{"kind":"ServiceAccount","apiVersion":"v1","metadata":{"name":"a"}}`},
		{"Event", 1, "", `{"kind":"Event","apiVersion":"v1","metadata":{"name":"a"},"involvedObject":{},"source":{},"firstTimestamp":null,"lastTimestamp":null,"eventTime":null,"reportingComponent":"","reportingInstance":""}`},
		{"Event.events.k8s.io", 1, "", `{"kind":"Event","apiVersion":"events.k8s.io/v1","metadata":{"name":"a"},"eventTime":null,"regarding":{},"deprecatedSource":{},"deprecatedFirstTimestamp":null,"deprecatedLastTimestamp":null}`},
		{"Pod", 1, `,"spec":{"containers":[{"resources":{"limits":{"cpu":"1"}}}]}`, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"},"spec":{"containers":[{"name":"","resources":{"limits":{"cpu":"1"},"requests":{"cpu":"1"}},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent"}],"restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","securityContext":{},"schedulerName":"default-scheduler","enableServiceLinks":true},"status":{}}`},
		{"Service", 1, `,"spec":{"type":"LoadBalancer","ports":[{"port":1}]}`, `{"kind":"Service","apiVersion":"v1","metadata":{"name":"a"},"spec":{"ports":[{"protocol":"TCP","port":1,"targetPort":1}],"type":"LoadBalancer","sessionAffinity":"None","externalTrafficPolicy":"Cluster","allocateLoadBalancerNodePorts":true,"internalTrafficPolicy":"Cluster"},"status":{"loadBalancer":{}}}`},
		{"Node", 1, `,"status":{"capacity":{"cpu":"1"}}`, `{"kind":"Node","apiVersion":"v1","metadata":{"name":"a"},"spec":{},"status":{"capacity":{"cpu":"1"},"allocatable":{"cpu":"1"},"daemonEndpoints":{"kubeletEndpoint":{"Port":0}},"nodeInfo":{"machineID":"","systemUUID":"","bootID":"","kernelVersion":"","osImage":"","containerRuntimeVersion":"","kubeletVersion":"","kubeProxyVersion":"","operatingSystem":"","architecture":""}}}`},
		{"Endpoints", 1, `,"subsets":[{"ports":[{}]}]`, `{"kind":"Endpoints","apiVersion":"v1","metadata":{"name":"a"},"subsets":[{"ports":[{"port":0,"protocol":"TCP"}]}]}`},
		{"LimitRange", 1, `,"spec":{"limits":[{"type":"Container","max":{"cpu":"1"}}]}`, `{"kind":"LimitRange","apiVersion":"v1","metadata":{"name":"a"},"spec":{"limits":[{"type":"Container","max":{"cpu":"1"},"default":{"cpu":"1"},"defaultRequest":{"cpu":"1"}}]}}`},
		{"Deployment", 1, `,"spec":{"template":{"spec":{"volumes":[{"name":"v"},{"name":"s","secret":{}},{"name":"p","projected":{"sources":[{"serviceAccountToken":{}},{"downwardAPI":{"items":[{"fieldRef":{}}]}}]}},{"name":"h","hostPath":{}},{"name":"i","iscsi":{}},{"name":"m","image":{"reference":"x"}},{"name":"e","ephemeral":{"volumeClaimTemplate":{}}},{"name":"d","downwardAPI":{}}],"containers":[{"ports":[{}],"env":[{"valueFrom":{"fieldRef":{}}}],"livenessProbe":{"grpc":{}},"lifecycle":{"preStop":{"httpGet":{}}}}],"ephemeralContainers":[{}]}}}`, `{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"a"},"spec":{"replicas":1,"selector":null,"template":{"metadata":{},"spec":{"volumes":[{"name":"v","emptyDir":{}},{"name":"s","secret":{"defaultMode":420}},{"name":"p","projected":{"sources":[{"serviceAccountToken":{"expirationSeconds":3600,"path":""}},{"downwardAPI":{"items":[{"path":"","fieldRef":{"apiVersion":"v1","fieldPath":""}}]}}],"defaultMode":420}},{"name":"h","hostPath":{"path":"","type":""}},{"name":"i","iscsi":{"targetPortal":"","iqn":"","lun":0,"iscsiInterface":"default"}},{"name":"m","image":{"reference":"x","pullPolicy":"Always"}},{"name":"e","ephemeral":{"volumeClaimTemplate":{"metadata":{},"spec":{"resources":{},"volumeMode":"Filesystem"}}}},{"name":"d","downwardAPI":{"defaultMode":420}}],"containers":[{"name":"","ports":[{"containerPort":0,"protocol":"TCP"}],"env":[{"name":"","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":""}}}],"resources":{},"livenessProbe":{"grpc":{"port":0,"service":""},"timeoutSeconds":1,"periodSeconds":10,"successThreshold":1,"failureThreshold":3},"lifecycle":{"preStop":{"httpGet":{"path":"/","port":0,"scheme":"HTTP"}}},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent"}],"ephemeralContainers":[{"name":"","resources":{},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent"}],"restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","securityContext":{},"schedulerName":"default-scheduler"}},"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":"25%","maxSurge":"25%"}},"revisionHistoryLimit":10,"progressDeadlineSeconds":600},"status":{}}`},
		{"ReplicaSet", 1, "", `{"kind":"ReplicaSet","apiVersion":"apps/v1","metadata":{"name":"a"},"spec":{"replicas":1,"selector":null,"template":{"metadata":{},"spec":{"containers":null,"restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","securityContext":{},"schedulerName":"default-scheduler"}}},"status":{"replicas":0}}`},
		{"StatefulSet", 1, "", `{"kind":"StatefulSet","apiVersion":"apps/v1","metadata":{"name":"a"},"spec":{"replicas":1,"selector":null,"template":{"metadata":{},"spec":{"containers":null,"restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","securityContext":{},"schedulerName":"default-scheduler"}},"serviceName":"","podManagementPolicy":"OrderedReady","updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"partition":0,"maxUnavailable":1}},"revisionHistoryLimit":10,"persistentVolumeClaimRetentionPolicy":{"whenDeleted":"Retain","whenScaled":"Retain"}},"status":{"replicas":0,"availableReplicas":0}}`},
		{"Job", 2, `,"spec":{"podFailurePolicy":{"rules":[{"action":"Ignore","onPodConditions":[{"type":"x"}]}]}}`, `{"kind":"Job","apiVersion":"batch/v1","metadata":{"name":"a"},"spec":{"parallelism":1,"completions":1,"podFailurePolicy":{"rules":[{"action":"Ignore","onPodConditions":[{"type":"x","status":"True"}]}]},"backoffLimit":6,"manualSelector":false,"template":{"metadata":{},"spec":{"containers":null,"restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","securityContext":{},"schedulerName":"default-scheduler"}},"completionMode":"NonIndexed","suspend":false,"podReplacementPolicy":"Failed"},"status":{}}`},
		{"DaemonSet", 1, "", `{"kind":"DaemonSet","apiVersion":"apps/v1","metadata":{"name":"a","annotations":{"deprecated.daemonset.template.generation":"0"}},"spec":{"selector":null,"template":{"metadata":{},"spec":{"containers":null,"restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","securityContext":{},"schedulerName":"default-scheduler"}},"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":1,"maxSurge":0}},"revisionHistoryLimit":10},"status":{"currentNumberScheduled":0,"numberMisscheduled":0,"desiredNumberScheduled":0,"numberReady":0}}`},
		{"CronJob", 1, "", `{"kind":"CronJob","apiVersion":"batch/v1","metadata":{"name":"a"},"spec":{"schedule":"","concurrencyPolicy":"Allow","suspend":false,"jobTemplate":{"metadata":{},"spec":{"template":{"metadata":{},"spec":{"containers":null,"restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","securityContext":{},"schedulerName":"default-scheduler"}}}},"successfulJobsHistoryLimit":3,"failedJobsHistoryLimit":1},"status":{}}`},
		{"ReplicationController", 1, `,"spec":{"template":{"metadata":{"labels":{"k":"v"}}}}`, `{"kind":"ReplicationController","apiVersion":"v1","metadata":{"name":"a","labels":{"k":"v"}},"spec":{"replicas":1,"selector":{"k":"v"},"template":{"metadata":{"labels":{"k":"v"}},"spec":{"containers":null,"restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","securityContext":{},"schedulerName":"default-scheduler"}}},"status":{"replicas":0}}`},
		{"PersistentVolume", 1, `,"spec":{"capacity":{"storage":"0.0001"},"hostPath":{"path":"/d"}}`, `{"kind":"PersistentVolume","apiVersion":"v1","metadata":{"name":"a"},"spec":{"capacity":{"storage":"1m"},"hostPath":{"path":"/d","type":""},"persistentVolumeReclaimPolicy":"Retain","volumeMode":"Filesystem"},"status":{"phase":"Pending"}}`},
		{"PersistentVolumeClaim", 1, `,"status":{"capacity":{"storage":"0.0001"}}`, `{"kind":"PersistentVolumeClaim","apiVersion":"v1","metadata":{"name":"a"},"spec":{"resources":{},"volumeMode":"Filesystem"},"status":{"phase":"Pending","capacity":{"storage":"1m"}}}`},
		{"Ingress", 1, `,"spec":{"rules":[{"http":{"paths":[{"path":"/"}]}}]}`, `{"kind":"Ingress","apiVersion":"networking.k8s.io/v1","metadata":{"name":"a"},"spec":{"rules":[{"http":{"paths":[{"path":"/","pathType":null,"backend":{}}]}}]},"status":{"loadBalancer":{}}}`},
		{"Role", 1, "", `{"kind":"Role","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"a"},"rules":null}`},
		{"RoleBinding", 1, `,"subjects":[{"kind":"User"}]`, `{"kind":"RoleBinding","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"a"},"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":""}],"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"","name":""}}`},
		{"ClusterRole", 1, "", `{"kind":"ClusterRole","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"a"},"rules":null}`},
		{"ClusterRoleBinding", 1, `,"subjects":[{"kind":"User"}]`, `{"kind":"ClusterRoleBinding","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"a"},"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":""}],"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"","name":""}}`},
		{"PriorityClass", 1, "", `{"kind":"PriorityClass","apiVersion":"scheduling.k8s.io/v1","metadata":{"name":"a"},"value":0,"preemptionPolicy":"PreemptLowerPriority"}`},
	} {
		t.Run(tt.kind, func(t *testing.T) {
			k := kindOf(t, tt.kind)
			obj, _, err := k.Form().Decode([]byte(`{"metadata":{"name":"a"}` + tt.spec + `}`))
			if err != nil {
				t.Fatal(err)
			}
			data, err := k.Form().Encode(obj)
			if err != nil || string(data) != tt.filledIn || k.Revision != tt.revision {
				t.Errorf("revision %d fills in\n     %s, %v\nrevision %d filled in\n     %s", k.Revision, data, err, tt.revision, tt.filledIn)
			}
		})
	}
}

func TestEncodingNamesTheKindAndLeavesTheObjectAlone(t *testing.T) {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	data, err := kindOf(t, "ConfigMap").Form().Encode(cm)
	if err != nil || string(data) != `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"}}` || cm.Kind != "" {
		t.Errorf("got %s, %v; the object now says %q", data, err, cm.Kind)
	}
}

func TestSelectableFields(t *testing.T) {
	for _, tt := range []struct {
		name, kind  string
		obj         runtime.Object
		label, want string
	}{
		{"rule B15: secrets by type", "Secret", &corev1.Secret{Type: "a"}, "type", "a"},
		{"rule B15: replication controllers by how many pods they have", "ReplicationController",
			&corev1.ReplicationController{Status: corev1.ReplicationControllerStatus{Replicas: 3}}, "status.replicas", "3"},
		{"rule B15: namespaces by phase", "Namespace", &corev1.Namespace{Status: corev1.NamespaceStatus{Phase: "b"}}, "status.phase", "b"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k := kindOf(t, tt.kind)
			set, err := k.Fields(tt.obj)
			if err != nil || len(k.FieldLabels) != 1 || k.FieldLabels[0] != tt.label || set.Get(tt.label) != tt.want {
				t.Errorf("labels %v, fields %v, %v", k.FieldLabels, set, err)
			}
			if _, err := k.Fields(&corev1.Pod{}); err == nil {
				t.Error("a pod has these fields too")
			}
		})
	}
}

// FuzzDecode checks that what decodes is stored, read and sent as the same thing.
func FuzzDecode(f *testing.F) {
	for i, document := range []string{
		`{"metadata":{"name":"a","creationTimestamp":null,"labels":null},"spec":{"finalizers":["x"]}}`,
		`{"binaryData":{"a":"AA=="},"immutable":true,"data":{"k":"\ud800<>&"}}`,
		`{"stringData":{"a":"b"},"data":{"a":null},"type":""}`,
		`{"spec":{"renewTime":"2020-01-01T00:00:00.123456Z","leaseDurationSeconds":1}}`,
		`null`, `[]`, `{"metadata":{"managedFields":[{"fieldsV1":{"f:a":{}}}],"ownerReferences":[{}]}}`,
	} {
		f.Add(byte(i), []byte(document))
	}
	kinds := Kinds()
	for i := range kinds {
		f.Add(byte(i), []byte(workload(`"ports":[{"port":80}],"type":"LoadBalancer","limits":[{"type":"Container","max":{"cpu":"0.0001"}}],`)))
		f.Add(byte(i), []byte(containerOf(`"resources":{"limits":{"cpu":"1"}},"ports":[{"containerPort":80}],"livenessProbe":{"httpGet":{}}`)))
	}
	f.Fuzz(func(t *testing.T, which byte, document []byte) {
		k := kinds[int(which)%len(kinds)]
		obj, _, err := k.Form().Decode(document)
		if err != nil {
			return
		}
		stored, _, err := k.Codec().Encode(obj)
		if err != nil {
			return // a time that JSON cannot tell
		}
		back, err := k.Codec().Decode(stored)
		if err != nil {
			t.Fatalf("%q was stored as %s, which does not decode: %v", document, stored, err)
		}
		again, _, err := k.Codec().Encode(back)
		if err != nil || !bytes.Equal(stored, again) {
			t.Fatalf("%q was stored as\n%s, then as\n%s, %v", document, stored, again, err)
		}
	})
}
