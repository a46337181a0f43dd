package metadata

import (
	"maps"
	"time"
)

// Plain says that metadata is as the library would write it if it read it into an ObjectMeta first: every
// field known and of its type, and none that would be left out for being empty (rule C50). Known says
// of a fieldsV1 that it is known to hold objects and nothing else, so that nobody has to go through it.
func Plain(metadata any, known func(map[string]any) bool) bool {
	m, ok := metadata.(map[string]any)
	return ok && plain(m, func(m map[string]any) bool { return known(m) || isFields(m) })
}

// plain says whether metadata is, but for the fieldsV1 in it, of which fields says so.
func plain(m map[string]any, fields func(map[string]any) bool) bool {
	for name, value := range m {
		if !plainField(name, value, fields) {
			return false
		}
	}
	return true
}

// Tidy makes metadata plain, in place, if nothing is in the way but fields that are known and empty: they
// are left out. If more is, it says so and does nothing. Known is as for [Plain].
func Tidy(metadata any, known func(map[string]any) bool) bool {
	m, ok := metadata.(map[string]any)
	if !ok {
		return false
	}
	fields := func(m map[string]any) bool { return known(m) || isFields(m) }
	empty := false
	for name, value := range m {
		switch {
		case plainField(name, value, fields):
		case isEmpty(name, value):
			empty = true
		default:
			return false
		}
	}
	if empty {
		maps.DeleteFunc(m, isEmpty)
	}
	return true
}

// isEmpty says whether a field is known, and left out when metadata is written.
func isEmpty(name string, value any) bool {
	switch name {
	case "name", "generateName", "namespace", "selfLink", "uid", "resourceVersion":
		return value == nil || value == ""
	case "generation":
		return value == nil || value == int64(0)
	case "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds":
		return value == nil
	case "labels", "annotations":
		m, ok := value.(map[string]any)
		return value == nil || ok && len(m) == 0
	case "finalizers", "ownerReferences", "managedFields":
		list, ok := value.([]any)
		return value == nil || ok && len(list) == 0
	}
	return false
}

func plainField(name string, value any, fields func(map[string]any) bool) bool {
	switch name {
	case "name", "generateName", "namespace", "selfLink", "uid", "resourceVersion":
		return isText(value)
	case "generation":
		n, ok := value.(int64)
		return ok && n != 0
	case "deletionGracePeriodSeconds":
		_, ok := value.(int64)
		return ok
	case "creationTimestamp", "deletionTimestamp":
		return isTime(value)
	case "labels", "annotations":
		return areTexts(value)
	case "finalizers":
		return each(value, func(v any) bool { _, ok := v.(string); return ok })
	case "ownerReferences":
		return each(value, isReference)
	case "managedFields":
		return each(value, func(v any) bool { return isEntry(v, fields) })
	}
	return false
}

// isText says whether value is a text that is not left out.
func isText(value any) bool {
	s, ok := value.(string)
	return ok && s != ""
}

// isTime says whether value is a time in the one spelling that is written.
func isTime(value any) bool {
	s, ok := value.(string)
	if !ok || len(s) != len("2006-01-02T15:04:05Z") || s[13] != ':' || s[16] != ':' || s[19] != 'Z' || s < "0002" {
		return false
	}
	_, err := time.Parse(time.RFC3339, s)
	return err == nil
}

func areTexts(value any) bool {
	m, ok := value.(map[string]any)
	if !ok || len(m) == 0 {
		return false
	}
	for _, v := range m {
		if _, ok := v.(string); !ok {
			return false
		}
	}
	return true
}

// each says whether value is a list that is not empty, all whose items are as they should.
func each(value any, is func(any) bool) bool {
	list, ok := value.([]any)
	if !ok || len(list) == 0 {
		return false
	}
	for _, item := range list {
		if !is(item) {
			return false
		}
	}
	return true
}

func isReference(value any) bool {
	m, ok := value.(map[string]any)
	if !ok {
		return false
	}
	needed := 0
	for name, v := range m {
		switch name {
		case "apiVersion", "kind", "name", "uid":
			needed++
			_, ok = v.(string)
		case "controller", "blockOwnerDeletion":
			_, ok = v.(bool)
		default:
			ok = false
		}
		if !ok {
			return false
		}
	}
	return needed == 4
}

// isEntry is about an entry of managedFields, whose fieldsV1 is as fields says.
func isEntry(value any, fields func(map[string]any) bool) bool {
	m, ok := value.(map[string]any)
	if !ok {
		return false
	}
	for name, v := range m {
		switch name {
		case "manager", "operation", "apiVersion", "fieldsType", "subresource":
			ok = isText(v)
		case "time":
			ok = isTime(v)
		case "fieldsV1":
			var m map[string]any
			m, ok = v.(map[string]any)
			ok = ok && fields(m)
		default:
			ok = false
		}
		if !ok {
			return false
		}
	}
	return true
}

// isFields says whether m holds objects and nothing else.
func isFields(m map[string]any) bool {
	for _, v := range m {
		if below, ok := v.(map[string]any); !ok || !isFields(below) {
			return false
		}
	}
	return true
}
