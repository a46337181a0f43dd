package compat_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apistorage "k8s.io/apiserver/pkg/storage"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/pawl-dev/pawl/compat"
	"github.com/pawl-dev/pawl/kv/local"
)

// An engine in memory keeps the config maps of an API server that is built on k8s.io/apiserver. The
// package doc shows how such a server is given a store for each of its resources.
func Example() {
	ctx := context.Background()
	engine, err := local.Open(ctx, local.Options{Memory: true})
	if err != nil {
		panic(err)
	}
	defer engine.Close()

	var store apistorage.Interface
	store, err = compat.New(compat.Options{
		Engine:         engine,
		ResourcePrefix: "/configmaps",
		Resource:       schema.GroupResource{Resource: "configmaps"},
		Codec:          scheme.Codecs.LegacyCodec(corev1.SchemeGroupVersion),
		NewFunc:        func() runtime.Object { return &corev1.ConfigMap{} },
	})
	if err != nil {
		panic(err)
	}

	color := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "house", Name: "color"}, Data: map[string]string{"is": "red"}}
	stored := &corev1.ConfigMap{}
	if err := store.Create(ctx, "/configmaps/house/color", color, stored, 0); err != nil {
		panic(err)
	}
	w, err := store.Watch(ctx, "/configmaps/", apistorage.ListOptions{
		Recursive: true, ResourceVersion: stored.ResourceVersion, Predicate: apistorage.Everything,
	})
	if err != nil {
		panic(err)
	}
	defer w.Stop()

	paint := apistorage.SimpleUpdate(func(obj runtime.Object) (runtime.Object, error) {
		obj.(*corev1.ConfigMap).Data["is"] = "green"
		return obj, nil
	})
	if err := store.GuaranteedUpdate(ctx, "/configmaps/house/color", stored, false, nil, paint, nil); err != nil {
		panic(err)
	}
	event := <-w.ResultChan()
	fmt.Println(event.Type, event.Object.(*corev1.ConfigMap).Data["is"])

	list := &corev1.ConfigMapList{}
	if err := store.GetList(ctx, "/configmaps/house", apistorage.ListOptions{Recursive: true, Predicate: apistorage.Everything}, list); err != nil {
		panic(err)
	}
	fmt.Println(len(list.Items), "config map, at version", list.ResourceVersion)
	// Output:
	// MODIFIED green
	// 1 config map, at version 3
}
