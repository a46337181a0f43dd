package builtin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pawl-dev/pawl/internal/resource"
	"github.com/pawl-dev/pawl/registry"
	"github.com/pawl-dev/pawl/storage"
)

// A served is the main store of a kind, through which documents are written.
type served struct {
	*testing.T
	*resource.Version
	namespace string
}

func serve(t *testing.T, kind string) served {
	return served{t, wire(t, kind).Versions[0], "b"}
}

func (s served) create(document string, o registry.CreateOptions) (storage.Version, error) {
	obj, _, err := s.Form.Decode([]byte(document))
	if err != nil {
		return storage.Version{}, err
	}
	return s.Store.Create(s.Context(), s.namespace, obj, o)
}

func (s served) update(name, document string) (storage.Version, error) {
	obj, _, err := s.Form.Decode([]byte(document))
	if err != nil {
		return storage.Version{}, err
	}
	done, err := s.Store.Update(s.Context(), s.namespace, name, registry.Exactly(obj), registry.UpdateOptions{})
	return done.Version, err
}

func (s served) delete(name string, o *metav1.DeleteOptions) registry.Deleted {
	s.Helper()
	done, err := s.Store.Delete(s.Context(), s.namespace, name, o)
	if err != nil {
		s.Fatal(err)
	}
	return done
}

func named(name, spec string) string {
	return `{"metadata":{"name":"` + name + `"},"spec":{` + spec + `}}`
}

func serviceIn(t *testing.T, v storage.Version, err error) *corev1.Service {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	obj, err := v.Object()
	if err != nil {
		t.Fatal(err)
	}
	return obj.(*corev1.Service)
}

func wrongOf(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return fmt.Sprint(err)
	}
	var causes []string
	for _, c := range status.Status().Details.Causes {
		causes = append(causes, c.Field+": "+c.Message)
	}
	return strings.Join(causes, "; ")
}

func TestAddressesAreOfOneServiceEach(t *testing.T) { // rules B54, B56
	s := serve(t, "Service")
	v, err := s.create(named("one", webPort), registry.CreateOptions{})
	one := serviceIn(t, v, err)
	v, err = s.create(named("two", webPort), registry.CreateOptions{})
	two := serviceIn(t, v, err)
	if one.Spec.ClusterIP == "" || one.Spec.ClusterIP == two.Spec.ClusterIP || !slices.Equal(one.Spec.ClusterIPs, []string{one.Spec.ClusterIP}) {
		t.Fatalf("addresses %v and %v", one.Spec.ClusterIPs, two.Spec.ClusterIPs)
	}
	ip := one.Spec.ClusterIP
	ask := `"clusterIP":"` + ip + `",` + webPort
	_, err = s.create(named("three", ask), registry.CreateOptions{})
	want := `spec.clusterIPs: Invalid value: ["` + ip + `"]: failed to allocate IP ` + ip + `: provided IP is already allocated`
	if got := wrongOf(err); got != want {
		t.Errorf("one that is taken:\n got %s\nwant %s", got, want)
	}
	v, err = s.update("one", named("one", `"ports":[{"port":81}]`))
	if got := serviceIn(t, v, err); got.Spec.ClusterIP != ip {
		t.Errorf("an update that leaves the address out changes it to %s", got.Spec.ClusterIP)
	}
	s.delete("one", nil)
	v, err = s.create(named("three", ask), registry.CreateOptions{})
	serviceIn(t, v, err)
	v, err = s.update("three", named("three", `"type":"ExternalName","externalName":"x"`))
	if got := serviceIn(t, v, err); got.Spec.ClusterIP != "" {
		t.Errorf("an external name has the address %s", got.Spec.ClusterIP)
	}
	v, err = s.create(named("four", ask), registry.CreateOptions{})
	serviceIn(t, v, err)
}

func TestAnAddressIsFreeWhenItsServiceGoesByAnyDoor(t *testing.T) { // rule B56
	s := serve(t, "Service")
	held := strings.Replace(named("one", webPort), `"name":"one"`, `"name":"one","finalizers":["x.example/y"]`, 1)
	v, err := s.create(held, registry.CreateOptions{})
	ask := `"clusterIP":"` + serviceIn(t, v, err).Spec.ClusterIP + `",` + webPort
	if done := s.delete("one", nil); done.Removed {
		t.Fatal("finalizers do not hold it")
	}
	if _, err := s.create(named("two", ask), registry.CreateOptions{}); err == nil {
		t.Error("the address is free while the service is there")
	}
	obj, _, err := s.Form.Decode([]byte(named("one", ask)))
	if err != nil {
		t.Fatal(err)
	}
	done, err := s.Subresources["status"].Store.Update(t.Context(), s.namespace, "one", registry.Exactly(obj), registry.UpdateOptions{})
	if err != nil || done.Removed == nil {
		t.Fatalf("without its last finalizer: %+v, %v", done, err)
	}
	v, err = s.create(named("two", ask), registry.CreateOptions{})
	serviceIn(t, v, err)
}

func TestWhatADryRunShowsIsStillFree(t *testing.T) { // rule B56
	s := serve(t, "Service")
	v, err := s.create(named("one", webPort), registry.CreateOptions{DryRun: true})
	ip := serviceIn(t, v, err).Spec.ClusterIP
	v, err = s.create(named("two", `"clusterIP":"`+ip+`",`+webPort), registry.CreateOptions{})
	serviceIn(t, v, err)
}

func TestAddressesThatServicesMayNotHave(t *testing.T) { // rules B54, B55
	s := serve(t, "Service")
	v, err := s.create(named("one", `"type":"NodePort","ports":[{"port":80,"nodePort":30080}]`), registry.CreateOptions{})
	serviceIn(t, v, err)
	for _, tt := range []struct{ name, spec, want string }{
		{"one of elsewhere", `"clusterIP":"10.9.0.1",` + webPort,
			`spec.clusterIPs: Invalid value: ["10.9.0.1"]: failed to allocate IP 10.9.0.1: the provided IP (10.9.0.1) is not in the valid range. The range of valid IPs is 10.0.0.0/24`},
		{"what is none", `"clusterIP":"here",` + webPort,
			`spec.clusterIPs[0]: Invalid value: "here": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)`},
		{"a port that is taken", `"type":"NodePort","ports":[{"port":80,"nodePort":30080}]`, "spec.ports[0].nodePort: Invalid value: 30080: provided port is already allocated"},
		{"a port of elsewhere", `"type":"NodePort","ports":[{"port":80,"nodePort":80}]`,
			"spec.ports[0].nodePort: Invalid value: 80: provided port is not in the valid range. The range of valid ports is 30000-32767"},
		{"two families", `"ipFamilyPolicy":"RequireDualStack",` + webPort, `spec.ipFamilyPolicy: Invalid value: "RequireDualStack": this cluster is not configured for dual-stack services`},
		{"the other family", `"ipFamilies":["IPv6"],` + webPort, `spec.ipFamilies[0]: Invalid value: "IPv6": not configured on this cluster`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := s.create(named("two", tt.spec), registry.CreateOptions{})
			if got := wrongOf(err); got != tt.want {
				t.Errorf("\n got %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestPortsOfNodes(t *testing.T) { // rules B55, B56
	s := serve(t, "Service")
	v, err := s.create(named("one", `"type":"NodePort","ports":[{"name":"a","port":53},{"name":"b","port":53,"protocol":"UDP"},{"name":"c","port":54}]`), registry.CreateOptions{})
	ports := serviceIn(t, v, err).Spec.Ports
	if ports[0].NodePort < nodePortFirst || ports[0].NodePort != ports[1].NodePort || ports[0].NodePort == ports[2].NodePort {
		t.Errorf("got %+v", ports)
	}
	v, err = s.create(named("two", `"type":"LoadBalancer","allocateLoadBalancerNodePorts":false,"externalTrafficPolicy":"Local",`+webPort), registry.CreateOptions{})
	two := serviceIn(t, v, err)
	if two.Spec.Ports[0].NodePort != 0 || two.Spec.HealthCheckNodePort == 0 {
		t.Errorf("got %+v", two.Spec)
	}
	free := fmt.Sprintf(`"type":"NodePort","ports":[{"port":80,"nodePort":%d}]`, ports[0].NodePort)
	v, err = s.update("one", named("one", webPort))
	if got := serviceIn(t, v, err); got.Spec.Ports[0].NodePort != 0 {
		t.Errorf("a service inside has the port %d of the nodes", got.Spec.Ports[0].NodePort)
	}
	v, err = s.create(named("three", free), registry.CreateOptions{})
	serviceIn(t, v, err)
}

func TestHeadlessServicesTakeNoAddress(t *testing.T) { // rule B54
	s := serve(t, "Service")
	for _, tt := range []struct{ spec, policy, families string }{
		{`"clusterIP":"None","selector":{"a":"b"}`, "SingleStack", "[IPv4]"},
		{`"clusterIP":"None"`, "RequireDualStack", "[IPv4 IPv6]"},
	} {
		v, err := s.create(named("one", tt.spec), registry.CreateOptions{DryRun: true})
		got := serviceIn(t, v, err).Spec
		if got.ClusterIP != "None" || string(*got.IPFamilyPolicy) != tt.policy || fmt.Sprint(got.IPFamilies) != tt.families {
			t.Errorf("%s: got %+v", tt.spec, got)
		}
	}
}

func TestTheRangeIsUsedUpAndNoAddressGivenTwice(t *testing.T) { // rule B54
	s := serve(t, "Service")
	const there = 253 // without the range's own, the server's, and the last
	var taken sync.Map
	var group sync.WaitGroup
	for i := range there {
		group.Go(func() {
			v, err := s.create(named(fmt.Sprintf("s%d", i), webPort), registry.CreateOptions{})
			if err != nil {
				t.Error(err)
				return
			}
			obj, err := v.Object()
			if err != nil {
				t.Error(err)
				return
			}
			if other, twice := taken.LoadOrStore(obj.(*corev1.Service).Spec.ClusterIP, i); twice {
				t.Errorf("%d and %v have the same address", i, other)
			}
		})
	}
	group.Wait()
	_, err := s.create(named("more", webPort), registry.CreateOptions{})
	if got := wrongOf(err); !strings.HasSuffix(got, "failed to allocate IP: range is full") {
		t.Errorf("one more: %s", got)
	}
}

func TestEventsExpireAnHourAfterTheLastWrite(t *testing.T) { // rule B41
	for _, kind := range []string{"Event", "Event.events.k8s.io"} {
		s := serve(t, kind)
		document := oldEvent
		if kind != "Event" {
			document = strings.NewReplacer(`,"deprecatedSource":{"component":"c","host":"h"}`, "", `,"deprecatedFirstTimestamp":"2020-01-01T00:00:00Z"`, "",
				`,"deprecatedLastTimestamp":"2020-01-02T00:00:00Z","deprecatedCount":3`, "").Replace(newEvent)
		}
		check := func(v storage.Version, err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			if lasts := v.Expires().Sub(v.Time()); lasts < eventLasts || lasts > eventLasts+time.Minute {
				t.Errorf("%s: kept for %v after it was written", kind, lasts)
			}
		}
		check(s.create(document, registry.CreateOptions{}))
		check(s.update("a", strings.Replace(document, `"count":2`, `"count":3`, 1)))
		check(s.update("made", strings.Replace(document, `"name":"a"`, `"name":"made"`, 1)))
	}
}

func TestPodsEndInTime(t *testing.T) { // rules B50, S86 to S99
	s := serve(t, "Pod")
	seconds := func(n int64) *metav1.DeleteOptions { return &metav1.DeleteOptions{GracePeriodSeconds: &n} }
	pod := func(name, spec string) string {
		return named(name, `"containers":[{"name":"one","image":"x"}]`+spec)
	}
	make := func(name, spec string) {
		t.Helper()
		if _, err := s.create(pod(name, spec), registry.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	says := func(done registry.Deleted, removed bool, grace, generation int64) {
		t.Helper()
		p := done.Object
		if done.Removed != removed || p.GetDeletionTimestamp() == nil || *p.GetDeletionGracePeriodSeconds() != grace || p.GetGeneration() != generation {
			t.Errorf("removed: %t; got %+v", done.Removed, p)
		}
	}
	make("idle", "")
	says(s.delete("idle", nil), true, 0, 2)
	make("busy", `,"nodeName":"n"`)
	says(s.delete("busy", nil), false, 30, 2)
	says(s.delete("busy", nil), false, 30, 2)
	says(s.delete("busy", seconds(60)), false, 30, 2)
	says(s.delete("busy", seconds(5)), false, 5, 2)
	says(s.delete("busy", seconds(0)), true, 0, 2)
	if _, err := s.Store.Get(context.Background(), "b", "busy", ""); !apierrors.IsNotFound(err) {
		t.Errorf("after a deletion without grace: %v", err)
	}
	make("held", "")
	if _, err := s.update("held", strings.Replace(pod("held", ""), `"name":"held"`, `"name":"held","finalizers":["x.example/y"]`, 1)); err != nil {
		t.Fatal(err)
	}
	says(s.delete("held", nil), false, 0, 2)
	make("dry", "")
	dry := &metav1.DeleteOptions{DryRun: []string{"All"}}
	says(s.delete("dry", dry), true, 0, 2)
	if _, err := s.Store.Get(context.Background(), "b", "dry", ""); err != nil {
		t.Errorf("after a dry run: %v", err)
	}
}
