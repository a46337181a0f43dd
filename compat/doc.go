// Package compat offers pawl's engines to API servers that are built on k8s.io/apiserver: a
// [Store] is a storage.Interface of that library.
//
// # An aggregated API server without etcd
//
// Such a server keeps each of its resources in a genericregistry.Store, which asks its
// RESTOptionsGetter for a generic.RESTOptions, which holds a decorator: the function that makes
// the storage. Open one engine, and give them this one:
//
//	engine, err := local.Open(ctx, local.Options{Dir: "data"})
//	...
//	options.Decorator = func(config *storagebackend.ConfigForResource, prefix string,
//		_ func(runtime.Object) (string, error), newFunc, _ func() runtime.Object,
//		_ apistorage.AttrFunc, _ apistorage.IndexerFuncs, _ *cache.Indexers,
//	) (apistorage.Interface, factory.DestroyFunc, error) {
//		s, err := compat.New(compat.Options{
//			Engine: engine, ResourcePrefix: prefix, Resource: config.GroupResource,
//			Codec: config.Codec, Transformer: config.Transformer, NewFunc: newFunc,
//			WatchStarted: flowcontrol.WatchInitialized,
//		})
//		return s, func() {}, err
//	}
//
// The function is not in this package because its types bring two thirds of a server, and etcd's
// client, to whoever imports them, and a storage.Interface needs neither. Nothing else changes. The
// engine is closed when the server has stopped; no Store needs to be.
//
// Reads come from the engine's index in memory, so a Store needs no watch cache. One in front of it
// spares decoding all the same: a list through a Store decodes each object that it looks at, and
// each watch the events of its own.
//
// # How it lies in the engine
//
// Keys are paths: a prefix of the resource, then a namespace, if there is one, and a name. They
// become keys of the engine in a space of their own ([DefaultSpace]), so an engine can hold a pawl
// server and an aggregated one side by side. Values are what the server's codec and transformer
// make, byte for byte: protobuf or JSON, encrypted or not.
//
// # What judges it
//
// The reference's own tests of a storage.Interface, k8s.io/apiserver/pkg/storage/testing, run on a
// Store over every engine, in integration/compat. What it decides between an object and its
// client, a Store leaves to package storage: the write loop, what the options of lists and watches
// mean, pages and their tokens, where watches begin. So the reference judges those too. The
// rest is here: paths, codecs, predicates that are functions, and the reference's errors. Storage
// does not look into the values of a Store and remembers nothing about them, because a transformer
// may read the same bytes differently from one moment to the next.
//
// Where the reference leaves a choice, or its implementation departs from the interface it
// implements, a Store does this:
//
//   - A cached object given as a suggestion is not used: the current one is in memory.
//   - A time to live of nil in an update keeps what the object has, as the interface says, and
//     ResponseMeta tells how much is left. Over etcd the object would stay forever (rules K32, K44).
//   - Watches send bookmarks to who allows them, every minute and two seconds before the end of
//     their context (rule K95), and progress to who asks for that.
//   - A key has at most a namespace and a name after the prefix of its resource, and that prefix has
//     one part or two. Others are refused.
package compat
