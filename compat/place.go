package compat

import (
	"fmt"
	"strings"

	apistorage "k8s.io/apiserver/pkg/storage"
)

// A place is where a path lies in the table.
type place struct{ namespace, name string }

// hollow stands in a key of the engine for an empty part of a path, which those keys cannot have.
// No object is called that: names have no '%'. It sorts where the empty part does, before all
// letters and digits.
const hollow = ".%"

func filled(part string) string {
	if part == "" {
		return hollow
	}
	return part
}

func unfilled(part string) string {
	if part == hollow {
		return ""
	}
	return part
}

// placeOf returns where the object of a key lies (rules K1 to K3).
func (s *Store) placeOf(key string) (place, error) {
	key, err := apistorage.PrepareKey(s.prefix, key, false)
	if err != nil {
		return place{}, err
	}
	namespace, name, two := strings.Cut(key[len(s.prefix):], "/")
	switch {
	case !two:
		return place{"", filled(namespace)}, nil
	case strings.Contains(name, "/") || namespace == hollow || name == hollow:
		return place{}, fmt.Errorf("invalid key: %q: after %q there can be a namespace and a name, and neither is called %q", key, s.prefix, hollow)
	}
	return place{filled(namespace), filled(name)}, nil
}

// A scope is what a list or a watch is of.
type scope struct {
	place
	nothing bool // there can be nothing
}

// scopeOf returns what lies at a key or, if it is recursive, below it (rule K4).
func (s *Store) scopeOf(key string, recursive bool) (scope, error) {
	if !recursive {
		p, err := s.placeOf(key)
		return scope{place: p}, err
	}
	key, err := apistorage.PrepareKey(s.prefix, key, true)
	if err != nil {
		return scope{}, err
	}
	below := key[len(s.prefix):]
	if below == "" {
		return scope{}, nil
	}
	namespace, rest, _ := strings.Cut(below, "/")
	return scope{place{namespace: filled(namespace)}, rest != ""}, nil
}

// pathOf returns the key that an object was stored under.
func (s *Store) pathOf(key string) string {
	namespace, name, two := strings.Cut(key[len(s.keys):], "/")
	if !two {
		return s.prefix + unfilled(namespace)
	}
	return s.prefix + unfilled(namespace) + "/" + unfilled(name)
}
