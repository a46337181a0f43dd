package builtin

import (
	"fmt"
	"strings"
	"testing"
)

// workload is a workload with that specification beside selector and template.
func workload(spec string) string {
	return `{"metadata":{"name":"a","generation":3},"spec":{` + spec + `"selector":{"matchLabels":{"a":"b"}},` +
		`"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"one","image":"x:1"}]}}}}`
}

func TestWorkloadsAreFilledIn(t *testing.T) { // rules B58 to B61, B64
	jobOf := func(spec string) string {
		return `{"metadata":{"name":"a","uid":"u"},"spec":{` + spec + `"template":{"metadata":{"labels":{"k":"v"}},"spec":{"restartPolicy":"Never","containers":[{"name":"one","image":"x:1"}]}}}}`
	}
	parts(t, []part{
		{"a deployment has one pod", "Deployment", "", "", workload(""), "spec.replicas", "1"},
		{"none stays none", "Deployment", "", "", workload(`"replicas":0,`), "spec.replicas", "0"},
		{"it is replaced by quarters", "Deployment", "", "", workload(""), "spec.strategy",
			`{"rollingUpdate":{"maxSurge":"25%","maxUnavailable":"25%"},"type":"RollingUpdate"}`},
		{"what is said of that stays", "Deployment", "", "", workload(`"strategy":{"rollingUpdate":{"maxSurge":1}},`), "spec.strategy.rollingUpdate",
			`{"maxSurge":1,"maxUnavailable":"25%"}`},
		{"one that is created anew has no quarters", "Deployment", "", "", workload(`"strategy":{"type":"Recreate"},`), "spec.strategy", `{"type":"Recreate"}`},
		{"ten old versions are kept", "Deployment", "", "", workload(""), "spec.revisionHistoryLimit", "10"},
		{"ten minutes are long enough", "Deployment", "", "", workload(""), "spec.progressDeadlineSeconds", "600"},
		{"templates are filled in like pods", "Deployment", "", "", workload(""), "spec.template.spec.containers.0.imagePullPolicy", `"IfNotPresent"`},
		{"but for what only pods have", "Deployment", "", "", workload(""), "spec.template.spec.enableServiceLinks", ""},
		{"a new one has generation 1", "Deployment", "", "", workload(""), "metadata.generation", "1"},
		{"and no status", "Deployment", "", "", strings.TrimSuffix(workload(""), "}") + `,"status":{"replicas":3}}`, "status", "{}"},
		{"another specification raises the generation", "Deployment", "", workload(""), workload(`"replicas":2,`), "metadata.generation", "4"},
		{"rule B9: so do annotations", "Deployment", "", workload(""), strings.Replace(workload(""), `"name":"a"`, `"name":"a","annotations":{"k":"v"}`, 1), "metadata.generation", "4"},
		{"rule B10: the door for status changes status", "Deployment", "status", workload(""), strings.TrimSuffix(workload(`"replicas":2,`), "}") + `,"status":{"replicas":3}}`, "status.replicas", "3"},
		{"rule B10: and nothing of the specification", "Deployment", "status", workload(""), workload(`"replicas":2,`), "spec.replicas", "1"},
		{"rule B10: nor labels", "Deployment", "status", workload(""), strings.Replace(workload(""), `"name":"a"`, `"name":"a","labels":{"k":"v"}`, 1), "metadata.labels", ""},
		{"rule B10: the main door changes no status", "Deployment", "", workload(""), strings.TrimSuffix(workload(""), "}") + `,"status":{"replicas":3}}`, "status", "{}"},

		{"a replica set has one pod", "ReplicaSet", "", "", workload(""), "spec.replicas", "1"},
		{"annotations of a replica set raise nothing", "ReplicaSet", "", workload(""), strings.Replace(workload(""), `"name":"a"`, `"name":"a","annotations":{"k":"v"}`, 1), "metadata.generation", "3"},

		{"pods of a stateful set come in order", "StatefulSet", "", "", workload(""), "spec.podManagementPolicy", `"OrderedReady"`},
		{"and are replaced one by one", "StatefulSet", "", "", workload(""), "spec.updateStrategy", `{"rollingUpdate":{"maxUnavailable":1,"partition":0},"type":"RollingUpdate"}`},
		{"its claims stay", "StatefulSet", "", "", workload(""), "spec.persistentVolumeClaimRetentionPolicy", `{"whenDeleted":"Retain","whenScaled":"Retain"}`},
		{"claims are filled in", "StatefulSet", "", "", workload(`"volumeClaimTemplates":[{"metadata":{"name":"d"}}],`), "spec.volumeClaimTemplates.0",
			`{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"d"},"spec":{"resources":{},"volumeMode":"Filesystem"},"status":{"phase":"Pending"}}`},

		{"a job is done once", "Job", "", "", jobOf(""), "spec.completions", "1"},
		{"one with a parallelism is done as often as its pods want", "Job", "", "", jobOf(`"parallelism":2,`), "spec.completions", ""},
		{"it is tried six times more", "Job", "", "", jobOf(""), "spec.backoffLimit", "6"},
		{"it selects its own pods", "Job", "", "", jobOf(""), "spec.selector", `{"matchLabels":{"batch.kubernetes.io/controller-uid":"u"}}`},
		{"which carry its name and uid, twice", "Job", "", "", jobOf(""), "spec.template.metadata.labels",
			`{"batch.kubernetes.io/controller-uid":"u","batch.kubernetes.io/job-name":"a","controller-uid":"u","job-name":"a","k":"v"}`},
		{"the labels of the template are its own", "Job", "", "", jobOf(""), "metadata.labels", `{"k":"v"}`},
		{"unless it brings a selector", "Job", "", "", jobOf(`"manualSelector":true,"selector":{"matchLabels":{"k":"v"}},`), "spec.selector", `{"matchLabels":{"k":"v"}}`},
		{"conditions of pods that failed are such as hold", "Job", "", "", jobOf(`"podFailurePolicy":{"rules":[{"onPodConditions":[{"type":"x"}]}]},`),
			"spec.podFailurePolicy.rules.0.onPodConditions", `[{"status":"True","type":"x"}]`},
		{"failed pods are replaced once they are gone", "Job", "", "", jobOf(""), "spec.podReplacementPolicy", `"TerminatingOrFailed"`},
		{"where failing is told apart, once they failed", "Job", "", "", jobOf(`"podFailurePolicy":{"rules":[]},`), "spec.podReplacementPolicy", `"Failed"`},

		{"pods of a daemon set are replaced one by one", "DaemonSet", "", "", workload(""), "spec.updateStrategy", `{"rollingUpdate":{"maxSurge":0,"maxUnavailable":1},"type":"RollingUpdate"}`},
		{"or when they are deleted", "DaemonSet", "", "", workload(`"updateStrategy":{"type":"OnDelete"},`), "spec.updateStrategy", `{"type":"OnDelete"}`},
		{"ten old versions of a daemon set are kept", "DaemonSet", "", "", workload(""), "spec.revisionHistoryLimit", "10"},
		{"a new one has its first template", "DaemonSet", "", "", workload(""), "metadata.annotations", templates(1)},
		{"another template is counted", "DaemonSet", "", counted(workload(""), 4), strings.Replace(workload(""), "x:1", "x:2", 1), "metadata.annotations", templates(5)},
		{"and raises the generation", "DaemonSet", "", workload(""), strings.Replace(workload(""), "x:1", "x:2", 1), "metadata.generation", "4"},
		{"no other change is counted, whatever the client says", "DaemonSet", "", counted(workload(""), 4), counted(workload(`"minReadySeconds":1,`), 9), "metadata.annotations", templates(4)},
		{"it raises the generation all the same", "DaemonSet", "", workload(""), workload(`"minReadySeconds":1,`), "metadata.generation", "4"},
		{"rule B10: the door for status counts nothing", "DaemonSet", "status", counted(workload(""), 4), strings.Replace(workload(""), "x:1", "x:2", 1), "metadata.annotations", templates(4)},
		{"rule B10: the door for status of a daemon set changes status", "DaemonSet", "status", workload(""), strings.TrimSuffix(workload(""), "}") + `,"status":{"numberReady":3}}`, "status.numberReady", "3"},
		{"a count that is none begins anew", "DaemonSet", "", "", strings.Replace(counted(workload(""), 4), `"4"`, `"many"`, 1), "metadata.annotations", templates(1)},

		{"a replication controller has one pod", "ReplicationController", "", "", controller(""), "spec.replicas", "1"},
		{"it selects its template", "ReplicationController", "", "", controller(""), "spec.selector", `{"a":"b"}`},
		{"and is labelled like it", "ReplicationController", "", "", controller(""), "metadata.labels", `{"a":"b"}`},
		{"unless it says otherwise", "ReplicationController", "", "", controller(`"selector":{"c":"d"},`), "spec.selector", `{"c":"d"}`},
		{"its template is filled in", "ReplicationController", "", "", controller(""), "spec.template.spec.restartPolicy", `"Always"`},
		{"a new one has generation 1, as workloads do", "ReplicationController", "", "", controller(""), "metadata.generation", "1"},
		{"rule B10: its door for status changes nothing else", "ReplicationController", "status", controller(""), controller(`"replicas":2,`), "spec.replicas", "1"},

		{"jobs may run at once", "CronJob", "", "", cron(`"schedule":"@daily",`), "spec.concurrencyPolicy", `"Allow"`},
		{"and are not held up", "CronJob", "", "", cron(`"schedule":"@daily",`), "spec.suspend", "false"},
		{"three that went well are kept", "CronJob", "", "", cron(`"schedule":"@daily",`), "spec.successfulJobsHistoryLimit", "3"},
		{"and one that did not", "CronJob", "", "", cron(`"schedule":"@daily",`), "spec.failedJobsHistoryLimit", "1"},
		{"the pods of its jobs are filled in", "CronJob", "", "", cron(`"schedule":"@daily",`), "spec.jobTemplate.spec.template.spec.dnsPolicy", `"ClusterFirst"`},
		{"but its jobs are not, before they come", "CronJob", "", "", cron(`"schedule":"@daily",`), "spec.jobTemplate.spec.completions", ""},
		{"another schedule raises the generation", "CronJob", "", cron(`"schedule":"@daily",`), cron(`"schedule":"@weekly",`), "metadata.generation", "4"},
		{"rule B10: the door for status of a cron job leaves the schedule", "CronJob", "status", cron(`"schedule":"@daily",`), cron(`"schedule":"@weekly",`), "spec.schedule", `"@daily"`},
	})
}

// counted is a daemon set whose template has changed that often, and templates what it says of that.
func counted(document string, n int) string {
	return strings.Replace(document, `"name":"a"`, `"name":"a","annotations":`+templates(n), 1)
}

func templates(n int) string {
	return fmt.Sprintf(`{"deprecated.daemonset.template.generation":"%d"}`, n)
}

// controller is a replication controller with that specification beside the template.
func controller(spec string) string {
	return `{"metadata":{"name":"a","generation":3},"spec":{` + spec +
		`"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"one","image":"x:1"}]}}}}`
}

// cron is a cron job with that specification beside the template of its jobs.
func cron(spec string) string { return cronOf(spec, "") }

// cronOf says something of the jobs as well.
func cronOf(spec, job string) string {
	return `{"metadata":{"name":"a","generation":3},"spec":{` + spec + `"jobTemplate":{"spec":{` + job +
		`"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"one","image":"x:1"}]}}}}}}`
}

func TestWhatIsWrongWithWorkloads(t *testing.T) { // rules B16, B58 to B61
	all := []write{
		{"a strategy that stops everything", "Deployment", "", "", workload(`"strategy":{"rollingUpdate":{"maxSurge":0,"maxUnavailable":0}},`),
			"spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0"},
		{"shares are percentages", "Deployment", "", "", workload(`"strategy":{"rollingUpdate":{"maxSurge":"many","maxUnavailable":"200%"}},`),
			`[spec.strategy.rollingUpdate.maxSurge: Invalid value: "many": a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%'), ` +
				`spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "200%": must not be greater than 100%]`},
		{"no quarters for what is created anew", "Deployment", "", "", workload(`"strategy":{"type":"Recreate","rollingUpdate":{}},`),
			"spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'"},
		{"a deadline after which it is ready", "Deployment", "", "", workload(`"minReadySeconds":9,"progressDeadlineSeconds":9,`),
			"spec.progressDeadlineSeconds: Invalid value: 9: must be greater than minReadySeconds"},
		{"how stateful sets change", "StatefulSet", "", "", workload(`"podManagementPolicy":"Any","updateStrategy":{"type":"OnDelete","rollingUpdate":{}},"serviceName":"a.b",`),
			`[spec.podManagementPolicy: Invalid value: "Any": must be 'OrderedReady' or 'Parallel', ` +
				`spec.updateStrategy.rollingUpdate: Invalid value: {}: only allowed for updateStrategy 'RollingUpdate', ` +
				`spec.serviceName: Invalid value: "a.b": must not contain dots]`},
		{"a stateful set keeps what it is", "StatefulSet", "", workload(`"serviceName":"a",`), workload(`"serviceName":"b",`),
			`spec.serviceName: Invalid value: "b": field is immutable`},
		{"claims of a stateful set are volumes", "StatefulSet", "", "",
			strings.Replace(workload(`"volumeClaimTemplates":[{"metadata":{"name":"d"}}],`), `"image":"x:1"`, `"image":"x:1","volumeMounts":[{"name":"d","mountPath":"/d"}]`, 1), ""},
		{"a job that never ends", "Job", "", "", workload(`"manualSelector":true,`), `spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"`},
		{"a job without a selector", "Job", "", "", `{"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"a","image":"x"}]}}}}`, "spec.selector: Required value"},
	}
	all = append(all, []write{
		{"a daemon set that is replaced in two ways at once", "DaemonSet", "", "", workload(`"updateStrategy":{"rollingUpdate":{"maxSurge":"10%"}},`),
			`spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: "10%": may not be set when maxUnavailable is non-zero`},
		{"a daemon set that is replaced in no way", "DaemonSet", "", "", workload(`"updateStrategy":{"rollingUpdate":{"maxUnavailable":0}},`),
			`spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0`},
		{"a daemon set that is more than whole", "DaemonSet", "", "", workload(`"updateStrategy":{"rollingUpdate":{"maxUnavailable":"200%"}},"revisionHistoryLimit":-1,`),
			`[spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: "200%": must not be greater than 100%, ` +
				`spec.revisionHistoryLimit: Invalid value: -1: must be greater than or equal to 0]`},
		{"a daemon set that is replaced in a way of its own", "DaemonSet", "", "", workload(`"updateStrategy":{"type":"Odd"},`),
			`spec.updateStrategy: Unsupported value: {"type":"Odd"}: supported values: "RollingUpdate", "OnDelete"`},
		{"rule B17: finalizers of workloads need a domain", "DaemonSet", "", "", strings.Replace(workload(""), `"name":"a"`, `"name":"a","finalizers":["bad"]`, 1),
			`metadata.finalizers[0]: Invalid value: "bad": name is neither a standard finalizer name nor is it fully qualified`},

		{"a replication controller as it should be", "ReplicationController", "", "", controller(""), ""},
		{"one without a template", "ReplicationController", "", "", `{"spec":{"replicas":-1}}`,
			"[spec.selector: Required value, spec.replicas: Invalid value: -1: must be greater than or equal to 0, spec.template: Required value]"},
		{"its selector selects its template", "ReplicationController", "", "", controller(`"selector":{"c":"d"},`),
			"spec.template.metadata.labels: Invalid value: {\"a\":\"b\"}: `selector` does not match template `labels`"},
		{"its pods do not end", "ReplicationController", "", "", strings.Replace(controller(""), `"containers"`, `"activeDeadlineSeconds":5,"restartPolicy":"Never","containers"`, 1),
			`[spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always", ` +
				`spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in ReplicationController is not Supported]`},
		{"its selector may change", "ReplicationController", "", controller(""), strings.ReplaceAll(controller(""), `"a":"b"`, `"a":"c"`), ""},
	}...)
	for _, kind := range []string{"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"} {
		replicas := write{kind + ": less than nothing", kind, "", "", workload(`"replicas":-1,`), "spec.replicas: Invalid value: -1: must be greater than or equal to 0"}
		if kind == "DaemonSet" { // which counts nodes
			replicas.want = ""
		}
		all = append(all, replicas)
		all = append(all, []write{
			{kind + ": as it should be", kind, "", "", workload(""), ""},
			{kind + ": a selector selects the template", kind, "", "", strings.Replace(workload(""), `{"labels":{"a":"b"}}`, `{"labels":{"c":"d"}}`, 1),
				"spec.template.metadata.labels: Invalid value: {\"c\":\"d\"}: `selector` does not match template `labels`"},
			{kind + ": pods do not end", kind, "", "", strings.Replace(workload(""), `"containers"`, `"restartPolicy":"Never","containers"`, 1),
				`spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"`},
			{kind + ": a selector does not change", kind, "", workload(""), strings.ReplaceAll(workload(""), `"a":"b"`, `"a":"c"`),
				`spec.selector: Invalid value: {"matchLabels":{"a":"c"}}: field is immutable`},
		}...)
	}
	refusals(t, all)
	errs := door(t, "Deployment", "").Validate(t.Context(), read(t, "Deployment", strings.Replace(workload(""), `{"matchLabels":{"a":"b"}}`, `{}`, 1)))
	if got := fmt.Sprint(errs); got != "[spec.selector: Invalid value: {}: empty selector is invalid for deployment]" {
		t.Errorf("an empty selector: %s", got)
	}
}

func TestWhatKeepsANumberOfPodsHasAScale(t *testing.T) { // rule H176
	for _, tt := range []struct{ kind, document, want string }{
		{"Deployment", workload(`"replicas":3,`), "3 of a=b"},
		{"ReplicaSet", workload(`"replicas":3,`), "3 of a=b"},
		{"StatefulSet", workload(`"replicas":3,`), "3 of a=b"},
		{"ReplicationController", controller(`"replicas":3,"selector":{"c":"d","a":"b"},`), "3 of a=b,c=d"},
		{"DaemonSet", workload(""), "none"}, {"Job", workload(""), "none"}, {"CronJob", cron(""), "none"},
	} {
		t.Run(tt.kind, func(t *testing.T) {
			got := "none"
			if door := wire(t, tt.kind).Versions[0].Subresources["scale"]; door != nil {
				s, _, err := door.Scale.Of(read(t, tt.kind, tt.document))
				if err != nil {
					t.Fatal(err)
				}
				got = fmt.Sprintf("%d of %s", s.Spec.Replicas, s.Status.Selector)
			}
			if got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}
