package compat

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	apistorage "k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/value"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/storage"
)

func TestWhatStorageSaysInTheWordsOfTheReference(t *testing.T) {
	s := newStore(t, options(memory(t)))
	why := errors.New("because")
	for kind, is := range map[storage.Kind]func(error) bool{
		storage.NotFound:    apistorage.IsNotFound,
		storage.TooNew:      apistorage.IsTooLargeResourceVersion,
		storage.Expired:     apierrors.IsResourceExpired,
		storage.BadRequest:  apierrors.IsBadRequest,
		storage.BadOptions:  apierrors.IsBadRequest,
		storage.Timeout:     apierrors.IsTimeout,
		storage.Unknown:     apierrors.IsTimeout,
		storage.Unavailable: apierrors.IsServerTimeout,
	} {
		err := s.fault("list", "/configmaps/a/color", &storage.Error{Kind: kind, Want: 9, Have: 3, Continue: "token", Err: why})
		if !is(err) {
			t.Errorf("%v becomes %v", kind, err)
		}
	}
	gone := s.fault("list", "", &storage.Error{Kind: storage.Expired, Continue: "token", Err: why})
	if got := gone.(apierrors.APIStatus).Status().Continue; got != "token" { // rule K69
		t.Errorf("the token is %q", got)
	}
	down := s.fault("get", "", &storage.Error{Kind: storage.Unavailable, Err: why})
	if !strings.Contains(down.Error(), "because") {
		t.Errorf("nobody learns why: %v", down)
	}
	if got := s.fault("get", "", why); got != why {
		t.Errorf("what is no error of storage becomes %v", got)
	}
}

// damage puts something else where an object was.
func damage(t *testing.T, engine kv.Engine, key string) {
	t.Helper()
	if _, err := engine.Commit(t.Context(), kv.Txn{Ops: []kv.Op{kv.Put(key, []byte("not what it was"))}}); err != nil {
		t.Fatal(err)
	}
}

const colorKey = DefaultSpace + "/core/configmaps/a/color"

// Whether an object that cannot be read may be deleted depends on whose fault that is.
func TestWhoseFaultItIsThatAnObjectCannotBeRead(t *testing.T) {
	for _, c := range []struct {
		name    string
		seal    value.Transformer
		deletes bool // the feature

		damaged bool
		corrupt bool // what a get says
	}{
		{"of the value, as any transformer's errors are", &sealer{fail: errNoKey}, true, false, true},
		{"of the value, as the transformer says", &knowing{}, true, true, true},
		{"of the value, as the codec finds", nil, true, true, true},
		{"of the key service, as the transformer says", &knowing{sealer{fail: errNoKey}}, true, false, false},
		{"of the value, and nobody may delete it", &knowing{}, false, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := options(memory(t))
			o.Transformer = c.seal
			s := newStore(t, o)
			s.deletesCorrupt = c.deletes
			create(t, s, "color", "red")
			if c.damaged {
				damage(t, o.Engine, colorKey)
			}
			err := s.Get(t.Context(), "/configmaps/a/color", apistorage.GetOptions{}, newConfigMap())
			if err == nil || apistorage.IsCorruptObject(err) != c.corrupt {
				t.Errorf("a get says %v", err)
			}
			if err := s.Delete(t.Context(), "/configmaps/a/color", newConfigMap(), nil, apistorage.ValidateAllObjectFunc, nil, apistorage.DeleteOptions{}); err == nil {
				t.Error("it is deleted like any other")
			}
			err = s.Delete(t.Context(), "/configmaps/a/color", newConfigMap(), nil, apistorage.ValidateAllObjectFunc, nil, apistorage.DeleteOptions{ExpectTransformOrDecodeError: true})
			if (err == nil) != c.corrupt {
				t.Errorf("a delete of what cannot be read says %v", err)
			}
		})
	}
}

func TestAValueIsBoundToItsPath(t *testing.T) {
	o := options(memory(t))
	o.Transformer = &sealer{}
	s := newStore(t, o)
	create(t, s, "color", "red")
	snap, err := o.Engine.Read(t.Context(), kv.Latest)
	if err != nil {
		t.Fatal(err)
	}
	stolen := snap.Get(colorKey).Value
	if want := "sealed for /configmaps/a/color\n"; !strings.HasPrefix(string(stolen), want) {
		t.Errorf("stored is %q", stolen)
	}
	if _, err := o.Engine.Commit(t.Context(), kv.Txn{Ops: []kv.Op{kv.Put(DefaultSpace+"/core/configmaps/a/other", stolen)}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Get(t.Context(), "/configmaps/a/other", apistorage.GetOptions{}, newConfigMap()); err == nil {
		t.Error("what was stored at one path can be read at another")
	}
}

// A list with objects that cannot be read names each of them (rules K62, K63).
func TestAListNamesWhatItCannotRead(t *testing.T) {
	o := options(memory(t))
	s := newStore(t, o)
	s.deletesCorrupt = true
	for _, name := range []string{"a", "b", "c", "d"} {
		create(t, s, name, "red")
	}
	damage(t, o.Engine, DefaultSpace+"/core/configmaps/a/b")
	damage(t, o.Engine, DefaultSpace+"/core/configmaps/a/d")
	list := &corev1.ConfigMapList{}
	err := s.GetList(t.Context(), "/configmaps", apistorage.ListOptions{Recursive: true, Predicate: apistorage.Everything}, list)
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Code != http.StatusInternalServerError || status.Status().Reason != "StorageReadError" {
		t.Fatalf("got %v", err)
	}
	if got := status.Status().Message; !strings.HasPrefix(got, "failed to read one or more configmaps from the storage: StorageError: corrupt object, Code: 7, Key: /configmaps/a/b,") || !strings.HasSuffix(got, "(and 1 more)") {
		t.Errorf("the message is %q", got)
	}
	var named []string
	for _, cause := range status.Status().Details.Causes {
		named = append(named, cause.Field)
	}
	if fmt.Sprint(named) != "[/configmaps/a/b /configmaps/a/d]" || len(list.Items) != 2 {
		t.Errorf("named are %v, and %d were read", named, len(list.Items))
	}
}

func TestAWatchSaysWhyItEnds(t *testing.T) {
	unsafely := apistorage.DeleteOptions{ExpectTransformOrDecodeError: true}
	const gone = "saw a DELETED event, but object data is corrupt - object not decodable"
	for _, c := range []struct {
		name   string
		pred   apistorage.SelectionPredicate
		remove bool // or damage
		want   string
	}{
		{"an object that cannot be read", apistorage.Everything, false, "Internal error occurred: object not decodable"},
		{"one that would have to be read to be picked", byColor("red"), false, "Internal error occurred: object not decodable"},
		{"the deletion of one", apistorage.Everything, true, gone},
		{"the deletion of one that would have to be read to be picked", byColor("red"), true, gone},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := options(memory(t))
			s := newStore(t, o)
			s.deletesCorrupt = true
			was := create(t, s, "color", "red")
			if c.remove {
				s.codec = scrambled{s.codec}
			}
			w := everything(t, t.Context(), s, apistorage.ListOptions{ResourceVersion: was.ResourceVersion, Predicate: c.pred})
			if !c.remove {
				damage(t, o.Engine, colorKey)
			} else if err := s.Delete(t.Context(), "/configmaps/a/color", newConfigMap(), nil, apistorage.ValidateAllObjectFunc, nil, unsafely); err != nil {
				t.Error(err)
			}
			e := next(t, w)
			status := apierrors.FromObject(e.Object)
			if e.Type != watch.Error || !strings.Contains(status.Error(), c.want) {
				t.Errorf("got %s %v, want %q", e.Type, status, c.want)
			}
			if left := drained(t, w); len(left) != 0 { // rule K82
				t.Errorf("after the error come %v", left)
			}
		})
	}
}
