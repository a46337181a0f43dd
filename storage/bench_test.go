package storage

import (
	"fmt"
	"testing"
)

const benchObjects = 1000

func listFixture(t testing.TB) *fixture {
	f := newFixture(t)
	for i := range benchObjects {
		f.put(thing("a", fmt.Sprintf("n%04d", i), "big", "color=red"))
	}
	return f
}

// send lists everything and appends what a client is sent.
func send(t testing.TB, f *fixture, buf []byte, sel Selector) []byte {
	p, err := f.List(t.Context(), ListOptions{Namespace: "a", Selector: sel})
	if err != nil || len(p.Items) != benchObjects {
		t.Fatal(len(p.Items), err)
	}
	for _, v := range p.Items {
		var ok bool
		if buf, ok = v.AppendJSON(buf, true); !ok {
			t.Fatal("had to be decoded")
		}
	}
	return buf
}

// A list of stored bytes makes no garbage per object, with a selector or without.
func TestListsSendStoredBytesWithoutGarbagePerObject(t *testing.T) {
	f := listFixture(t)
	for name, sel := range map[string]Selector{
		"everything": {}, "by label": picking(t, "color=red", ""), "by field": picking(t, "", "data.is=big,metadata.namespace=a"),
	} {
		buf := send(t, f, nil, sel)
		n := testing.AllocsPerRun(5, func() { send(t, f, buf[:0], sel) })
		t.Logf("%s: %.3f allocations per object", name, n/benchObjects)
		if n/benchObjects >= 1 {
			t.Errorf("%s: %.2f allocations per object", name, n/benchObjects)
		}
	}
}

func TestOtherFormsAreNotSentAsStored(t *testing.T) {
	f := newFixture(t)
	f.put(thing("a", "one", "big"))
	for _, c := range []struct {
		name  string
		print Fingerprint
	}{{"another schema", 8}, {"a form that must be decoded", Unfit}} {
		other := NewTable(Options{Engine: f.engine, Resource: "configmaps", Namespaced: true, Codec: configMaps{c.print}})
		p, err := other.List(t.Context(), ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if sent, ok := p.Items[0].AppendJSON(nil, false); ok {
			t.Errorf("%s: sent as stored: %s", c.name, sent)
		}
		if sent, err := p.Items[0].AppendMetadata(nil); err != nil || members(t, sent)["name"] != "one" {
			t.Errorf("%s: metadata %s, %v", c.name, sent, err)
		}
	}
}

// BenchmarkList is the claim of DESIGN.md, "Forms": on the path of stored bytes nothing is
// decoded or encoded. Divide allocs/op by the number of objects.
func BenchmarkList(b *testing.B) {
	f := listFixture(b)
	buf := send(b, f, nil, Selector{})
	b.ReportAllocs()
	b.SetBytes(int64(len(buf)))
	for b.Loop() {
		send(b, f, buf[:0], Selector{})
	}
	b.ReportMetric(benchObjects, "objects/op")
}

func BenchmarkModify(b *testing.B) {
	f := newFixture(b)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := f.Modify(b.Context(), "a", "one", false, putting(thing("a", "one", fmt.Sprint(i)))); err != nil {
			b.Fatal(err)
		}
	}
}
