package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// A release says which pawl this is.
type release struct {
	Version    string `json:"version"`
	Commit     string `json:"commit,omitempty"`
	CommitDate string `json:"commitDate,omitempty"`
	Modified   bool   `json:"modified,omitempty"` // built from more than the commit
	GoVersion  string `json:"goVersion"`
	Platform   string `json:"platform"`
	Kubernetes string `json:"kubernetes,omitempty"` // the version whose behaviour is the model
}

func newVersion(p process) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Say which pawl this is",
		Example: `  pawl version
  pawl version -o json`,
		Args: noArguments,
		RunE: ran(func(cmd *cobra.Command) error {
			r := p.release()
			if output == "json" {
				e := json.NewEncoder(cmd.OutOrStdout())
				e.SetIndent("", "  ")
				return e.Encode(r)
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), r)
			return err
		}),
	}
	choice(cmd, &output, "output", "o", "how to say it", "text", "json")
	return cmd
}

// release reads what the linker was told, and else what the Go tool knows.
func (p process) release() release {
	r := release{Version: p.version, GoVersion: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := p.build(); ok {
		if r.Version == "" && info.Main.Version != "(devel)" {
			r.Version = info.Main.Version
		}
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				r.Commit = s.Value
			case "vcs.time":
				r.CommitDate = s.Value
			case "vcs.modified":
				r.Modified = s.Value == "true"
			}
		}
		r.Kubernetes = kubernetesVersion(info.Deps)
	}
	if r.Version == "" {
		r.Version = "devel"
	}
	return r
}

// kubernetesVersion tells Kubernetes' version by that of its libraries: 1.37.2 ships as v0.37.2.
func kubernetesVersion(deps []*debug.Module) string {
	for _, d := range deps {
		if rest, ok := strings.CutPrefix(d.Version, "v0."); ok && d.Path == "k8s.io/apimachinery" {
			return "v1." + rest
		}
	}
	return ""
}

func (r release) String() string {
	details := []string{r.GoVersion, r.Platform}
	if r.Kubernetes != "" {
		details = append([]string{"Kubernetes " + r.Kubernetes}, details...)
	}
	if r.Commit != "" {
		commit := "commit " + r.Commit[:min(12, len(r.Commit))]
		if r.Modified {
			commit += ", modified"
		}
		details = append([]string{commit}, details...)
	}
	return fmt.Sprintf("pawl %s (%s)", r.Version, strings.Join(details, ", "))
}
