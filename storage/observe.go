package storage

// A Contention is a way in which writers get in each other's way.
type Contention uint8

// What an [Observer] is told of.
const (
	Conflicted Contention = iota // a write was refused because it was made against an older version
	Retried                      // an attempt lost a race, and is made again
	Unchanged                    // a write would have changed nothing, and was not made
)

// A Place is where an object is.
type Place struct {
	Resource        string // such as configmaps, or widgets.example.com
	Namespace, Name string
}

// An Observer is told when writers get in each other's way. It must be quick, and may be called by
// many at once. Manager is the field manager of the write, as far as it is known. A dry run is
// told of only if it is refused as a conflict.
type Observer interface {
	Observe(what Contention, at Place, manager string)
}

// Observe tells the table's observer, if there is one, of what happened to a write: [Conflicted] is for
// the layer above to tell, which alone knows of it.
func (t *Table) Observe(what Contention, namespace, name, manager string) {
	if t.observer != nil {
		t.observer.Observe(what, Place{t.resource, namespace, name}, manager)
	}
}
