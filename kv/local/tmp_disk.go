package local

import (
	"context"
	"errors"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/mvcc"
)

type FS interface{}
type journal struct{}

func (*journal) append([]*commit) error { return nil }
func (*journal) tidy(*mvcc.Index)       {}
func (*journal) close(bool) error       { return nil }

func openDir(context.Context, Options) (*Engine, error) { return nil, errors.New("not on disk yet") }

// Compact implements [kv.Compactor].
func (e *Engine) Compact(ctx context.Context, rev kv.Revision) error {
	return e.index.Compact(ctx, rev)
}
