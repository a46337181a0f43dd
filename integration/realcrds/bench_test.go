package realcrds

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// projects are the folders of testdata.
var projects = []string{"gateway-api", "cert-manager", "karpenter"}

// BenchmarkInstall is what it costs to make all definitions of a project, one by one, on a new
// server.
func BenchmarkInstall(b *testing.B) {
	for _, project := range projects {
		b.Run(project, func(b *testing.B) {
			ctx := soon(b)
			for b.Loop() {
				b.StopTimer()
				c := start(b, project)
				b.StartTimer()
				c.install(ctx, b)
			}
		})
	}
}

// BenchmarkFirstWrite is what the first object of a kind costs, for which the server has to make
// ready what the definition says: its patterns, its defaults, its rules. Second is what the
// next object costs.
func BenchmarkFirstWrite(b *testing.B) {
	for _, of := range []struct{ project, sample string }{
		{"gateway-api", "httproute"},
		{"gateway-api", "gateway"},
		{"cert-manager", "clusterissuer"},
		{"karpenter", "nodepool"},
	} {
		b.Run(of.sample, func(b *testing.B) { writes(b, of.project, of.sample, 0) })
		b.Run(of.sample+"/second", func(b *testing.B) { writes(b, of.project, of.sample, 1) })
	}
}

// writes measures one write of a sample after some others, on a new server each time.
func writes(b *testing.B, project, name string, before int) {
	ctx := soon(b)
	for b.Loop() {
		b.StopTimer()
		c := start(b, project)
		c.install(ctx, b)
		made := func() *unstructured.Unstructured {
			u := sample(b, project, name)
			u.SetName("")
			u.SetGenerateName("some-")
			return u
		}
		write := func(u *unstructured.Unstructured) {
			if _, err := c.of(b, u).Create(ctx, u, strict); err != nil {
				b.Fatal(err)
			}
		}
		for range before {
			write(made())
		}
		u := made()
		b.StartTimer()
		write(u)
	}
}
