package storage

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/pawl-dev/pawl/kv"
)

// Version is the version that a view or a snapshot showed under one of t's keys; one that does
// not exist for nil and for the mark of a removal.
func (t *Table) Version(v *kv.Version) Version { return t.at(v) }

// Deleting reports whether the object is being deleted. It decodes little, and that once:
// the answer is remembered with the version.
func (v Version) Deleting() (bool, error) {
	if m := v.memo(false); m.err == nil {
		return m.deleting, nil
	}
	md, err := v.Metadata()
	return md.DeletionTimestamp != nil, err
}

// Occupied yields group and plural of each resource of a space that has objects in that
// namespace, whoever serves it. It costs a few look-ups for each resource that has objects at
// all, however many those are. An empty space is [kv.DefaultSpace].
func Occupied(snap kv.Snapshot, space, namespace string) iter.Seq2[string, string] {
	if space == "" {
		space = kv.DefaultSpace
	}
	return func(yield func(group, plural string) bool) {
		root := space + "/"
		for from := root; ; {
			key, ok := first(snap, root, from)
			if !ok {
				return
			}
			table := strings.TrimSuffix(kv.TableOf(key), "/")
			if _, ok := first(snap, table+"/"+namespace+"/", ""); ok {
				group, plural, _ := strings.Cut(table[len(root):], "/")
				if group == coreGroup {
					group = ""
				}
				if !yield(group, plural) {
					return
				}
			}
			from = table + afterSlash
		}
	}
}

// afterSlash sorts after every key that goes on with a slash.
const afterSlash = string('/' + 1)

// first returns the first key under prefix that is at least from.
func first(snap kv.Snapshot, prefix, from string) (string, bool) {
	for v := range snap.Ascend(prefix, from) {
		return v.Key, true
	}
	return "", false
}

// ParseKey takes the key of an object apart. The namespace is "" for an object that has none. It is
// not ok for a key that no object is under: one of [View.ClaimPrefix].
func ParseKey(key string) (group, plural, namespace, name string, ok bool) {
	parts := strings.Split(key, "/")
	if len(parts) != 4 && len(parts) != 5 || parts[1] == claimGroup {
		return "", "", "", "", false
	}
	if group = parts[1]; group == coreGroup {
		group = ""
	}
	if len(parts) == 5 {
		namespace = parts[3]
	}
	return group, parts[2], namespace, parts[len(parts)-1], true
}

// CheckValue returns what is wrong with a stored object as far as that can be told without its codec, nil if nothing is:
// that it is JSON in an envelope that fits, and of the name and namespace that its key says.
func CheckValue(v *kv.Version) error {
	_, _, namespace, name, ok := ParseKey(v.Key)
	if !ok {
		return errors.New("its key is not one of an object")
	}
	d, err := unseal(v.Value)
	if err != nil {
		return err
	}
	if !json.Valid(d.json) {
		return errors.New("not JSON")
	}
	made, err := mark(d.json)
	if err != nil {
		return err
	}
	if made.typeEnd != d.typeEnd || made.metaStart != d.metaStart || made.metaEnd != d.metaEnd {
		return errors.New("its envelope does not fit what is in it")
	}
	var is struct{ Name, Namespace string }
	if err := json.Unmarshal(d.json[d.metaStart:d.metaEnd], &is); err != nil {
		return fmt.Errorf("its metadata: %w", err)
	}
	if is.Name != name || is.Namespace != namespace {
		return fmt.Errorf("it calls itself %s", strings.TrimPrefix(is.Namespace+"/"+is.Name, "/"))
	}
	return nil
}

// RawMetadata returns the JSON of the metadata of a stored object, without resourceVersion, whatever
// table it is of. It costs nothing, and must not be changed.
func RawMetadata(v *kv.Version) ([]byte, error) {
	d, err := unseal(v.Value)
	if err != nil {
		return nil, err
	}
	return d.json[d.metaStart:d.metaEnd], nil
}
