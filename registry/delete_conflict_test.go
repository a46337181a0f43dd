package registry

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A delete made against an older version says what changed since, like any other write; it
// changes whatever there is.
func TestADeleteThatLostIsExplained(t *testing.T) {
	s := newStand(t, namespaced)
	read := s.made(thing("a", "kept=old"))
	seen := read.ResourceVersion
	s.by("editor", "update", "", set("kept", "new"))
	_, err := s.Store.Delete(s.Context(), read.Namespace, "a", &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &seen}})
	var conflict *ConflictError
	if !errors.As(err, &conflict) {
		t.Fatalf("the delete ended with %v", err)
	}
	x, err := conflict.Explain(s.Context())
	if err != nil || len(x.Fields) != 1 || x.Fields[0].Manager != "editor" || !x.Fields[0].Contended {
		t.Errorf("it is explained by %+v, %v", x, err)
	}
}
