package clients

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"

	"github.com/pawl-dev/pawl/pawltest"
)

// Who wants only metadata, such as a garbage collector, gets it of built-in and of custom
// resources, in protobuf (spec/http.md H53, H55, H118).
func TestMetadata(t *testing.T) {
	t.Parallel()
	ctx := soon(t)
	config := pawltest.New(t)
	asked := &requests{}
	_, wheelsOf := defined(ctx, t, config)
	config.Wrap(asked.count)
	c := typed(t, config)
	writeMaps(ctx, t, c.CoreV1().ConfigMaps("default"), 3)
	if _, err := wheelsOf.Namespace("default").Create(ctx, wheel("first", map[string]any{}), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	client := metadata.NewForConfigOrDie(unthrottled(config))
	factory := metadatainformer.NewSharedInformerFactory(client, 0)
	maps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	configMaps := follow(t, factory.ForResource(maps).Informer())
	custom := follow(t, factory.ForResource(wheels).Informer())
	run, stop := context.WithCancel(ctx)
	factory.Start(run.Done())
	defer func() { stop(); factory.Shutdown() }()
	factory.WaitForCacheSync(ctx.Done())

	configMaps.expect(ctx, t, "added map-0", "added map-1", "added map-2")
	custom.expect(ctx, t, "added first")
	changeMaps(ctx, t, c.CoreV1().ConfigMaps("default"))
	configMaps.expect(ctx, t, "updated map-1", "deleted map-2", "added map-3")
	if lists := asked.lists(); lists != 0 {
		t.Errorf("the informers fell back to %d plain lists: the watch that lists first was not to their liking", lists)
	}

	list, err := client.Resource(wheels).Namespace("default").List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 || list.Items[0].Name != "first" || list.ResourceVersion == "" {
		t.Fatalf("the list is %+v, %v", list, err)
	}
	got, err := client.Resource(wheels).Namespace("default").Patch(ctx, "first", types.MergePatchType, []byte(`{"metadata":{"labels":{"is":"new"}}}`), metav1.PatchOptions{})
	if err != nil || got.Labels["is"] != "new" {
		t.Errorf("a patch answers %+v, %v", got, err)
	}
	custom.expect(ctx, t, "updated first")
	if err := client.Resource(wheels).Namespace("default").Delete(ctx, "first", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	custom.expect(ctx, t, "deleted first")
	if _, err := client.Resource(wheels).Namespace("default").Get(ctx, "first", metav1.GetOptions{}); err == nil {
		t.Error("what was deleted is still there")
	}
}
