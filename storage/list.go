package storage

import (
	"context"

	"github.com/pawl-dev/pawl/kv"
)

// ListOptions say which objects a list holds. The zero value is everything, now.
type ListOptions struct {
	Namespace string // "" for all
	Name      string // one object alone, which has no pages (rule S125)
	From      From   // nil is Consistent
	Limit     int64  // 0 for all
	Selector  Selector
}

// A Page is a list, or a part of one.
type Page struct {
	Items     []Version
	Revision  kv.Revision
	Continue  string // "" if nothing is left
	Remaining *int64 // how many objects are left, where that is known (rule K61)
}

// List returns the objects that o asks for, in key order, all at one revision.
func (t *Table) List(ctx context.Context, o ListOptions) (*Page, error) {
	if o.From == nil {
		o.From = Consistent{}
	}
	at := o.From.state(o.Name != "")
	snap, err := t.read(ctx, at)
	if err != nil {
		return nil, tooLate(err, o.From)
	}
	page := &Page{Items: []Version{}, Revision: snap.Revision()}
	if rev, ok := at.Exactly(); ok {
		page.Revision = rev
	}
	if o.Name != "" {
		return page, t.one(snap, o, page)
	}
	return page, t.fill(ctx, snap, o, page)
}

// one lists a single object.
func (t *Table) one(snap kv.Snapshot, o ListOptions, page *Page) error {
	v := t.at(snap.Get(t.Key(o.Namespace, o.Name)))
	if !v.Exists() {
		return nil
	}
	ok, err := o.Selector.Matches(v)
	if ok {
		page.Items = append(page.Items, v)
	}
	return err
}

// cancelEvery is how many objects are looked at between two looks at the context.
const cancelEvery = 4096

// fill adds objects until the page is full, and says what is left.
func (t *Table) fill(ctx context.Context, snap kv.Snapshot, o ListOptions, page *Page) error {
	prefix, pick := t.scope(o.Namespace), o.Selector.sieve()
	var last string
	looked := 0
	var rotten unreadable
	for kvv := range snap.Ascend(prefix, prefix+o.From.start()) {
		if looked++; looked%cancelEvery == 0 && ctx.Err() != nil {
			return rotten.error(&Error{Kind: Timeout, Err: context.Cause(ctx)})
		}
		if o.Limit > 0 && int64(len(page.Items)) == o.Limit {
			page.Continue = encodeContinue(last[len(prefix):], int64(page.Revision))
			if pick.all {
				left := int64(kv.Count(snap, prefix, kvv.Key))
				page.Remaining = &left
			}
			break
		}
		v := Version{table: t, kv: kvv, rev: kvv.Revision}
		ok, err := pick.matches(v)
		if err != nil && !rotten.add(err) {
			return rotten.error(err)
		}
		if ok {
			page.Items = append(page.Items, v)
		}
		last = kvv.Key
	}
	if len(rotten) > 0 {
		return rotten.error(nil)
	}
	return nil
}

// Count returns how many objects there are, at whatever state is at hand. Nothing has to be read
// for it, so it may be asked as often as anybody likes (rules S138, S139).
func (t *Table) Count(ctx context.Context) (int, error) {
	snap, err := t.read(ctx, kv.Any)
	if err != nil {
		return 0, err
	}
	return kv.Count(snap, t.prefix, ""), nil
}
