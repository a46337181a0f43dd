package etcd

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

func TestInHowManyPartsAHistoryIsRead(t *testing.T) {
	for _, c := range []struct {
		name       string
		start, end int64
		parts      int
	}{
		{"nothing is left to one watch", 11, 10, 0},
		{"little is left to one watch", 2, partsMin*partSize + 0, 0},
		{"what fills parts is read in them", 2, partsMin*partSize + 1, partsMin},
		{"what fills none is left over", 2, partsMin*partSize + partSize, partsMin},
		{"no more at once than etcd bears", 2, 1_000_000_000, partsMax},
	} {
		t.Run(c.name, func(t *testing.T) {
			if p := partsOf(c.start, c.end); len(p.whole) != c.parts || p.over() != (c.parts == 0) {
				t.Errorf("%d to %d are %d parts, over: %v", c.start, c.end, len(p.whole), p.over())
			}
		})
	}
}

// Parts come in any order, with more than their own, and are handed on in order, each event once.
func TestPartsAreHandedOnInOrder(t *testing.T) {
	const start = 2
	told := func(at int64, fragment bool, revs ...int64) *pb.WatchResponse {
		r := &pb.WatchResponse{Header: &pb.ResponseHeader{Revision: at}, Fragment: fragment}
		for _, rev := range revs {
			r.Events = append(r.Events, &mvccpb.Event{Kv: &mvccpb.KeyValue{ModRevision: rev}})
		}
		return r
	}
	for _, c := range []struct {
		name string
		tell func(p *parts)
		want string // the revisions that are handed on, and after each part its last
	}{
		{"nothing was told", func(*parts) {}, ""},
		{"the second waits for the first", func(p *parts) { p.tell(1, told(9000, false, 1002)) }, ""},
		{"both, once the first is there", func(p *parts) {
			p.tell(1, told(9000, false, 1002))
			p.tell(0, told(9000, false, 2, 1001))
		}, "2 1001 |1001 1002 |2001 "},
		{"what is another's part is not told twice", func(p *parts) {
			p.tell(0, told(9000, false, 7, 1002, 2002))
			p.tell(1, told(9000, false, 1002, 2002))
		}, "7 |1001 1002 |2001 "},
		{"a part that is told again is as it was", func(p *parts) {
			p.tell(0, told(9000, false, 7))
			p.tell(0, told(9000, false, 8))
		}, "7 |1001 "},
		{"a fragment is no whole", func(p *parts) { p.tell(0, told(9000, true, 7)) }, ""},
		{"its last makes it one", func(p *parts) {
			p.tell(0, told(9000, true, 7))
			p.tell(0, told(9000, false, 7, 8))
		}, "7 7 8 |1001 "},
		{"a member that is behind tells no whole", func(p *parts) { p.tell(0, told(1000, false, 7)) }, ""},
		{"where nothing was changed there is nothing", func(p *parts) {
			p.tell(1, told(9000, false, 1002))
			p.tellAll(9000)
		}, "|1001 1002 |2001 |3001 |4001 |5001 "},
		{"progress of a member that is behind is for what it has", func(p *parts) { p.tellAll(2000) }, "|1001 "},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := partsOf(start, start+5*partSize-1)
			c.tell(p)
			got := ""
			for events, last, ok := p.next(); ok; events, last, ok = p.next() {
				for _, e := range events {
					got += fmt.Sprint(e.GetKv().GetModRevision(), " ")
				}
				got += fmt.Sprint("|", last, " ")
			}
			if got != c.want {
				t.Errorf("handed on is %q, want %q", got, c.want)
			}
		})
	}
}

// Who opens an engine is told what takes so long: that etcd does not answer, or how much there is to read.
func TestWhatIsSaidWhileAnEngineIsOpened(t *testing.T) {
	for _, c := range []struct {
		name  string
		heard uint64 // in each second
		want  []string
	}{
		{"of an etcd that tells nothing", 0, []string{"waiting for etcd", "waiting for etcd"}},
		{"of one that has much to tell", 3, []string{"reading etcd's history", "reading etcd's history"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var said strings.Builder
				e := &Engine{opts: Options{Logger: slog.New(slog.NewTextHandler(&said, nil))}}
				ctx, cancel := context.WithTimeout(t.Context(), toldFirst+toldAgain+time.Second)
				defer cancel()
				err := e.patiently(ctx, func(wait context.Context) error {
					e.follows.heard.Add(c.heard)
					<-wait.Done()
					return wait.Err()
				})
				if err == nil {
					t.Error("it is opened")
				}
				lines := slices.Collect(strings.Lines(said.String()))
				if len(lines) != len(c.want) {
					t.Fatalf("it says %q", lines)
				}
				for i, line := range lines {
					if !strings.Contains(line, c.want[i]) {
						t.Errorf("it says %q, want %q", line, c.want[i])
					}
				}
			})
		})
	}
}
