// Package contention counts who gets in whose way: how often writes are refused as conflicts, how often
// one has to be judged again because another was quicker, and how many change nothing.
//
// It keeps totals for each resource, and for the objects where most of it happens also for each
// manager. All of it is bounded: of objects the [Objects] busiest are known, by the Space-Saving
// algorithm (Metwally, Agrawal and El Abbadi, "Efficient Computation of Frequent and Top-k
// Elements in Data Streams", 2005), so none is left out whose share is more than one in Objects.
package contention

import (
	"cmp"
	"container/heap"
	"slices"
	"sync"

	"github.com/pawl-dev/pawl/storage"
)

// What is kept at most.
const (
	Objects      = 512 // objects
	resourcesMax = 512 // resources; those that come later are counted as one
	managersMax  = 16  // managers of one object, and as many are told of a resource
)

// Rest is what stands for all resources, or all managers, that are not counted one by one.
const Rest = "(others)"

// A Tally is how often each thing happened.
type Tally struct {
	Conflicts uint64 `json:"conflicts"` // writes refused because they were made against an older version
	Retries   uint64 `json:"retries"`   // attempts that lost a race and were made again
	Unchanged uint64 `json:"unchanged"` // writes that would have changed nothing, and were not made
}

func (t *Tally) add(e storage.Contention) {
	switch e {
	case storage.Conflicted:
		t.Conflicts++
	case storage.Retried:
		t.Retries++
	case storage.Unchanged:
		t.Unchanged++
	}
}

// Total is all of them.
func (t Tally) Total() uint64 { return t.Conflicts + t.Retries + t.Unchanged }

// Counts is what has been counted since a server began. The zero value has counted nothing.
// It may be used by many at once.
type Counts struct {
	mu        sync.Mutex
	resources map[string]*counter
	objects   map[storage.Place]*object
	busiest   ranks
}

// A counter counts for one thing, by manager.
type counter struct {
	Tally
	managers map[string]*Tally
}

func (c *counter) add(e storage.Contention, manager string) {
	c.Tally.add(e)
	if c.managers == nil {
		c.managers = map[string]*Tally{}
	}
	m := c.managers[manager]
	if m == nil && len(c.managers) >= managersMax {
		manager = Rest
		m = c.managers[Rest]
	}
	if m == nil {
		m = &Tally{}
		c.managers[manager] = m
	}
	m.add(e)
}

// An object is one of the busiest.
type object struct {
	counter
	place storage.Place
	over  uint64 // what may have happened to others, before it came to be counted
	rank  int    // its index in ranks
}

// weight is what it may have seen at most.
func (o *object) weight() uint64 { return o.over + o.Total() }

// Observe implements [storage.Observer].
func (c *Counts) Observe(e storage.Contention, at storage.Place, manager string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.resource(at.Resource).add(e, manager)
	o := c.object(at)
	o.add(e, manager)
	heap.Fix(&c.busiest, o.rank)
}

func (c *Counts) resource(name string) *counter {
	if r := c.resources[name]; r != nil {
		return r
	}
	if len(c.resources) >= resourcesMax {
		name = Rest
		if r := c.resources[name]; r != nil {
			return r
		}
	}
	if c.resources == nil {
		c.resources = map[string]*counter{}
	}
	r := &counter{}
	c.resources[name] = r
	return r
}

// object returns the counter of an object. If there are as many as there may be, it takes that of the
// object with the least, and may have had as much itself.
func (c *Counts) object(at storage.Place) *object {
	if o := c.objects[at]; o != nil {
		return o
	}
	if c.objects == nil {
		c.objects = map[storage.Place]*object{}
	}
	o := &object{place: at}
	c.objects[at] = o
	if len(c.busiest) < Objects {
		heap.Push(&c.busiest, o)
		return o
	}
	least := c.busiest[0]
	delete(c.objects, least.place)
	o.over = least.weight()
	c.busiest[0] = o
	return o
}

// ranks is a heap with the least busy object first.
type ranks []*object

func (r ranks) Len() int           { return len(r) }
func (r ranks) Less(i, j int) bool { return r[i].weight() < r[j].weight() }
func (r ranks) Swap(i, j int) {
	r[i], r[j] = r[j], r[i]
	r[i].rank, r[j].rank = i, j
}

// Push is for container/heap.
func (r *ranks) Push(x any) {
	o := x.(*object)
	o.rank = len(*r)
	*r = append(*r, o)
}

// Pop is for container/heap.
func (r *ranks) Pop() any {
	last := len(*r) - 1
	o := (*r)[last]
	*r = (*r)[:last]
	return o
}

// A Report is what has been counted, the busiest first.
type Report struct {
	Resources []Resource `json:"resources"`
	Objects   []Object   `json:"objects"`
}

// A Resource is what was counted for one resource.
type Resource struct {
	Resource string `json:"resource"` // such as widgets.example.com
	Tally
	Managers []Manager `json:"managers"`
}

// An Object is what was counted for one object.
type Object struct {
	Resource  string `json:"resource"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Tally
	// Before is how much more there may have been before the object came to be counted: at most so much.
	Before   uint64    `json:"before,omitempty"`
	Managers []Manager `json:"managers"`
}

// A Manager is what was counted for one field manager.
type Manager struct {
	Manager string `json:"manager"`
	Tally
}

// Report returns all resources, and up to n objects.
func (c *Counts) Report(n int) Report {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := Report{Resources: []Resource{}, Objects: []Object{}}
	for name, counted := range c.resources {
		r.Resources = append(r.Resources, Resource{name, counted.Tally, counted.report()})
	}
	slices.SortFunc(r.Resources, func(a, b Resource) int {
		return cmp.Or(cmp.Compare(b.Total(), a.Total()), cmp.Compare(a.Resource, b.Resource))
	})
	for _, o := range c.busiest {
		r.Objects = append(r.Objects, Object{o.place.Resource, o.place.Namespace, o.place.Name, o.Tally, o.over, o.report()})
	}
	slices.SortFunc(r.Objects, func(a, b Object) int {
		return cmp.Or(cmp.Compare(b.Total(), a.Total()), cmp.Compare(a.Resource, b.Resource),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	if len(r.Objects) > n {
		r.Objects = r.Objects[:n]
	}
	return r
}

func (c *counter) report() []Manager {
	all := make([]Manager, 0, len(c.managers))
	for name, t := range c.managers {
		all = append(all, Manager{name, *t})
	}
	slices.SortFunc(all, func(a, b Manager) int {
		return cmp.Or(cmp.Compare(b.Total(), a.Total()), cmp.Compare(a.Manager, b.Manager))
	})
	return all
}
