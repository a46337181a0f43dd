package table

import (
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Of returns the columns of a built-in kind, [Default] if it has none of its own. They are for
// the Go types of k8s.io/api, in the versions that are named in the files of this package.
func Of(kind schema.GroupVersionKind) *Columns {
	all := builtin()
	if c := all[kind]; c != nil {
		return c
	}
	return Default()
}

// Default returns the columns of kinds that have none of their own (rule H219). Any object
// will do.
var Default = sync.OnceValue(func() *Columns { return columns(name, created) })

// kinds are the columns of some kinds.
type kinds map[schema.GroupVersionKind]*Columns

// v1 is a kind in version v1 of its group.
func v1(group, kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}
}

// builtin are the columns of all built-in kinds, made when a table is first asked for.
var builtin = sync.OnceValue(func() kinds {
	all := kinds{}
	for _, some := range []kinds{core(), volumes(), nodes(), events(), workloads(), batch(), networking(), scaling(), policies(), registrations()} {
		maps.Copy(all, some)
	}
	return all
})
