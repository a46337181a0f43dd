package table

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestThePodStatusIsWhatItsContainersComeTo(t *testing.T) {
	for _, test := range []struct {
		name, pod, want string // Ready, Status and Restarts
	}{
		{"a pod that nobody runs is in its phase", `{spec: {containers: [{name: a}]}, status: {phase: Pending}}`, "0/1 Pending 0"},
		{"its reason says more than its phase", `{status: {phase: Failed, reason: Evicted}}`, "0/0 Evicted 0"},
		{
			"a pod with a gate says so", `{status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: SchedulingGated}]}}`,
			"0/0 SchedulingGated 0",
		},
		{
			"a container that is ready counts",
			`{spec: {containers: [{name: a}, {name: b}]}, status: {phase: Running, containerStatuses: [{name: a, ready: true, state: {running: {}}}, {name: b, state: {running: {}}}]}}`,
			"1/2 Running 0",
		},
		{
			"a container that waits says why, and when it was last restarted",
			`{spec: {containers: [{name: a}]}, status: {phase: Running, containerStatuses: [{name: a, restartCount: 4, state: {waiting: {reason: CrashLoopBackOff}},
			  lastState: {terminated: {finishedAt: "2026-07-01T11:59:00Z", exitCode: 1}}}]}}`,
			"0/1 CrashLoopBackOff 4 (60s ago)",
		},
		{
			"a container that ended without a reason shows its code",
			`{spec: {containers: [{name: a}]}, status: {phase: Failed, containerStatuses: [{name: a, state: {terminated: {exitCode: 1}}}]}}`, "0/1 ExitCode:1 0",
		},
		{
			"or its signal",
			`{spec: {containers: [{name: a}]}, status: {phase: Failed, containerStatuses: [{name: a, state: {terminated: {exitCode: 1, signal: 9}}}]}}`, "0/1 Signal:9 0",
		},
		{
			"one that failed weighs more than one that completed",
			`{spec: {containers: [{name: a}, {name: b}]}, status: {phase: Failed, containerStatuses: [{name: a, state: {terminated: {reason: Completed}}},
			  {name: b, state: {terminated: {reason: Error, exitCode: 2}}}]}}`, "0/2 Error 0",
		},
		{
			"a pod is not completed while one container runs",
			`{spec: {containers: [{name: a}, {name: b}]}, status: {phase: Running, conditions: [{type: Ready, status: "True"}],
			  containerStatuses: [{name: a, state: {terminated: {reason: Completed}}}, {name: b, ready: true, state: {running: {}}}]}}`, "1/2 Running 0",
		},
		{
			"and is not ready if it does not say so",
			`{spec: {containers: [{name: a}, {name: b}]}, status: {phase: Running, containerStatuses: [{name: a, state: {terminated: {reason: Completed}}},
			  {name: b, ready: true, state: {running: {}}}]}}`, "1/2 NotReady 0",
		},
		{
			"the first init container that is not done holds the pod up",
			`{spec: {initContainers: [{name: i}, {name: j}], containers: [{name: a}]}, status: {phase: Pending, initContainerStatuses: [{name: i, state: {terminated: {}}},
			  {name: j, restartCount: 2, state: {running: {}}}]}}`, "0/1 Init:1/2 2",
		},
		{
			"one that failed says so",
			`{spec: {initContainers: [{name: i}], containers: [{name: a}]}, status: {phase: Pending, initContainerStatuses: [{name: i, state: {terminated: {exitCode: 3}}}]}}`,
			"0/1 Init:ExitCode:3 0",
		},
		{
			"one that waits says why",
			`{spec: {initContainers: [{name: i}], containers: [{name: a}]}, status: {phase: Pending, initContainerStatuses: [{name: i, state: {waiting: {reason: ErrImagePull}}}]}}`,
			"0/1 Init:ErrImagePull 0",
		},
		{
			"a sidecar that has started holds nothing up, and counts",
			`{spec: {initContainers: [{name: i, restartPolicy: Always}], containers: [{name: a}]}, status: {phase: Running,
			  initContainerStatuses: [{name: i, started: true, ready: true, restartCount: 1, state: {running: {}}}],
			  containerStatuses: [{name: a, ready: true, restartCount: 2, state: {running: {}}}]}}`, "2/2 Running 3",
		},
		{
			"a pod that is being deleted is Terminating", `{metadata: {deletionTimestamp: "2026-07-01T11:00:00Z"}, status: {phase: Running}}`, "0/0 Terminating 0",
		},
		{
			"unless it has ended", `{metadata: {deletionTimestamp: "2026-07-01T11:00:00Z"}, status: {phase: Succeeded}}`, "0/0 Succeeded 0",
		},
		{
			"or its node was lost", `{metadata: {deletionTimestamp: "2026-07-01T11:00:00Z"}, status: {phase: Running, reason: NodeLost}}`, "0/0 Unknown 0",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			kind := v1("", "Pod")
			cells := strings.Split(shows(Of(kind), object(t, kind, test.pod)), " | ")
			if got := strings.Join(cells[1:4], " "); got != test.want {
				t.Errorf("shows %s, want %s", got, test.want)
			}
		})
	}
}

func TestAPodWithGatesCountsTheOpenOnes(t *testing.T) {
	kind := v1("", "Pod")
	got := shows(Of(kind), object(t, kind, `{metadata: {name: a}, spec: {nodeName: n1, readinessGates: [{conditionType: x}, {conditionType: y}]},
		status: {podIPs: [{ip: 10.2.0.1}], nominatedNodeName: m, conditions: [{type: y, status: "True"}, {type: x, status: "False"}]}}`))
	if want := "a | 0/0 |  | 0 | <unknown> | 10.2.0.1 | n1 | m | 1/2"; got != want {
		t.Errorf("shows %s, want %s", got, want)
	}
}

func TestARowSaysWhenAPodWillNotRunAnyMore(t *testing.T) {
	for phase, want := range map[string]string{"Succeeded": "The pod has completed successfully.", "Failed": "The pod failed.", "Running": ""} {
		row := Of(v1("", "Pod")).Row(object(t, v1("", "Pod"), "status: {phase: "+phase+"}"), now)
		switch {
		case want == "" && row.Conditions != nil:
			t.Errorf("a pod that is %s has conditions %v", phase, row.Conditions)
		case want == "":
		case len(row.Conditions) != 1 || row.Conditions[0].Type != metav1.RowCompleted || row.Conditions[0].Reason != phase || row.Conditions[0].Message != want:
			t.Errorf("a pod that is %s has conditions %v", phase, row.Conditions)
		}
	}
}
