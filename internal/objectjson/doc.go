// Package objectjson reads and writes the JSON of objects that have no Go type: trees of
// map[string]any, []any, string, int64, float64, bool and nil.
//
// # The same, but for the time it takes
//
// [Decode] makes what sigs.k8s.io/json makes, and [Append] writes what encoding/json writes,
// to the byte. They are faster because they know what they will meet: reading goes over the text
// once and builds nothing but the object, and writing reflects on nothing.
// [Type] says what an object says it is, for a quarter of what reading it costs.
//
// None has an opinion of its own. Whatever is out of the ordinary (text that is no JSON, a
// field that comes twice, a number that does not fit, nesting beyond [depthMax], a Go type that
// is not in the list above) is handed to the library as a whole, whose result and whose
// words are then the answer. Rare cases so cost both, and cannot differ.
//
// # Equality
//
// [Equal] compares two such trees as apimachinery's equality.Semantic does.
package objectjson
