package patch

import (
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/api/errors"
)

const (
	// operationsMax is how many operations one JSON patch may have (rule H134).
	operationsMax = 10000
	// copiedMaxBytes is how much the copies of one JSON patch may add (rule H134).
	copiedMaxBytes = 3 << 20
)

func init() {
	if jsonpatch.AccumulatedCopySizeLimit == 0 {
		jsonpatch.AccumulatedCopySizeLimit = copiedMaxBytes
	}
}

// A jsonPatchOp is what strict decoding compares an operation of a JSON patch with. Its name is
// the reference's, because error texts tell it: `Go struct field jsonPatchOp.op of type string`.
type jsonPatchOp struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	From  string `json:"from"`
	Value any    `json:"value"`
}

func applyJSON(current, document []byte) (patched []byte, findings []string, err error) {
	var operations []jsonPatchOp
	findings, err = decode(document, &operations, "json patch ")
	if err != nil {
		return nil, nil, errors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	if n := len(operations); n > operationsMax {
		return nil, nil, errors.NewRequestEntityTooLargeError(fmt.Sprintf(
			"The allowed maximum operations in a JSON patch is %d, got %d", operationsMax, n))
	}
	p, err := jsonpatch.DecodePatch(document)
	if err != nil {
		return nil, nil, errors.NewBadRequest(err.Error())
	}
	if !contained(func() { patched, err = p.Apply(current) }) || err != nil {
		return nil, nil, misfit()
	}
	return patched, findings, nil
}

func applyMerge(current, document []byte) (patched []byte, findings []string, err error) {
	var fields map[string]any
	findings, err = decode(document, &fields, "")
	if err != nil {
		return nil, nil, errors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	if !contained(func() { patched, err = jsonpatch.MergePatch(current, document) }) {
		return nil, nil, misfit()
	}
	if err != nil {
		return nil, nil, errors.NewBadRequest(err.Error())
	}
	return patched, findings, nil
}
