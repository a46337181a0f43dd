package table

import (
	"fmt"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// now is the time of all tests.
var now = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// object reads an object of a built-in kind.
func object(t *testing.T, kind schema.GroupVersionKind, manifest string) runtime.Object {
	t.Helper()
	obj, err := newScheme(t).New(kind)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict([]byte(manifest), obj); err != nil {
		t.Fatal(err)
	}
	return obj
}

// shows is a row as one line, with a bar between cells.
func shows(c *Columns, obj runtime.Object) string {
	var cells []string
	for _, cell := range c.Row(obj, now).Cells {
		cells = append(cells, fmt.Sprint(cell))
	}
	return strings.Join(cells, " | ")
}

// headers are the columns of each kind, as rule B75 gives them: those for -o wide in brackets,
// with a dash for a blank.
var headers = map[string]string{
	"v1 Namespace":             "Name Status Age",
	"v1 PersistentVolumeClaim": "Name Status Volume Capacity Access-Modes StorageClass VolumeAttributesClass Age [VolumeMode]",
	"v1 ConfigMap":             "Name Data Age",
	"v1 Secret":                "Name Type Data Age",
	"v1 ServiceAccount":        "Name Age",
	"v1 Event":                 "Last-Seen Type Reason Object [Subobject Source] Message [First-Seen Count Name]",
	"events.k8s.io/v1 Event":   "Last-Seen Type Reason Object [Subobject Source] Message [First-Seen Count Name]",
	"v1 Pod":                   "Name Ready Status Restarts Age [IP Node Nominated-Node Readiness-Gates]",
	"v1 PodTemplate":           "Name Containers Images Pod-Labels",
	"v1 Service":               "Name Type Cluster-IP External-IP Port(s) Age [Selector]",
	"v1 Endpoints":             "Name Endpoints Age",
	"v1 Node":                  "Name Status Roles Age Version [Internal-IP External-IP OS-Image Kernel-Version Container-Runtime]",
	"v1 PersistentVolume":      "Name Capacity Access-Modes Reclaim-Policy Status Claim StorageClass VolumeAttributesClass Reason Age [VolumeMode]",
	"v1 ReplicationController": "Name Desired Current Ready Age [Containers Images Selector]",
	"v1 ResourceQuota":         "Name Request Limit Age",
	"v1 LimitRange":            "Name Created-At",

	"apps/v1 Deployment":         "Name Ready Up-to-date Available Age [Containers Images Selector]",
	"apps/v1 ReplicaSet":         "Name Desired Current Ready Age [Containers Images Selector]",
	"apps/v1 StatefulSet":        "Name Ready Age [Containers Images]",
	"apps/v1 DaemonSet":          "Name Desired Current Ready Up-to-date Available Node-Selector Age [Containers Images Selector]",
	"apps/v1 ControllerRevision": "Name Controller Revision Age",
	"batch/v1 Job":               "Name Status Completions Duration Age [Containers Images Selector]",
	"batch/v1 CronJob":           "Name Schedule Timezone Suspend Active Last-Schedule Age [Containers Images Selector]",

	"discovery.k8s.io/v1 EndpointSlice":      "Name AddressType Ports Endpoints Age",
	"networking.k8s.io/v1 Ingress":           "Name Class Hosts Address Ports Age",
	"networking.k8s.io/v1 IngressClass":      "Name Controller Parameters Age",
	"networking.k8s.io/v1 NetworkPolicy":     "Name Pod-Selector Age",
	"autoscaling/v1 Scale":                   "Name Desired Available Age",
	"autoscaling/v2 HorizontalPodAutoscaler": "Name Reference Targets MinPods MaxPods Replicas Age",
	"autoscaling/v1 HorizontalPodAutoscaler": "Name Reference Targets MinPods MaxPods Replicas Age",
	"policy/v1 PodDisruptionBudget":          "Name Min-Available Max-Unavailable Allowed-Disruptions Age",
	"scheduling.k8s.io/v1 PriorityClass":     "Name Value Global-Default Age PreemptionPolicy",

	"storage.k8s.io/v1 StorageClass":     "Name Provisioner ReclaimPolicy VolumeBindingMode AllowVolumeExpansion Age",
	"storage.k8s.io/v1 CSIDriver":        "Name AttachRequired PodInfoOnMount StorageCapacity TokenRequests RequiresRepublish Modes Age",
	"storage.k8s.io/v1 CSINode":          "Name Drivers Age",
	"storage.k8s.io/v1 VolumeAttachment": "Name Attacher PV Node Attached Age",
	"node.k8s.io/v1 RuntimeClass":        "Name Handler Age",

	"coordination.k8s.io/v1 Lease":                     "Name Holder Age",
	"rbac.authorization.k8s.io/v1 Role":                "Name Created-At",
	"rbac.authorization.k8s.io/v1 ClusterRole":         "Name Created-At",
	"rbac.authorization.k8s.io/v1 RoleBinding":         "Name Role Age [Users Groups ServiceAccounts]",
	"rbac.authorization.k8s.io/v1 ClusterRoleBinding":  "Name Role Age [Users Groups ServiceAccounts]",
	"certificates.k8s.io/v1 CertificateSigningRequest": "Name Age SignerName Requestor RequestedDuration Condition",

	"apiextensions.k8s.io/v1 CustomResourceDefinition":               "Name Scope Versions Created-At [Group Kind ShortNames Established]",
	"admissionregistration.k8s.io/v1 MutatingWebhookConfiguration":   "Name Webhooks Age",
	"admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration": "Name Webhooks Age",
}

// header is a header in the notation of headers.
func header(c *Columns) string {
	var b strings.Builder
	open := false
	for i, d := range c.Definitions {
		switch wide := d.Priority > 0; {
		case wide && !open:
			b.WriteString(" [")
		case !wide && open:
			b.WriteString("] ")
		case i > 0:
			b.WriteString(" ")
		}
		open = d.Priority > 0
		b.WriteString(strings.ReplaceAll(d.Name, " ", "-"))
	}
	if open {
		b.WriteString("]")
	}
	return b.String()
}

func TestEachKindHasTheColumnsOfRuleB75(t *testing.T) {
	for kind, want := range headers {
		version, name, _ := strings.Cut(kind, " ")
		if got := header(Of(schema.FromAPIVersionAndKind(version, name))); got != want {
			t.Errorf("%s has columns\n%s, want\n%s", kind, got, want)
		}
	}
}

func TestAnEmptyObjectOfEveryKindHasACellInEveryColumn(t *testing.T) {
	s := newScheme(t)
	for kind, columns := range builtin() {
		obj, err := s.New(kind)
		if err != nil {
			t.Errorf("columns are given for %s, which is no kind: %v", kind, err)
			continue
		}
		row := columns.Row(obj, now)
		if len(row.Cells) != len(columns.Definitions) {
			t.Errorf("%s has %d columns and %d cells", kind, len(columns.Definitions), len(row.Cells))
		}
		for i, cell := range row.Cells {
			if fits := typed(columns.Definitions[i].Type, cell); !fits {
				t.Errorf("the cell of an empty %s in column %s is %#v, which is no %s", kind, columns.Definitions[i].Name, cell, columns.Definitions[i].Type)
			}
		}
	}
}

// typed reports whether a cell may stand in a column. What is called a string may be anything:
// clients print it.
func typed(kind string, cell any) bool {
	_, isText := cell.(string)
	_, isNumber := cell.(int64)
	_, isTruth := cell.(bool)
	switch kind {
	case "integer":
		return isNumber
	case "boolean":
		return isTruth || isText // the Suspend of a CronJob is True or False
	}
	return isText || isNumber || isTruth
}

func TestAnObjectOfAnotherKindIsABug(t *testing.T) {
	defer func() {
		if p := recover(); p == nil {
			t.Error("a namespace was shown as a pod")
		}
	}()
	Of(v1("", "Pod")).Row(object(t, v1("", "Namespace"), "{}"), now)
}

// A kind that has no columns of its own shows its name, and when it was created (rules S135, H219).
func TestAKindWithoutColumnsOfItsOwn(t *testing.T) {
	c := Of(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Lamp"})
	var header []string
	for _, d := range c.Definitions {
		header = append(header, d.Name+" "+d.Type+" "+d.Format)
	}
	if got, want := strings.Join(header, ", "), "Name string name, Created At date "; got != want {
		t.Errorf("columns %q, want %q", got, want)
	}
	east := time.FixedZone("east", 3600)
	lamp := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "desk", CreationTimestamp: metav1.NewTime(time.Date(2030, 1, 2, 4, 5, 6, 7, east))}}
	row := c.Row(lamp, time.Now())
	if got, want := fmt.Sprint(row.Cells), "[desk 2030-01-02T03:05:06Z]"; got != want {
		t.Errorf("cells %s, want %s", got, want)
	}
}
