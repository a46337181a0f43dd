// Gen makes the files in data from the OpenAPI documents that the Kubernetes source tree
// carries: the built-in resources that pawl serves, without what pawl does not speak (CBOR and
// the old watch paths), compact and compressed.
//
// Run it with "go generate ./internal/server/openapi". To publish another resource, add
// it to published and run it again; the documents of groups and versions that are not named
// there are removed. It downloads the module k8s.io/kubernetes, as data only: nothing
// imports it.
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/server/health"
	"github.com/pawl-dev/pawl/internal/server/openapi/document"
)

// source is the release that the documents are of: the one whose behaviour pawl has. The README
// beside them names it too.
const source = "k8s.io/kubernetes@v" + health.Kubernetes

// published are the resources by the key of their document; nil for a document that is about no
// resource, and is taken whole.
var published = map[string][]string{
	"api": nil,
	"api/v1": {
		"namespaces", "configmaps", "secrets", "serviceaccounts", "events", "pods", "services", "nodes", "endpoints", "limitranges",
		"persistentvolumes", "persistentvolumeclaims", "replicationcontrollers",
	},
	"apis":                              nil,
	"apis/apps":                         nil,
	"apis/apps/v1":                      {"deployments", "replicasets", "statefulsets", "daemonsets"},
	"apis/authentication.k8s.io":        nil,
	"apis/authentication.k8s.io/v1":     {"selfsubjectreviews", "tokenreviews"},
	"apis/authorization.k8s.io":         nil,
	"apis/authorization.k8s.io/v1":      {"selfsubjectaccessreviews", "subjectaccessreviews", "localsubjectaccessreviews", "selfsubjectrulesreviews"},
	"apis/batch":                        nil,
	"apis/batch/v1":                     {"jobs", "cronjobs"},
	"apis/events.k8s.io":                nil,
	"apis/events.k8s.io/v1":             {"events"},
	"apis/networking.k8s.io":            nil,
	"apis/networking.k8s.io/v1":         {"ingresses"},
	"apis/rbac.authorization.k8s.io":    nil,
	"apis/rbac.authorization.k8s.io/v1": {"roles", "rolebindings", "clusterroles", "clusterrolebindings"},
	"apis/scheduling.k8s.io":            nil,
	"apis/scheduling.k8s.io/v1":         {"priorityclasses"},
	"apis/apiextensions.k8s.io":         nil,
	"apis/apiextensions.k8s.io/v1":      {"customresourcedefinitions"},
	"apis/coordination.k8s.io":          nil,
	"apis/coordination.k8s.io/v1":       {"leases"},
	"version":                           nil,
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("gen: ")
	if err := generate("data"); err != nil {
		log.Fatal(err)
	}
}

func generate(to string) error {
	from, err := download()
	if err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(to, "*.json.gz"))
	if err != nil {
		return err
	}
	for _, name := range old {
		if err := os.Remove(name); err != nil {
			return err
		}
	}
	for key, resources := range published {
		name := strings.ReplaceAll(key, "/", "__")
		full, err := os.ReadFile(filepath.Join(from, "api", "openapi-spec", "v3", name+"_openapi.json"))
		if err != nil {
			return err
		}
		kept, err := filter(full, "/"+key, resources)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		if err := os.WriteFile(filepath.Join(to, name+".json.gz"), kept, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// download fetches the source and returns its folder. It runs where no go.mod is, so that
// none is changed.
func download() (string, error) {
	away, err := os.MkdirTemp("", "pawl-openapi-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(away)
	cmd := exec.Command("go", "mod", "download", "-json", source)
	cmd.Dir, cmd.Stderr = away, os.Stderr
	cmd.Env = append(os.Environ(), "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go mod download %s: %w\n%s", source, err, out)
	}
	var module struct{ Dir string }
	return module.Dir, json.Unmarshal(out, &module)
}

// filter returns the document with only these resources, compressed.
func filter(full []byte, root string, resources []string) ([]byte, error) {
	var tight bytes.Buffer
	if err := json.Compact(&tight, full); err != nil {
		return nil, err
	}
	d, err := document.Parse(tight.Bytes())
	if err != nil {
		return nil, err
	}
	d.Keep(func(path string) bool {
		resource, _, ok := document.Route(root, path)
		return ok && (resource == "" || slices.Contains(resources, resource))
	})
	cbor := func(_, mediaType string) bool { return strings.Contains(mediaType, "cbor") } // rule H62
	if err := d.MediaTypes(cbor); err != nil {
		return nil, err
	}
	data, err := d.JSON()
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w, _ := gzip.NewWriterLevel(&out, gzip.BestCompression) // the level is a valid one
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
