package pawl_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/pawl-dev/pawl"
)

func TestTheServiceKubernetesLeadsToTheServer(t *testing.T) { // rule B24
	x := newAPI(t, pawl.Config{})
	var s struct {
		Metadata struct{ Labels map[string]string }
		Spec     struct {
			ClusterIP string
			Ports     []struct {
				Name string
				Port int
			}
		}
	}
	if err := json.Unmarshal([]byte(x.must(http.MethodGet, "/api/v1/namespaces/default/services/kubernetes", "").text), &s); err != nil {
		t.Fatal(err)
	}
	if s.Spec.ClusterIP != "10.0.0.1" || len(s.Spec.Ports) != 1 || s.Spec.Ports[0].Name != "https" || s.Spec.Ports[0].Port != 443 ||
		s.Metadata.Labels["component"] != "apiserver" || s.Metadata.Labels["provider"] != "kubernetes" {
		t.Errorf("the service is %+v", s)
	}
}
