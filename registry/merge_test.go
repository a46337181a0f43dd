package registry

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
)

func TestMerge(t *testing.T) {
	for _, c := range []struct {
		name             string
		base, one, other string
		want             string // the merged object or, with a dot in front, the overlap
	}{
		{"nobody changed anything", `{"a":1}`, `{"a":1}`, `{"a":1}`, `{"a":1}`},
		{"one side changed something", `{"a":1,"b":1}`, `{"a":2,"b":1}`, `{"a":1,"b":1}`, `{"a":2,"b":1}`},
		{"each changed a field of its own", `{"a":1,"b":1}`, `{"a":2,"b":1}`, `{"a":1,"b":2}`, `{"a":2,"b":2}`},
		{"both changed a field", `{"a":1}`, `{"a":2}`, `{"a":3}`, `.a`},
		{"both changed a field to the same value: each counted itself", `{"a":1}`, `{"a":2}`, `{"a":2}`, `.a`},
		{"both removed a field", `{"a":1}`, `{}`, `{}`, `.a`},
		{"each removed a field", `{"a":1,"b":1}`, `{"a":1}`, `{"b":1}`, `{}`},
		{"one removed what the other changed", `{"a":1}`, `{}`, `{"a":2}`, `.a`},
		{"one removed a field in which the other changed something", `{"a":{"b":1,"c":1}}`, `{}`, `{"a":{"b":2,"c":1}}`, `.a`},
		{"one emptied a field in which the other changed something", `{"a":{"b":1,"c":1}}`, `{"a":{}}`, `{"a":{"b":2,"c":1}}`, `.a.b`},
		{"one emptied a field in which the other added something", `{"a":{"b":1}}`, `{"a":{}}`, `{"a":{"b":1,"c":1}}`, `{"a":{"c":1}}`},
		{"both made a field, with different things in it", `{}`, `{"a":{"b":1}}`, `{"a":{"c":1}}`, `{"a":{"b":1,"c":1}}`},
		{"both made a field, one of them empty", `{}`, `{"a":{}}`, `{"a":{"c":1}}`, `.a`},
		{"both put something in place of null", `{"a":null}`, `{"a":{"b":1}}`, `{"a":{"c":1}}`, `{"a":{"b":1,"c":1}}`},
		{"null is a value: one set it", `{"a":1}`, `{"a":null}`, `{"a":1}`, `{"a":null}`},
		{"null is a value: the other did not", `{"a":1}`, `{"a":null}`, `{}`, `.a`},
		{"a list about which nothing is known is one field", `{"l":[1,2]}`, `{"l":[1,2,3]}`, `{"l":[0,1,2]}`, `.l`},
		{"an atomic object is one field", `{"whole":{"a":1,"b":1}}`, `{"whole":{"a":2,"b":1}}`, `{"whole":{"a":1,"b":2}}`, `.whole`},
		{"both added to a set", `{"tags":["m"]}`, `{"tags":["m","z"]}`, `{"tags":["m","a"]}`, `{"tags":["m","a","z"]}`},
		{"both added the same to a set", `{"tags":[]}`, `{"tags":["a"]}`, `{"tags":["a","b"]}`, `.tags[="a"]`},
		{"one added to a set that the other took from", `{"tags":["a","b"]}`, `{"tags":["b"]}`, `{"tags":["a","x","b"]}`, `{"tags":["x","b"]}`},
		{"each changed an item", `{"containers":[{"name":"a","i":1},{"name":"b","i":1}]}`, `{"containers":[{"name":"a","i":2},{"name":"b","i":1}]}`, `{"containers":[{"name":"a","i":1},{"name":"b","i":2}]}`,
			`{"containers":[{"i":2,"name":"a"},{"i":2,"name":"b"}]}`},
		{"each changed a part of one item", `{"containers":[{"name":"a","i":1,"j":1}]}`, `{"containers":[{"name":"a","i":2,"j":1}]}`, `{"containers":[{"name":"a","i":1,"j":2}]}`, `{"containers":[{"i":2,"j":2,"name":"a"}]}`},
		{"both changed one part of an item", `{"containers":[{"name":"a","i":1}]}`, `{"containers":[{"name":"a","i":2}]}`, `{"containers":[{"name":"a","i":3}]}`, `.containers[name="a"].i`},
		{"one removed an item that the other changed", `{"containers":[{"name":"a","i":1},{"name":"b"}]}`, `{"containers":[{"name":"b"}]}`, `{"containers":[{"name":"a","i":3},{"name":"b"}]}`, `.containers[name="a"]`},
		{"both added an item of one name", `{"containers":[]}`, `{"containers":[{"name":"a","i":2}]}`, `{"containers":[{"name":"a","j":3}]}`, `.containers[name="a"]`},
		{"additions stay where they were made", `{"containers":[{"name":"m"},{"name":"n"}]}`,
			`{"containers":[{"name":"first"},{"name":"m"},{"name":"n"}]}`, `{"containers":[{"name":"m"},{"name":"mid"},{"name":"n"},{"name":"last"}]}`,
			`{"containers":[{"name":"first"},{"name":"m"},{"name":"mid"},{"name":"n"},{"name":"last"}]}`},
		{"one put the items in another order", `{"containers":[{"name":"a"},{"name":"b"}],"x":1}`, `{"containers":[{"name":"b"},{"name":"a"}],"x":1}`, `{"containers":[{"name":"a"},{"name":"b"}],"x":2}`,
			`{"containers":[{"name":"b"},{"name":"a"}],"x":2}`},
		{"one put the items in another order, and the other changed one", `{"containers":[{"name":"a"},{"name":"b"}]}`, `{"containers":[{"name":"b"},{"name":"a"}]}`, `{"containers":[{"name":"a"},{"name":"b","i":1}]}`, `.containers`},
		{"one made a list that the other made, too", `{}`, `{"containers":[{"name":"b"}]}`, `{"containers":[{"name":"a"}]}`, `{"containers":[{"name":"a"},{"name":"b"}]}`},
		{"one removed a list that the other added to", `{"containers":[{"name":"a"}]}`, `{}`, `{"containers":[{"name":"a"},{"name":"b"}]}`, `.containers`},
		{"items without names are one field", `{"containers":[{"i":1}]}`, `{"containers":[{"i":2}]}`, `{"containers":[{"i":1},{"name":"x"}]}`, `.containers`},
	} {
		t.Run(c.name, func(t *testing.T) {
			base, one, other := object(t, c.base), object(t, c.one), object(t, c.other)
			for range 2 {
				merged, overlap := merge(podLike, base, one, other)
				got := printed(overlap)
				if len(overlap) == 0 {
					data, err := json.Marshal(merged)
					if err != nil {
						t.Fatal(err)
					}
					got = string(data)
				}
				if got != c.want {
					t.Errorf("got %s\nwant %s", got, c.want)
				}
				one, other = other, one // which must not matter
			}
		})
	}
}

// A maker makes random shapes, objects of them, and changes of objects.
type maker struct{ *rand.Rand }

func (r maker) one(n int) bool { return r.IntN(n) == 0 }

// shape makes a shape; nil is that of a value, or of an object or list about which nothing is known.
func (r maker) shape(depth int) Shape {
	if depth == 0 {
		return nil
	}
	f := fixed{}
	switch r.IntN(6) {
	case 0:
		return nil
	case 1:
		f.atomic = true
	case 2:
		f.set = true
	case 3:
		f.keys = []string{"name"}
		item := r.members(depth - 1)
		item.atomic = r.one(4)
		f.item = item
	default:
		return r.members(depth - 1)
	}
	return f
}

func (r maker) members(depth int) fixed {
	f := fixed{members: map[string]Shape{}}
	for _, name := range "abcd" {
		f.members[string(name)] = r.shape(depth)
	}
	return f
}

// value makes a value of a shape.
func (r maker) value(shape Shape, depth int) any {
	switch f, _ := shape.(fixed); {
	case r.one(12):
		return nil
	case f.set:
		list := []any{}
		for _, i := range r.Perm(5)[:r.IntN(4)] {
			list = append(list, fmt.Sprint(i))
		}
		return list
	case f.keys != nil:
		list := []any{}
		for _, i := range r.Perm(5)[:r.IntN(4)] {
			list = append(list, r.item(f.item, fmt.Sprint(i), depth-1))
		}
		return list
	case f.atomic, f.members != nil, shape == nil && depth > 0 && r.one(2):
		return r.object(shape, depth-1)
	case shape == nil && r.one(3):
		return []any{int64(r.IntN(2)), int64(r.IntN(2))}
	}
	return int64(r.IntN(3))
}

func (r maker) item(shape Shape, name string, depth int) map[string]any {
	item := r.object(shape, depth)
	item["name"] = name
	return item
}

func (r maker) object(shape Shape, depth int) map[string]any {
	m := map[string]any{}
	for _, name := range "abcd" {
		if r.one(2) {
			m[string(name)] = r.value(memberOf(shape, string(name)), depth)
		}
	}
	return m
}

// changed returns an object with a few changes; it shares nothing with m.
func (r maker) changed(shape Shape, m map[string]any, depth int) map[string]any {
	m = runtime.DeepCopyJSON(m)
	for range r.IntN(4) {
		r.change(shape, m, depth)
	}
	return m
}

// change changes something in an object, here or further down.
func (r maker) change(shape Shape, m map[string]any, depth int) {
	name := string("abcd"[r.IntN(4)])
	below := memberOf(shape, name)
	switch v := m[name].(type) {
	case map[string]any:
		if !r.one(5) {
			r.change(below, v, depth-1)
			return
		}
	case []any:
		if f, ok := below.(fixed); ok && !r.one(5) {
			m[name] = r.changedList(f, v, depth-1)
			return
		}
	}
	if r.one(3) {
		delete(m, name)
		return
	}
	m[name] = r.value(below, depth)
}

func (r maker) changedList(shape fixed, l []any, depth int) []any {
	switch at := r.IntN(len(l) + 1); {
	case len(l) > 1 && r.one(4): // another order
		r.Shuffle(len(l), func(i, j int) { l[i], l[j] = l[j], l[i] })
	case r.one(3): // one comes
		name := fmt.Sprint(r.IntN(8))
		var item any = name
		if !shape.set {
			item = r.item(shape.item, name, depth)
		}
		if has := slices.ContainsFunc(l, func(v any) bool { m, _ := v.(map[string]any); return v == any(name) || m != nil && m["name"] == name }); has {
			return l
		}
		return slices.Insert(l, at, item)
	case at == len(l):
		return l
	case r.one(4): // one goes
		return slices.Delete(l, at, at+1)
	default:
		if m, ok := l[at].(map[string]any); ok {
			r.change(shape.item, m, depth)
		}
	}
	return l
}

// A flat object is what an object holds, place by place: the places of values, of what is one field,
// and of objects and lists themselves, which end in /. It is the naive twin of a merge.
type flat map[string]string

func flatten(shape Shape, m map[string]any) flat {
	f := flat{}
	f.members("", shape, m)
	return f
}

func (f flat) members(at string, shape Shape, m map[string]any) {
	for name, v := range m {
		f.value(at+"."+name, memberOf(shape, name), v)
	}
}

func (f flat) value(at string, shape Shape, v any) {
	m, isObject := v.(map[string]any)
	l, isList := v.([]any)
	known, _ := shape.(fixed)
	switch {
	case isObject && !known.atomic:
		f[at+"/"] = "object"
		f.members(at, shape, m)
	case isList && (known.set || known.keys != nil):
		f[at+"/"] = "list"
		for _, item := range l {
			if known.set {
				f[fmt.Sprintf("%s[%v]", at, item)] = "there"
				continue
			}
			f.value(fmt.Sprintf("%s[%v]", at, item.(map[string]any)["name"]), known.item, item)
		}
	default:
		data, _ := json.Marshal(v)
		f[at] = string(data)
	}
}

// edits are the places in which b differs.
func (f flat) edits(b flat) map[string]bool {
	e := map[string]bool{}
	for _, x := range []flat{f, b} {
		for at := range x {
			if v, ok := f[at]; b[at] != v || ok != b.has(at) {
				e[at] = true
			}
		}
	}
	return e
}

func (f flat) has(at string) bool { _, ok := f[at]; return ok }

// applied returns f with the edits that lead to b.
func (f flat) applied(edits map[string]bool, b flat) flat {
	out := maps.Clone(f)
	for at := range edits {
		delete(out, at)
		if v, ok := b[at]; ok {
			out[at] = v
		}
	}
	return out
}

// inside reports whether a place is another, or in it.
func inside(at, outer string) bool {
	outer = strings.TrimSuffix(outer, "/")
	rest, ok := strings.CutPrefix(at, outer)
	return ok && (rest == "" || strings.ContainsAny(rest[:1], "./["))
}

// overlapping tells, from what is in each place, whether two changes of base get in each other's way.
func overlapping(base, one, other flat, orders [2][]string) bool {
	a, b := base.edits(one), base.edits(other)
	for _, l := range orders[0] {
		if slices.ContainsFunc(orders[1], func(m string) bool { return inside(l, m) || inside(m, l) }) {
			return true
		}
	}
	return gets(base, one, other, a, b) || gets(base, other, one, b, a) || jumbles(orders[0], b) || jumbles(orders[1], a)
}

// gets reports whether an edit of a side is in the way of one of the other.
func gets(base, one, other flat, a, b map[string]bool) bool {
	for at := range a {
		made := strings.HasSuffix(at, "/") && !base.has(at)
		filled := !made && base[at] == "null" && one.has(at+"/") && one.holds(at)
		for also := range b {
			switch {
			case filled || !inside(also, at):
			case made && also == at && one[at] == other[at] && one.holds(at) && other.holds(at): // both made it
			case made && !inside(at, also):
			case made && also != at && one.holds(at):
			default:
				return true
			}
		}
	}
	return false
}

// holds reports whether there is anything in an object or a list.
func (f flat) holds(at string) bool {
	for below := range f {
		if below != at && below != strings.TrimSuffix(at, "/")+"/" && inside(below, at) {
			return true
		}
	}
	return false
}

// jumbles reports whether an edit is in a list that the other side put in another order.
func jumbles(lists []string, edits map[string]bool) bool {
	for _, l := range lists {
		for at := range edits {
			if inside(at, l) {
				return true
			}
		}
	}
	return false
}

// orders are the names of the items of every list that has them, in order.
func orders(at string, shape Shape, v any, into map[string][]string) {
	known, _ := shape.(fixed)
	switch v := v.(type) {
	case map[string]any:
		if !known.atomic {
			for name, below := range v {
				orders(at+"."+name, memberOf(shape, name), below, into)
			}
		}
	case []any:
		if !known.set && known.keys == nil {
			return
		}
		into[at] = []string{}
		for _, item := range v {
			name := fmt.Sprint(item)
			if m, ok := item.(map[string]any); ok {
				name = fmt.Sprint(m["name"])
				orders(fmt.Sprintf("%s[%s]", at, name), known.item, item, into)
			}
			into[at] = append(into[at], name)
		}
	}
}

func ordersOf(shape Shape, m map[string]any) map[string][]string {
	into := map[string][]string{}
	orders("", shape, m, into)
	return into
}

// inBoth are the names in a that are in b, too.
func inBoth(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(n string) bool { return !slices.Contains(b, n) })
}

// jumbled are the lists whose items stand in another order in b.
func jumbled(a, b map[string][]string) (lists []string) {
	for at := range a {
		if _, ok := b[at]; ok && !slices.Equal(inBoth(a[at], b[at]), inBoth(b[at], a[at])) {
			lists = append(lists, at)
		}
	}
	return lists
}

// What merging two changes of an object comes to, compared with what its naive twin says: over random
// shapes with objects, named items, sets and atomic fields, over values, null and nothing.
func TestMergingIsApplyingBothChanges(t *testing.T) {
	rounds := 1500
	if os.Getenv("PAWL_HEAVY") == "1" {
		rounds = 400_000
	}
	seed := rand.Uint64()
	var clean, overlapped, moved, both int
	for i := range rounds {
		r := maker{rand.New(rand.NewPCG(seed, uint64(i)))}
		shape := r.members(3)
		base := r.object(shape, 3)
		one, other := r.changed(shape, base, 3), r.changed(shape, base, 3)
		fail := func(format string, args ...any) {
			t.Helper()
			show := func(v any) string { data, _ := json.Marshal(v); return string(data) }
			t.Fatalf("seed %d, round %d: %s\nbase  %s\none   %s\nother %s\nshape %+v", seed, i, fmt.Sprintf(format, args...), show(base), show(one), show(other), shape)
		}
		if printed := checkMerge(shape, base, one, other); printed != "" {
			fail("%s", printed)
		}
		_, overlap := merge(shape, base, one, other)
		switch {
		case len(overlap) > 0:
			overlapped++
		case !equal(base, one) && !equal(base, other):
			both++
			if len(jumbled(ordersOf(shape, base), ordersOf(shape, one))) > 0 {
				moved++
			}
			fallthrough
		default:
			clean++
		}
	}
	t.Logf("%d merged, %d of them with changes on both sides and %d with another order; %d overlapped", clean, both, moved, overlapped)
	if both < rounds/10 || overlapped < rounds/20 || moved == 0 {
		t.Error("too few of a kind to say anything")
	}
}

// checkMerge says what is wrong with a merge; "" if nothing is.
func checkMerge(shape Shape, base, one, other map[string]any) string {
	before := [3]any{runtime.DeepCopyJSONValue(base), runtime.DeepCopyJSONValue(one), runtime.DeepCopyJSONValue(other)}
	merged, overlap := merge(shape, base, one, other)
	if !reflect.DeepEqual(before, [3]any{base, one, other}) {
		return "merging changed what it was given"
	}
	again, backwards := merge(shape, base, other, one)
	f0, f1, f2 := flatten(shape, base), flatten(shape, one), flatten(shape, other)
	o0, o1, o2 := ordersOf(shape, base), ordersOf(shape, one), ordersOf(shape, other)
	want := overlapping(f0, f1, f2, [2][]string{jumbled(o0, o1), jumbled(o0, o2)})
	if got := len(overlap) > 0; got != want || got != (len(backwards) > 0) {
		return fmt.Sprintf("overlap is %q, the other way round %q; that there is one is %v", printed(overlap), printed(backwards), want)
	}
	if told := slices.ContainsFunc(compare(shape, base, other), indexed(compare(shape, base, one)).touch); told != want {
		return fmt.Sprintf("an explanation of the overlap names a field: %v", told)
	}
	if left, _ := merge(shape, base, one, base); !reflect.DeepEqual(left, one) {
		return fmt.Sprintf("with no other change it is %v", left)
	}
	if right, _ := merge(shape, base, base, other); !reflect.DeepEqual(right, other) {
		return fmt.Sprintf("with the other change alone it is %v", right)
	}
	if want {
		return ""
	}
	if !reflect.DeepEqual(merged, again) {
		return fmt.Sprintf("one way round it is %v, the other %v", merged, again)
	}
	result := flatten(shape, merged)
	onTop := f0.applied(f0.edits(f1), f1).applied(f0.edits(f2), f2)
	below := f0.applied(f0.edits(f2), f2).applied(f0.edits(f1), f1)
	if !maps.Equal(onTop, below) || !maps.Equal(result, onTop) {
		return fmt.Sprintf("it is %v\none change after the other is %v\nand the other way round %v", result, onTop, below)
	}
	return checkOrder(ordersOf(shape, merged), o0, o1, o2)
}

// checkOrder says which list has its items in another order than the side that put it so or, if none
// did, than both.
func checkOrder(merged, base, one, other map[string][]string) string {
	a, b := jumbled(base, one), jumbled(base, other)
	for at, got := range merged {
		for _, side := range []struct {
			order   map[string][]string
			another []string
		}{{one, b}, {other, a}} {
			want, ok := side.order[at]
			if ok && !slices.Contains(side.another, at) && !slices.Equal(inBoth(got, want), inBoth(want, got)) {
				return fmt.Sprintf("%s is in the order %v, and was put into %v", at, got, want)
			}
		}
	}
	return ""
}
