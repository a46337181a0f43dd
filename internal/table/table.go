package table

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
)

// What a cell says that has nothing to say (rule B75).
const (
	none    = "<none>"
	unknown = "<unknown>"
	unset   = "<unset>"
)

// Columns are the columns of one kind. They do not change and are safe for concurrent use.
type Columns struct {
	// Definitions is the header; the caller must not change it.
	Definitions []metav1.TableColumnDefinition

	cells      func(obj runtime.Object, now time.Time) []any
	conditions func(obj runtime.Object) []metav1.TableRowCondition
}

// A Row is one object. Its cells are in the order of the columns, each a string, a number, a
// bool or nil.
type Row struct {
	Cells      []any
	Conditions []metav1.TableRowCondition // nil if there are none
}

// Row makes the row of an object, which must be of the kind that the columns are for.
func (c *Columns) Row(obj runtime.Object, now time.Time) Row {
	r := Row{Cells: c.cells(obj, now)}
	if c.conditions != nil {
		r.Conditions = c.conditions(obj)
	}
	return r
}

// A column is one column and what makes its cells.
type column struct {
	metav1.TableColumnDefinition
	cell func(obj runtime.Object, now time.Time) any
}

// columns puts columns together.
func columns(cols ...column) *Columns {
	c := &Columns{cells: func(obj runtime.Object, now time.Time) []any {
		cells := make([]any, len(cols))
		for i, col := range cols {
			cells[i] = col.cell(obj, now)
		}
		return cells
	}}
	for _, col := range cols {
		c.Definitions = append(c.Definitions, col.TableColumnDefinition)
	}
	return c
}

// define makes a column of objects of one Go type.
func define[T runtime.Object](kind, name, doc string, cell func(T, time.Time) any) column {
	return column{
		metav1.TableColumnDefinition{Name: name, Type: kind, Description: doc},
		func(obj runtime.Object, now time.Time) any {
			typed, ok := obj.(T)
			if !ok {
				panic(fmt.Sprintf("table: column %s is of a %T, and not of a %T", name, typed, obj))
			}
			return cell(typed, now)
		},
	}
}

// text is a column of strings.
func text[T runtime.Object](name, doc string, cell func(T) string) column {
	return define("string", name, doc, func(obj T, _ time.Time) any { return cell(obj) })
}

// timed is a column of strings that depend on the time.
func timed[T runtime.Object](name, doc string, cell func(T, time.Time) string) column {
	return define("string", name, doc, func(obj T, now time.Time) any { return cell(obj, now) })
}

// number is a column of whole numbers.
func number[T runtime.Object, N ~int | ~int32 | ~int64](name, doc string, cell func(T) N) column {
	return define("integer", name, doc, func(obj T, _ time.Time) any { return int64(cell(obj)) })
}

// truth is a column of bools.
func truth[T runtime.Object](name, doc string, cell func(T) bool) column {
	return define("boolean", name, doc, func(obj T, _ time.Time) any { return cell(obj) })
}

// as says another type of the cells in the header than the one they have.
func (c column) as(kind string) column {
	c.Type = kind
	return c
}

// wide makes a column one that is only shown by -o wide.
func (c column) wide() column {
	c.Priority = 1
	return c
}

// The columns that most kinds have. Any object will do.
var (
	name    = named(func(m metav1.Object) string { return m.GetName() })
	age     = aged("Age", "string", func(m metav1.Object, now time.Time) any { return since(m.GetCreationTimestamp(), now) })
	created = aged("Created At", "date", func(m metav1.Object, _ time.Time) any {
		return m.GetCreationTimestamp().UTC().Format(time.RFC3339)
	})
)

// named is the column of names, with something done to them.
func named(cell func(metav1.Object) string) column {
	return column{
		metav1.TableColumnDefinition{Name: "Name", Type: "string", Format: "name", Description: swagger(metav1.ObjectMeta{}, "name")},
		func(obj runtime.Object, _ time.Time) any { return cell(metadata(obj)) },
	}
}

func aged(name, kind string, cell func(metav1.Object, time.Time) any) column {
	return column{
		metav1.TableColumnDefinition{Name: name, Type: kind, Description: swagger(metav1.ObjectMeta{}, "creationTimestamp")},
		func(obj runtime.Object, now time.Time) any { return cell(metadata(obj), now) },
	}
}

func metadata(obj runtime.Object) metav1.Object {
	m, err := meta.Accessor(obj)
	if err != nil {
		panic(fmt.Sprintf("table: a %T has no metadata", obj))
	}
	return m
}

// swagger is the documentation of a field of an API type.
func swagger(of interface{ SwaggerDoc() map[string]string }, field string) string {
	return of.SwaggerDoc()[field]
}

// since is how long ago something was, for people (rule H217).
func since(t metav1.Time, now time.Time) string {
	if t.IsZero() {
		return unknown
	}
	return duration.HumanDuration(now.Sub(t.Time))
}

// or is s, or what to say in place of nothing.
func or[S ~string](s S, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return string(s)
}

// at is what p points to, or what to say in place of nothing.
func at[S ~string](p *S, otherwise string) string {
	if p == nil {
		return otherwise
	}
	return string(*p)
}

// flag is what p points to.
func flag(p *bool, otherwise bool) bool {
	if p == nil {
		return otherwise
	}
	return *p
}

// some joins the first of many, and says how many more there are.
func some(all []string, shown int) string {
	if len(all) > shown {
		return fmt.Sprintf("%s + %d more...", strings.Join(all[:shown], ","), len(all)-shown)
	}
	return strings.Join(all, ",")
}

// sorted returns each of texts once, in order.
func sorted(texts []string) []string {
	slices.Sort(texts)
	return slices.Compact(texts)
}
