package openapi_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/pawl-dev/pawl/internal/resource"
	"github.com/pawl-dev/pawl/internal/server/openapi"
)

func TestDocumentsFollowTheCatalogue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		catalogue := &resource.Registry{}
		catalogue.Change(nil, builtins()...)
		h := &openapi.Handler{Catalogue: catalogue.Catalogue}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { h.Follow(ctx, catalogue.Changed); close(ended) }()

		made := 0
		// next puts another version of the same resource in place, and says whether documents were made of it.
		next := func(then time.Duration) bool {
			made = 0
			catalogue.Change(nil, toy("Widget", apiextensionsv1.JSONSchemaProps{Type: "object"}, &made))
			time.Sleep(then)
			synctest.Wait()
			return made > 0
		}
		get := func(path string) {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
			if w.Code != http.StatusOK {
				t.Fatalf("%s: %d %s", path, w.Code, w.Body)
			}
		}
		if next(time.Minute) {
			t.Error("something was made that nobody asked for")
		}
		get("/openapi/v2")
		if !next(time.Minute) {
			t.Error("a document that is asked for did not follow a change")
		}
		was := made
		get("/openapi/v2")
		if made != was {
			t.Error("a document that had followed was made once more when it was asked for")
		}
		for range 2 {
			if !next(time.Minute) {
				t.Error("a document follows once only")
			}
		}
		for range 20 {
			if next(50 * time.Millisecond) {
				t.Fatal("a document was made in the middle of many changes")
			}
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if made == 0 {
			t.Error("nothing was made after the last of many changes")
		}
		cancel()
		<-ended
	})
}
