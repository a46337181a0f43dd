package controller

import (
	"bytes"
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/storage"
)

// A graph is who owns whom, as of the changes that it was told. It holds the objects that name
// owners, those that are named, and those that are being deleted and wait for the collector.
// One goroutine uses it.
type graph struct {
	byKey map[string]*node    // those that were found and exist
	byUID map[types.UID]*node // all
	touch func(*node)         // is told which objects to decide on
}

func newGraph(touch func(*node)) *graph {
	return &graph{byKey: map[string]*node{}, byUID: map[types.UID]*node{}, touch: touch}
}

// A node is one object, told from others that had or will have its name by its UID.
type node struct {
	uid      types.UID
	key      string      // "" while unseen
	created  kv.Revision // at which the object came to be
	revision kv.Revision // of the newest version that is known
	stage    stage
	asks     metav1.DeletionPropagation // what its finalizers ask for, should it be deleted

	owners     []edge
	dependents map[*node]int // how many references each has to this node
	blocks     int           // how many of those block its deletion

	// Of the collection: queued to be decided on, a task for it is under way, and it is
	// to be decided on once more when that ends.
	queued, busy, again bool
	failures            int // of its tasks, in a row
}

// A stage is how far an object is.
type stage uint8

const (
	unseen    stage = iota // somebody names it, and nobody has found it
	alive                  // nobody has deleted it
	leaving                // it is being deleted, and waits for others than the collector
	lingering              // it is being deleted in the foreground: once its dependents have gone
	letting                // it is being deleted once no dependent refers to it
	lost                   // it was there
)

// A reference is how an object names an owner.
type reference struct {
	uid                    types.UID
	apiVersion, kind, name string
	blocks                 bool
}

// An edge is a reference and whom it names.
type edge struct {
	ref   reference
	owner *node
	key   string // where the owner should be; "" while nobody can say
}

// metadata is what the graph wants to know of an object.
type metadata struct {
	UID               types.UID
	DeletionTimestamp *json.RawMessage
	Finalizers        []string
	OwnerReferences   []metav1.OwnerReference
}

func metadataOf(v *kv.Version) (metadata, error) {
	var md metadata
	raw, err := storage.RawMetadata(v)
	if err == nil {
		err = json.Unmarshal(raw, &md)
	}
	return md, err
}

var (
	ownersMember   = []byte(`"ownerReferences"`)
	deletionMember = []byte(`"deletionTimestamp"`)
)

// plain reports whether the metadata are those of an object that names no owners and is not
// being deleted. It sees that without decoding them: within a string the quotes are
// escaped. What is no object is plain, too.
func plain(v *kv.Version) bool {
	raw, err := storage.RawMetadata(v)
	return err != nil || !bytes.Contains(raw, ownersMember) && !bytes.Contains(raw, deletionMember)
}

func (md metadata) stage() stage {
	switch {
	case md.DeletionTimestamp == nil:
		return alive
	case slices.Contains(md.Finalizers, metav1.FinalizerOrphanDependents):
		return letting
	case slices.Contains(md.Finalizers, metav1.FinalizerDeleteDependents):
		return lingering
	}
	return leaving
}

func (md metadata) asks() metav1.DeletionPropagation {
	switch {
	case slices.Contains(md.Finalizers, metav1.FinalizerOrphanDependents):
		return metav1.DeletePropagationOrphan
	case slices.Contains(md.Finalizers, metav1.FinalizerDeleteDependents):
		return metav1.DeletePropagationForeground
	}
	return metav1.DeletePropagationBackground
}

func referencesOf(refs []metav1.OwnerReference) []reference {
	out := make([]reference, len(refs))
	for i, r := range refs {
		out[i] = reference{r.UID, r.APIVersion, r.Kind, r.Name, r.BlockOwnerDeletion != nil && *r.BlockOwnerDeletion}
	}
	return out
}

func (n *node) references() []reference {
	out := make([]reference, len(n.owners))
	for i, e := range n.owners {
		out[i] = e.ref
	}
	return out
}

// put takes in what a key holds from now on.
func (g *graph) put(v *kv.Version) error {
	n := g.byKey[v.Key]
	if n != nil && n.revision >= v.Revision {
		return nil // it was found in a state that is newer
	}
	if n != nil && n.created != v.Created {
		g.lose(n)
		n = nil
	}
	switch {
	case n == nil && plain(v):
		return nil
	case n != nil && n.stage == alive && len(n.owners) == 0 && plain(v):
		n.revision = v.Revision
		return nil
	}
	md, err := metadataOf(v)
	if err != nil {
		return err
	}
	if n == nil {
		if len(md.OwnerReferences) == 0 && md.stage() != lingering && md.stage() != letting && g.byUID[md.UID] == nil {
			return nil
		}
		n = g.node(md.UID)
	}
	g.fill(n, v, md)
	return nil
}

// node returns the node of a UID; it is unseen if nobody has named that before.
func (g *graph) node(uid types.UID) *node {
	n := g.byUID[uid]
	if n == nil {
		n = &node{uid: uid, dependents: map[*node]int{}}
		g.byUID[uid] = n
	}
	return n
}

// fill gives a node what is known of its object. If anything of that is new and matters, those
// whom it matters to are touched.
func (g *graph) fill(n *node, v *kv.Version, md metadata) {
	if n.key != "" && n.key != v.Key && n.stage != lost {
		return // two objects with one UID: that of the first is believed
	}
	n.key, n.created, n.revision, n.asks = v.Key, v.Created, v.Revision, md.asks()
	g.byKey[v.Key] = n
	refs := referencesOf(md.OwnerReferences)
	if !slices.Equal(refs, n.references()) {
		g.connect(n, refs)
		g.touch(n)
	}
	g.advance(n, md.stage())
	g.drop(n)
}

// advance brings an object to a stage.
func (g *graph) advance(n *node, s stage) {
	was := n.stage
	n.stage = s
	if was == s || was == unseen && s == alive || s == leaving {
		return // that changes nothing for anybody
	}
	g.touch(n)
	for dependent := range n.dependents {
		g.touch(dependent)
	}
}

// remove takes in that a key went at a revision.
func (g *graph) remove(key string, at kv.Revision) {
	if n := g.byKey[key]; n != nil && n.revision < at {
		g.lose(n)
	}
}

func (g *graph) lose(n *node) {
	delete(g.byKey, n.key)
	g.connect(n, nil)
	g.advance(n, lost)
	g.drop(n)
}

// connect gives an object other owners. Those that it leaves are touched if they waited for it
// alone.
func (g *graph) connect(n *node, refs []reference) {
	before := n.owners
	n.owners = make([]edge, len(refs))
	for i, ref := range refs {
		e := edge{ref: ref, owner: g.node(ref.uid)}
		if was := slices.IndexFunc(before, func(b edge) bool { return b.ref.sameObject(ref) }); was >= 0 {
			e.key = before[was].key
		}
		e.owner.dependents[n]++
		if ref.blocks {
			e.owner.blocks++
		}
		n.owners[i] = e
	}
	for _, e := range before {
		o := e.owner
		if o.dependents[n]--; o.dependents[n] == 0 {
			delete(o.dependents, n)
		}
		if e.ref.blocks {
			o.blocks--
		}
		if o.stage == lingering && o.blocks == 0 || o.stage == letting && len(o.dependents) == 0 {
			g.touch(o)
		}
		g.drop(o)
	}
}

// sameObject reports whether two references name the same object at the same place.
func (r reference) sameObject(as reference) bool {
	r.blocks = as.blocks
	return r == as
}

// drop forgets a node that nothing hangs on.
func (g *graph) drop(n *node) {
	if len(n.dependents) > 0 || len(n.owners) > 0 || n.stage == lingering || n.stage == letting {
		return
	}
	if g.byUID[n.uid] == n {
		delete(g.byUID, n.uid)
	}
	if g.byKey[n.key] == n {
		delete(g.byKey, n.key)
	}
	n.stage = lost
}
