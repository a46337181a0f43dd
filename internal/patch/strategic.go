package patch

import (
	"encoding/json"
	stderrors "errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	kjson "sigs.k8s.io/json"
)

func applyStrategic(current, document []byte, typed runtime.Object) (patched []byte, findings []string, err error) {
	if typed == nil {
		return nil, nil, errors.NewInternalError(fmt.Errorf("patch: a strategic merge patch needs a Go type to guide it"))
	}
	var object, change, merged map[string]any
	findings, err = decode(document, &change, "")
	if err != nil {
		return nil, nil, errors.NewBadRequest(err.Error())
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(current, &object); err != nil {
		return nil, nil, errors.NewInternalError(fmt.Errorf("patch: the current object is not JSON: %w", err))
	}
	if !contained(func() { merged, err = strategicpatch.StrategicMergeMapPatch(object, change, typed) }) {
		return nil, nil, misfit()
	}
	if err != nil {
		return nil, nil, strategicError(err)
	}
	patched, err = json.Marshal(merged)
	if err != nil {
		return nil, nil, errors.NewInternalError(err)
	}
	return patched, findings, nil
}

// strategicError is the answer to a strategic merge that failed (rule H133). The directives
// that contradict the object or each other do not fit; every other failure is a document that
// no object could be patched with, and its text tells the client what to mend. The reference
// answers the ones it did not think of with 500.
func strategicError(err error) error {
	if stderrors.Is(err, mergepatch.ErrNoListOfLists) || stderrors.Is(err, mergepatch.ErrPatchContentNotMatchRetainKeys) {
		return misfit()
	}
	return errors.NewBadRequest(err.Error())
}
