package etcd

import (
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/pawl-dev/pawl/kv"
)

func TestWhyNothingIsWritten(t *testing.T) {
	down := errors.New("down")
	for _, c := range []struct {
		name string
		tale func(h *health)
		want error // nil if it is
	}{
		{"nothing was heard yet", func(h *health) {}, nil},
		{"etcd has not answered for long", func(h *health) { time.Sleep(2 * awayAfter); h.failed(down) }, kv.ErrAway},
		{"nor for a while, which may be chance", func(h *health) { time.Sleep(awayAfter / 2); h.failed(down) }, nil},
		{"nobody has asked it for long", func(h *health) { time.Sleep(2 * awayAfter) }, nil},
		{"it answers again", func(h *health) { time.Sleep(2 * awayAfter); h.failed(down); h.answered() }, nil},
		{"it denies an answer", func(h *health) { h.failed(denied("/p", rpctypes.ErrGRPCPermissionDenied)) }, kv.ErrAway},
		{"it has no room", func(h *health) { h.isFull() }, kv.ErrReadOnly},
		{"nor has it because it answers", func(h *health) { h.isFull(); h.answered() }, kv.ErrReadOnly},
		{"nor because it judges what writes nothing", func(h *health) { h.isFull(); h.wrote(false) }, kv.ErrReadOnly},
		{"it has room once something is written", func(h *health) { h.isFull(); h.wrote(true) }, nil},
		{"it lets nobody write", func(h *health) { h.bar(denied("/p", rpctypes.ErrGRPCPermissionDenied)) }, kv.ErrReadOnly},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &health{log: slog.New(slog.DiscardHandler), last: time.Now()}
				c.tale(h)
				if err := h.err(); !errors.Is(err, c.want) {
					t.Errorf("got %v, want %v", err, c.want)
				}
			})
		})
	}
}
