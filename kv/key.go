package kv

import "strings"

// DefaultSpace is the space of the one API server that a process holds today.
const DefaultSpace = "default"

// TableOf returns the table that key belongs to, with its trailing '/'; "" if key is
// too short to belong to one.
func TableOf(key string) string {
	end := 0
	for range 3 {
		i := strings.IndexByte(key[end:], '/')
		if i < 0 {
			return ""
		}
		end += i + 1
	}
	return key[:end]
}

// NamespaceOf returns the prefix of all keys of key's table and namespace, with its
// trailing '/'; "" if key has no namespace.
func NamespaceOf(key string) string {
	table := TableOf(key)
	i := strings.IndexByte(key[len(table):], '/')
	if table == "" || i < 0 {
		return ""
	}
	return key[:len(table)+i+1]
}

// CheckKey reports what is wrong with key, "" if nothing is.
func CheckKey(key string) string {
	if len(key) > MaxKeyBytes {
		return "key too long"
	}
	if n := strings.Count(key, "/"); n != 3 && n != 4 {
		return "a key is space/group/resource[/namespace]/name"
	}
	for part, rest, more := "", key, true; more; {
		if part, rest, more = strings.Cut(rest, "/"); part == "" || part == "." || part == ".." {
			return "a part of the key is empty, . or .."
		}
	}
	return ""
}
