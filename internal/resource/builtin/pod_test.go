package builtin

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

const (
	podX    = `{"metadata":{"name":"a"},"spec":{"containers":[{"name":"one","image":"x"}]}}`
	podOnce = `{"metadata":{"name":"a","generation":4},"spec":{"restartPolicy":"Never","activeDeadlineSeconds":9,` +
		`"tolerations":[{"key":"k"},{"operator":"Exists"}],"schedulingGates":[{"name":"g"}],"containers":[{"name":"one","image":"x"}]},"status":{"phase":"Running","qosClass":"BestEffort"}}`
)

// once is podOnce with one thing changed.
func once(change ...string) string { return strings.NewReplacer(change...).Replace(podOnce) }

func podOf(spec string) string {
	return `{"metadata":{"name":"a"},"spec":{"containers":[{"name":"one","image":"x"}],` + spec + `}}`
}

func containerOf(rest string) string {
	return `{"metadata":{"name":"a"},"spec":{"volumes":[{"name":"v"}],"containers":[{"name":"one","image":"x",` + rest + `}]}}`
}

func TestPodsAreFilledIn(t *testing.T) { // rules B48, B51
	parts(t, []part{
		{"a new pod is pending, whatever was sent", "Pod", "", "", once(), "status", `{"phase":"Pending","qosClass":"BestEffort"}`},
		{"its generation is 1", "Pod", "", "", once(), "metadata.generation", "1"},
		{"it restarts always", "Pod", "", "", podX, "spec.restartPolicy", `"Always"`},
		{"it gets half a minute to end", "Pod", "", "", podX, "spec.terminationGracePeriodSeconds", "30"},
		{"less than nothing is a second", "Pod", "", "", podOf(`"terminationGracePeriodSeconds":-5`), "spec.terminationGracePeriodSeconds", "1"},
		{"its security context is empty", "Pod", "", "", podX, "spec.securityContext", "{}"},
		{"it has links to services", "Pod", "", "", podX, "spec.enableServiceLinks", "true"},
		{"the old name of the service account is the new one", "Pod", "", "", podOf(`"serviceAccount":"bot"`), "spec.serviceAccountName", `"bot"`},
		{"and the other way round", "Pod", "", "", podOf(`"serviceAccountName":"bot"`), "spec.serviceAccount", `"bot"`},
		{"messages of its end are a file", "Pod", "", "", podX, "spec.containers.0.terminationMessagePath", `"/dev/termination-log"`},
		{"ports are TCP", "Pod", "", "", containerOf(`"ports":[{"containerPort":80}]`), "spec.containers.0.ports", `[{"containerPort":80,"protocol":"TCP"}]`},
		{"on the network of the host its ports are those of the host", "Pod", "", "",
			`{"metadata":{"name":"a"},"spec":{"hostNetwork":true,"containers":[{"name":"one","image":"x","ports":[{"containerPort":80}]}]}}`,
			"spec.containers.0.ports.0.hostPort", "80"},
		{"requests are what the limits are", "Pod", "", "", containerOf(`"resources":{"limits":{"cpu":"1"}}`), "spec.containers.0.resources.requests", `{"cpu":"1"}`},
		{"quantities are whole thousandths", "Pod", "", "", containerOf(`"resources":{"limits":{"cpu":"0.0001"}}`), "spec.containers.0.resources.limits", `{"cpu":"1m"}`},
		{"probes", "Pod", "", "", containerOf(`"livenessProbe":{"httpGet":{"port":80}}`), "spec.containers.0.livenessProbe",
			`{"failureThreshold":3,"httpGet":{"path":"/","port":80,"scheme":"HTTP"},"periodSeconds":10,"successThreshold":1,"timeoutSeconds":1}`},
		{"a volume that is nothing is an empty folder", "Pod", "", "", podOf(`"volumes":[{"name":"v"}]`), "spec.volumes", `[{"emptyDir":{},"name":"v"}]`},
		{"files of volumes are for all to read", "Pod", "", "", podOf(`"volumes":[{"name":"v","configMap":{"name":"c"}}]`), "spec.volumes.0.configMap", `{"defaultMode":420,"name":"c"}`},
		{"a pod stays five minutes on a node that is not ready", "Pod", "", "", podX, "spec.tolerations.0",
			`{"effect":"NoExecute","key":"node.kubernetes.io/not-ready","operator":"Exists","tolerationSeconds":300}`},
		{"unless it says so itself", "Pod", "", "", podOf(`"tolerations":[{"operator":"Exists"}]`), "spec.tolerations", `[{"operator":"Exists"}]`},
		{"an update that leaves the priority out keeps it", "Pod", "", podOf(`"priority":7`), podX, "spec.priority", "7"},
		{"it has a priority", "Pod", "", "", podX, "spec.priority", "0"},
		{"that of a class of the system is known", "Pod", "", "", podOf(`"priorityClassName":"system-node-critical"`), "spec.priority", "2000001000"},

		{"rule B10: the main door changes no status", "Pod", "", podOnce, once("Running", "Failed"), "status.phase", `"Running"`},
		{"rule B10: the door for status changes nothing else", "Pod", "status", podOnce, once("Never", "Always"), "spec.restartPolicy", `"Never"`},
		{"the door for status changes status", "Pod", "status", podOnce, once("Running", "Failed"), "status.phase", `"Failed"`},
		{"which keeps its class of service", "Pod", "status", podOnce, once(`,"qosClass":"BestEffort"`, ""), "status.qosClass", `"BestEffort"`},
		{"labels may change with status", "Pod", "status", podOnce, once(`"name":"a"`, `"name":"a","labels":{"k":"v"}`), "metadata.labels", `{"k":"v"}`},
		{"owners may not", "Pod", "status", podOnce, once(`"name":"a"`, `"name":"a","ownerReferences":[{"name":"b"}]`), "metadata.ownerReferences", ""},
		{"one address makes a list", "Pod", "status", podOnce, once(`"phase"`, `"podIP":"10.1.0.1","phase"`), "status.podIPs", `[{"ip":"10.1.0.1"}]`},
		{"a list makes one address", "Pod", "status", podOnce, once(`"phase"`, `"podIPs":[{"ip":"10.1.0.1"}],"phase"`), "status.podIP", `"10.1.0.1"`},
		{"if they differ the one address is right", "Pod", "status", podOnce, once(`"phase"`, `"podIP":"10.1.0.2","podIPs":[{"ip":"10.1.0.1"}],"phase"`), "status.podIPs", `[{"ip":"10.1.0.2"}]`},
		{"rule B8: another image raises the generation", "Pod", "", podOnce, once(`"image":"x"`, `"image":"y"`), "metadata.generation", "5"},
		{"rule B8: labels do not", "Pod", "", podOnce, `{"metadata":{"name":"a","generation":4,"labels":{"k":"v"}},` + podOnce[strings.Index(podOnce, `"spec"`):], "metadata.generation", "4"},
	})
}

func TestImagesArePulled(t *testing.T) { // rule B48
	for _, tt := range []struct {
		image string
		want  corev1.PullPolicy
	}{
		{"x", corev1.PullAlways},
		{"x:latest", corev1.PullAlways},
		{"host:5000/x", corev1.PullAlways},
		{"host:5000/x:1", corev1.PullIfNotPresent},
		{"x:1", corev1.PullIfNotPresent},
		{"x@sha256:0123456789012345678901234567890123456789012345678901234567890123", corev1.PullIfNotPresent},
		{"x:latest@sha256:0123456789012345678901234567890123456789012345678901234567890123", corev1.PullAlways},
		{"", corev1.PullIfNotPresent},
	} {
		t.Run(tt.image, func(t *testing.T) {
			if got := pullPolicyOf(tt.image); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestClassesOfService(t *testing.T) { // rule B48
	const both = `"cpu":"1","memory":"1Gi"`
	for _, tt := range []struct {
		name, resources string
		want            corev1.PodQOSClass
	}{
		{"nothing is asked for", `{}`, corev1.PodQOSBestEffort},
		{"zero is nothing", `{"requests":{"cpu":"0"}}`, corev1.PodQOSBestEffort},
		{"other resources do not count", `{"limits":{"example.com/gpu":"1"}}`, corev1.PodQOSBestEffort},
		{"limits of both", `{"limits":{` + both + `}}`, corev1.PodQOSGuaranteed},
		{"limits of both, and less asked for", `{"limits":{` + both + `},"requests":{"cpu":"500m"}}`, corev1.PodQOSBurstable},
		{"a limit of one", `{"limits":{"cpu":"1"}}`, corev1.PodQOSBurstable},
		{"no limit", `{"requests":{` + both + `}}`, corev1.PodQOSBurstable},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := read(t, "Pod", containerOf(`"resources":`+tt.resources)).(*corev1.Pod)
			if got := qualityOf(&p.Spec); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestWhatIsWrongWithPods(t *testing.T) { // rules B16, B49
	refusals(t, []write{
		{"a pod that is as it should be", "Pod", "", "", podX, ""},
		{"a pod has containers", "Pod", "", "", `{"spec":{}}`, "spec.containers: Required value"},
		{"containers have names and images", "Pod", "", "", `{"spec":{"containers":[{}]}}`,
			"[spec.containers[0].name: Required value, spec.containers[0].image: Required value]"},
		{"names are different", "Pod", "", "", `{"spec":{"containers":[{"name":"a","image":"x"},{"name":"a","image":"x"}]}}`,
			`spec.containers[1].name: Duplicate value: "a"`},
		{"policies are among those that there are", "Pod", "", "", podOf(`"restartPolicy":"Sometimes","dnsPolicy":"Mine"`),
			`[spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never", ` +
				`spec.dnsPolicy: Unsupported value: "Mine": supported values: "ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"]`},
		{"ports are numbers of ports", "Pod", "", "", containerOf(`"ports":[{"containerPort":70000},{"hostPort":80},{"containerPort":80,"protocol":"IP"}]`),
			"[spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive, " +
				"spec.containers[0].ports[1].containerPort: Required value, " +
				`spec.containers[0].ports[2].protocol: Unsupported value: "IP": supported values: "SCTP", "TCP", "UDP"]`},
		{"volumes that are mounted exist", "Pod", "", "", containerOf(`"volumeMounts":[{"name":"v","mountPath":"/v"},{"name":"w"}]`),
			`[spec.containers[0].volumeMounts[1].name: Not found: "w", spec.containers[0].volumeMounts[1].mountPath: Required value]`},
		{"no more is asked for than allowed", "Pod", "", "", containerOf(`"resources":{"requests":{"cpu":"2","memory":"-1"},"limits":{"cpu":"1"}}`),
			`[spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1, ` +
				`spec.containers[0].resources.requests[memory]: Invalid value: "-1": must be greater than or equal to 0]`},

		{"the image may change, the deadline come nearer, a gate go, a toleration be added", "Pod", "", podOnce,
			once(`"image":"x"`, `"image":"y"`, `Seconds":9`, `Seconds":8`, `[{"name":"g"}]`, `[]`, `{"key":"k"}`, `{"key":"k","tolerationSeconds":1},{"key":"l"}`), ""},
		{"containers stay as many", "Pod", "", podOnce, once(`[{"name":"one"`, `[{"name":"two","image":"y"},{"name":"one"`),
			"spec.containers: Forbidden: pod updates may not add or remove containers"},
		{"a deadline does not move away", "Pod", "", podOnce, once(`Seconds":9`, `Seconds":10`),
			"spec.activeDeadlineSeconds: Invalid value: 10: must be less than or equal to previous value"},
		{"nor go", "Pod", "", podOnce, once(`"activeDeadlineSeconds":9,`, ``),
			"spec.activeDeadlineSeconds: Invalid value: null: must not update from a positive integer to nil value"},
		{"tolerations stay", "Pod", "", podOnce, once(`{"key":"k"}`, `{"key":"l"}`),
			"spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"},
		{"gates are not added", "Pod", "", podOnce, once(`{"name":"g"}`, `{"name":"g"},{"name":"h"}`),
			"spec.schedulingGates[1]: Forbidden: only deletion is allowed, but found new scheduling gate 'h'"},
	})
	s := door(t, "Pod", "")
	errs := s.ValidateUpdate(t.Context(), read(t, "Pod", once("Never", "Always")), read(t, "Pod", podOnce))
	if len(errs) != 1 || !strings.HasPrefix(errs[0].Error(), "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,") {
		t.Errorf("another restart policy: %v", errs)
	}
}

func TestPodsGetTimeToEnd(t *testing.T) { // rule B50
	const scheduled = `"nodeName":"n","terminationGracePeriodSeconds":20`
	two, less := int64(2), int64(-1)
	for _, tt := range []struct {
		name, pod string
		asked     *int64
		want      int64
	}{
		{"on a node, what the pod says", podOf(scheduled), nil, 20},
		{"on a node, what the client says", podOf(scheduled), &two, 2},
		{"less than nothing is a second", podOf(scheduled), &less, 1},
		{"on no node, none", podX, &two, 0},
		{"a pod that failed gets none", strings.TrimSuffix(podOf(scheduled), "}") + `,"status":{"phase":"Failed"}}`, &two, 0},
		{"a pod that is done gets none", strings.TrimSuffix(podOf(scheduled), "}") + `,"status":{"phase":"Succeeded"}}`, nil, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := graceOfPod(read(t, "Pod", tt.pod).(*corev1.Pod), tt.asked); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}
