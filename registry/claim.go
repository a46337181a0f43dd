package registry

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/storage"
)

// expiry is when obj goes by itself once it is written; otherwise is the answer for a strategy that
// does not speak of it (rules S77 to S79).
func (s *Store) expiry(obj runtime.Object, otherwise kv.ExpiryKind) kv.Expiry {
	e, ok := s.strategy.(Expirer)
	if !ok {
		return kv.Expiry{Kind: otherwise}
	}
	switch ttl := e.TTL(obj); {
	case ttl > 0:
		return kv.Expiry{Kind: kv.After, For: ttl}
	case ttl == 0:
		return kv.Expiry{Kind: kv.Forever}
	}
	return kv.Expiry{Kind: otherwise}
}

// claim takes what obj claims, and gives back what old did.
func (s *Store) claim(ctx context.Context, view *storage.View, obj, old runtime.Object) field.ErrorList {
	if c, ok := s.strategy.(Claimer); ok {
		return c.Claim(ctx, view, obj, old)
	}
	return nil
}
