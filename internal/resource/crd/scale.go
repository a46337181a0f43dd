package crd

import (
	"github.com/pawl-dev/pawl/internal/resource"
)

// scale returns the scale that a version declares, nil if it declares none (rule C93).
func (d *definition) scale(version string) *resource.Scale {
	var s *resource.Scale
	paths := resource.Scale{Custom: true, Parent: d.gvk(version).GroupVersion()}
	for _, v := range d.Spec.Versions {
		if v.Subresources == nil || v.Subresources.Scale == nil {
			continue
		}
		paths.Versions = append(paths.Versions, d.gvk(v.Name).GroupVersion().String())
		if v.Name != version {
			continue
		}
		declared := v.Subresources.Scale
		paths.Replicas, paths.Status = fieldPath(declared.SpecReplicasPath), fieldPath(declared.StatusReplicasPath)
		if declared.LabelSelectorPath != nil {
			paths.Selector = fieldPath(*declared.LabelSelectorPath)
		}
		s = &paths
	}
	if s == nil {
		return nil
	}
	return resource.NewScale(*s)
}
