package table

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestCellsSayWhatAnObjectIs(t *testing.T) {
	const meta = `metadata: {name: a, creationTimestamp: "2026-07-01T11:54:57Z"}` + "\n"
	for _, test := range []struct {
		name, version, kind, object, want string
	}{
		{
			"a namespace has a phase, and an age that is short", "v1", "Namespace",
			meta + `status: {phase: Active}`, "a | Active | 5m3s",
		},
		{
			"an object that was never created has no age", "v1", "Namespace",
			`metadata: {name: a}`, "a |  | <unknown>",
		},
		{
			"text and binary data of a config map are counted together", "v1", "ConfigMap",
			meta + `{data: {a: x, b: y}, binaryData: {c: eA==}}`, "a | 3 | 5m3s",
		},
		{
			"a secret says its type", "v1", "Secret",
			meta + `{type: Opaque, data: {a: eA==}}`, "a | Opaque | 1 | 5m3s",
		},
		{
			"of a quota, limits stand apart", "v1", "ResourceQuota",
			meta + `status: {hard: {limits.cpu: "4", pods: "10", cpu: "2"}, used: {cpu: "1"}}`, "a | cpu: 1/2, pods: 0/10 | limits.cpu: 0/4 | 5m3s",
		},
		{
			"a lease without a holder has an empty cell", "coordination.k8s.io/v1", "Lease",
			meta, "a |  | 5m3s",
		},
		{
			"an event of the old kind", "v1", "Event",
			meta + `{involvedObject: {kind: Pod, name: p, fieldPath: spec}, type: Warning, reason: Bad, message: "it broke\n", count: 3,
			  source: {component: kubelet, host: n1}, firstTimestamp: "2026-07-01T11:00:00Z", lastTimestamp: "2026-07-01T11:59:00Z"}`,
			"60s | Warning | Bad | pod/p | spec | kubelet, n1 | it broke | 60m | 3 | a",
		},
		{
			"an event of the new kind that happened once has a time and no count", "events.k8s.io/v1", "Event",
			meta + `{regarding: {kind: Pod, name: p}, type: Normal, reason: Ok, note: fine, eventTime: "2026-07-01T11:59:00.000000Z", reportingController: me}`,
			"60s | Normal | Ok | pod/p |  | me | fine | 60s | 1 | a",
		},
		{
			"a series says when an event was last seen", "v1", "Event",
			meta + `{involvedObject: {kind: Pod}, eventTime: "2026-07-01T11:00:00.000000Z", series: {count: 7, lastObservedTime: "2026-07-01T11:59:50.000000Z"}}`,
			"10s |  |  | pod |  |  |  | 60m | 7 | a",
		},
		{
			"a cluster service without ports", "v1", "Service",
			meta + `spec: {type: ClusterIP, clusterIPs: [10.0.0.1]}`, "a | ClusterIP | 10.0.0.1 | <none> | <none> | 5m3s | <none>",
		},
		{
			"a load balancer waits for its address", "v1", "Service",
			meta + `spec: {type: LoadBalancer, clusterIPs: [10.0.0.1], ports: [{port: 80, nodePort: 30080, protocol: TCP}, {port: 53, protocol: UDP}], selector: {app: x}}`,
			"a | LoadBalancer | 10.0.0.1 | <pending> | 80:30080/TCP,53/UDP | 5m3s | app=x",
		},
		{
			"a load balancer has its addresses, then the external ones", "v1", "Service",
			meta + "spec: {type: LoadBalancer, externalIPs: [9.9.9.9]}\nstatus: {loadBalancer: {ingress: [{hostname: lb}, {ip: 1.2.3.4}]}}",
			"a | LoadBalancer | <none> | 1.2.3.4,lb,9.9.9.9 | <none> | 5m3s | <none>",
		},
		{
			"an external name is an address", "v1", "Service",
			meta + `spec: {type: ExternalName, externalName: example.com}`, "a | ExternalName | <none> | example.com | <none> | 5m3s | <none>",
		},
		{
			"three endpoints are shown, and how many more there are", "v1", "Endpoints",
			meta + `subsets: [{addresses: [{ip: 1.1.1.1}, {ip: 1.1.1.2}], ports: [{port: 80}, {port: 443}]}]`,
			"a | 1.1.1.1:80,1.1.1.2:80,1.1.1.1:443 + 1 more... | 5m3s",
		},
		{
			"a slice without a port number shows the port's name", "discovery.k8s.io/v1", "EndpointSlice",
			meta + `{addressType: IPv4, ports: [{name: web}, {port: 80}], endpoints: [{addresses: [1.1.1.1]}]}`, "a | IPv4 | web,80 | 1.1.1.1 | 5m3s",
		},
		{
			"an ingress for every host", "networking.k8s.io/v1", "Ingress",
			meta + `spec: {tls: [{hosts: [x]}]}`, "a | <none> | * |  | 80, 443 | 5m3s",
		},
		{
			"a default class is marked", "networking.k8s.io/v1", "IngressClass",
			`metadata: {name: a, annotations: {ingressclass.kubernetes.io/is-default-class: "true"}}` + "\nspec: {controller: c, parameters: {apiGroup: g.io, kind: K, name: params}}",
			"a (default) | c | K.g.io/params | <unknown>",
		},
		{
			"a node that is ready and takes no pods", "v1", "Node",
			`metadata: {name: a, labels: {node-role.kubernetes.io/worker: "", kubernetes.io/role: edge}}` +
				"\nspec: {unschedulable: true}\nstatus: {conditions: [{type: Ready, status: \"True\"}], nodeInfo: {kubeletVersion: v1.37.0, architecture: amd64}, addresses: [{type: InternalIP, address: 10.1.1.1}]}",
			"a | Ready,SchedulingDisabled | edge,worker | <unknown> | v1.37.0 | 10.1.1.1 | <none> | <unknown> | <unknown> (amd64) | <unknown>",
		},
		{
			"a deployment counts one replica if it does not say how many", "apps/v1", "Deployment",
			meta + `spec: {selector: {matchLabels: {app: x}}, template: {spec: {containers: [{name: c, image: i}, {name: d, image: j}]}}}`,
			"a | 0/1 | 0 | 0 | 5m3s | c,d | i,j | app=x",
		},
		{
			"a daemon set counts nodes", "apps/v1", "DaemonSet",
			meta + "spec: {selector: {matchLabels: {app: x}}, template: {spec: {nodeSelector: {disk: ssd}, containers: [{name: c, image: i}]}}}\nstatus: {desiredNumberScheduled: 3, currentNumberScheduled: 2, numberReady: 1}",
			"a | 3 | 2 | 1 | 0 | 0 | disk=ssd | 5m3s | c | i | app=x",
		},
		{
			"a replication controller without a template", "v1", "ReplicationController",
			meta + "spec: {selector: {app: x}}\nstatus: {replicas: 2, readyReplicas: 1}", "a | 1 | 2 | 1 | 5m3s |  |  | app=x",
		},
		{
			"a job that runs", "batch/v1", "Job",
			meta + "spec: {parallelism: 3}\nstatus: {startTime: \"2026-07-01T11:59:00Z\", succeeded: 1}", "a | Running | 1/1 of 3 | 60s | 5m3s |  |  | <none>",
		},
		{
			"a job that is complete took as long as it took", "batch/v1", "Job",
			meta + "spec: {completions: 2}\nstatus: {startTime: \"2026-07-01T10:00:00Z\", completionTime: \"2026-07-01T10:00:30Z\", succeeded: 2, conditions: [{type: Complete, status: \"True\"}]}",
			"a | Complete | 2/2 | 30s | 5m3s |  |  | <none>",
		},
		{
			"a cron job says True or False", "batch/v1", "CronJob",
			meta + `spec: {schedule: "* * * * *", suspend: true}`, "a | * * * * * | <none> | True | 0 | <none> | 5m3s |  |  | <none>",
		},
		{
			"a volume on its way out is Terminating", "v1", "PersistentVolume",
			`metadata: {name: a, deletionTimestamp: "2026-07-01T11:00:00Z"}` + "\nspec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteMany, ReadWriteOnce], claimRef: {namespace: ns, name: c}, storageClassName: fast}\nstatus: {phase: Bound}",
			"a | 1Gi | RWO,RWX |  | Terminating | ns/c | fast | <unset> |  | <unknown> | <unset>",
		},
		{
			"a claim shows no size before it has a volume", "v1", "PersistentVolumeClaim",
			meta + "status: {phase: Pending, capacity: {storage: 1Gi}}", "a | Pending |  |  |  |  | <unset> | 5m3s | <unset>",
		},
		{
			"an autoscaler shows two metrics, and how many more there are", "autoscaling/v2", "HorizontalPodAutoscaler",
			meta + `{spec: {scaleTargetRef: {kind: Deployment, name: d}, maxReplicas: 4, metrics: [{type: Resource, resource: {name: cpu, target: {averageUtilization: 80}}},
			  {type: Pods, pods: {target: {averageValue: 5}}}, {type: Odd}]}, status: {currentMetrics: [{resource: {current: {averageUtilization: 12}}}]}}`,
			"a | Deployment/d | cpu: 12%/80%, <unknown>/5 + 1 more... | <unset> | 4 | 0 | 5m3s",
		},
		{
			"a budget that says nothing", "policy/v1", "PodDisruptionBudget",
			meta + `spec: {minAvailable: 50%}`, "a | 50% | N/A | 0 | 5m3s",
		},
		{
			"subjects of a binding are sorted by their kinds", "rbac.authorization.k8s.io/v1", "RoleBinding",
			meta + `{roleRef: {kind: Role, name: r}, subjects: [{kind: User, name: u}, {kind: ServiceAccount, namespace: ns, name: s}, {kind: Group, name: g}, {kind: User, name: v}]}`,
			"a | Role/r | 5m3s | u, v | g | ns/s",
		},
		{
			"a kind without columns shows when it was created", "rbac.authorization.k8s.io/v1", "Role",
			meta, "a | 2026-07-01T11:54:57Z",
		},
		{
			"a definition shows what it serves", "apiextensions.k8s.io/v1", "CustomResourceDefinition",
			meta + `{spec: {scope: Cluster, group: g, names: {kind: K, shortNames: [x, z]}, versions: [{name: v2, served: true, storage: true}, {name: v1, served: true}, {name: v0}]},
			  status: {conditions: [{type: Established, status: "True"}]}}`,
			"a | Cluster | v1,v2(storage) | 2026-07-01T11:54:57Z | g | K | x,z | true",
		},
		{
			"a controller revision names its controller", "apps/v1", "ControllerRevision",
			`{metadata: {name: a, ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: d, controller: true}]}, revision: 4}`, "a | daemonset.apps/d | 4 | <unknown>",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			kind := schema.FromAPIVersionAndKind(test.version, test.kind)
			if got := shows(Of(kind), object(t, kind, flat(test.object))); got != test.want {
				t.Errorf("shows\n%s, want\n%s", got, test.want)
			}
		})
	}
}

// flat puts an object that is written as one map in front of one that continues it, together:
// YAML has no other way to go on after a brace.
func flat(manifest string) string {
	head, rest, ok := strings.Cut(manifest, "\n{")
	if !ok {
		return manifest
	}
	return "{" + head + ", " + rest
}
