// Store is the smallest program that keeps objects of a Go type: it counts how often it was run.
package main

import (
	"context"
	"fmt"
	"log"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pawl-dev/pawl/kv/local"
	"github.com/pawl-dev/pawl/registry"
)

type Counter struct {
	metav1.ObjectMeta `json:"metadata"`
	Runs              int `json:"runs"`
}

func main() {
	ctx := context.Background()
	engine, err := local.Open(ctx, local.Options{Dir: "counters"})
	if err != nil {
		log.Fatal(err)
	}
	defer engine.Close()
	counters := registry.Of[Counter](engine, nil)
	c, err := counters.Update(ctx, "main", func(c *Counter) error { c.Runs++; return nil }, registry.UpdateOptions{Create: true})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("run", c.Runs, "at version", c.ResourceVersion)
}
