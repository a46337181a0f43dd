package server

import (
	"context"
	"errors"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pawl-dev/pawl/registry"
	"github.com/pawl-dev/pawl/storage"
)

// through makes of a Desire about what clients see one about what is stored. They differ for a
// scale alone: the client changes that, and the object behind it follows (rules H176, C96).
func (c *call) through(desire registry.Desire) registry.Desire {
	if c.scale == nil {
		return desire
	}
	return func(ctx context.Context, current runtime.Object) (runtime.Object, error) {
		return c.scale.Change(current, func(old *autoscalingv1.Scale) (*autoscalingv1.Scale, error) {
			wanted, err := desire(ctx, old.DeepCopy())
			if err != nil {
				return nil, err
			}
			if !c.applies() {
				if wanted, err = c.scale.Ownership().Update(old, wanted, storage.AuthorFrom(ctx).Manager); err != nil {
					return nil, err
				}
			}
			scale, ok := wanted.(*autoscalingv1.Scale)
			if !ok {
				return nil, errors.New("the change of a scale is no scale")
			}
			return scale, nil
		})
	}
}

// owners keep the managedFields of what clients see.
func (c *call) owners() registry.Ownership {
	if c.scale != nil {
		return c.scale.Ownership()
	}
	return c.store.Ownership()
}

// sendScale answers with the scale of a version.
func (c *call) sendScale(code int, v storage.Version) error {
	obj, err := v.Object()
	if err != nil {
		return err
	}
	scale, found, err := c.scale.Of(obj)
	if err != nil {
		return err
	}
	if !found && c.scale.Custom {
		return c.scale.Missing()
	}
	return c.sendObject(code, scale)
}
