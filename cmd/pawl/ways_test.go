package main

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// A door is an endpoint with a number in what it shows.
type door struct {
	resource   string // the path of the collection
	apiVersion string
	kind       string // of what the endpoint shows
	sub        string // /status, /scale, or nothing
	field      string // where the number is, with slashes
	stored     string // where it is in the object itself
	text       bool   // it is written as a string
	custom     bool   // no strategic merge patches
}

const (
	mergePatch     = "application/merge-patch+json"
	strategicPatch = "application/strategic-merge-patch+json"
	jsonPatch      = "application/json-patch+json"
	applyPatch     = "application/apply-patch+yaml"

	deployments = "/apis/apps/v1/namespaces/default/deployments"
	definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	meters      = "/apis/pawl.test/v1/namespaces/default/meters"
)

var doors = []door{
	{resource: configs, apiVersion: "v1", kind: "ConfigMap", field: "/data/n", stored: "/data/n", text: true},
	{resource: deployments, apiVersion: "apps/v1", kind: "Deployment", field: "/spec/replicas", stored: "/spec/replicas"},
	{resource: deployments, apiVersion: "autoscaling/v1", kind: "Scale", sub: "/scale", field: "/spec/replicas", stored: "/spec/replicas"},
	{resource: deployments, apiVersion: "apps/v1", kind: "Deployment", sub: "/status", field: "/status/observedGeneration", stored: "/status/observedGeneration"},
	{resource: meters, apiVersion: "pawl.test/v1", kind: "Meter", field: "/spec/n", stored: "/spec/n", custom: true},
	{resource: meters, apiVersion: "autoscaling/v1", kind: "Scale", sub: "/scale", field: "/spec/replicas", stored: "/spec/n", custom: true},
	{resource: meters, apiVersion: "pawl.test/v1", kind: "Meter", sub: "/status", field: "/status/n", stored: "/status/n", custom: true},
}

// The definition of meters: two numbers, a status, and the first number as a scale.
const meterDefinition = `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "meters.pawl.test"},
	"spec": {"group": "pawl.test", "scope": "Namespaced", "names": {"plural": "meters", "kind": "Meter"}, "versions": [{"name": "v1", "served": true, "storage": true,
	"subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}},
	"schema": {"openAPIV3Schema": {"type": "object", "properties": {
		"spec": {"type": "object", "additionalProperties": {"type": "integer"}},
		"status": {"type": "object", "properties": {"n": {"type": "integer"}}}}}}}]}}`

// begun are objects in which all numbers are 0, by resource; NAME is to be their name.
var begun = map[string]string{
	configs: `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "NAME"}, "data": {"n": "0"}}`,
	deployments: `{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "NAME"}, "spec": {"replicas": 0, "selector": {"matchLabels": {"a": "b"}},
		"template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}}`,
	meters: `{"apiVersion": "pawl.test/v1", "kind": "Meter", "metadata": {"name": "NAME"}, "spec": {"n": 0}}`,
}

// An object is decoded JSON.
type object map[string]any

// at returns what is at a place in an object, nil if there is nothing.
func (o object) at(place string) any {
	var v any = map[string]any(o)
	for _, member := range strings.Split(place, "/")[1:] {
		m, _ := v.(map[string]any)
		v = m[member]
	}
	return v
}

// set puts a value into a place of an object.
func (o object) set(place string, v any) object {
	m := map[string]any(o)
	members := strings.Split(place, "/")[1:]
	for _, member := range members[:len(members)-1] {
		below, ok := m[member].(map[string]any)
		if !ok {
			below = map[string]any{}
			m[member] = below
		}
		m = below
	}
	m[members[len(members)-1]] = v
	return o
}

// number is the one at a place; 0 if there is none.
func (o object) number(place string) int {
	switch v := o.at(place).(type) {
	case float64:
		return int(v)
	case string:
		n, _ := strconv.Atoi(v)
		return n
	}
	return 0
}

const versionPlace = "/metadata/resourceVersion"

func (o object) version() string { v, _ := o.at(versionPlace).(string); return v }

// said is how a number is written at the door.
func (d door) said(n int) any {
	if d.text {
		return strconv.Itoa(n)
	}
	return n
}

func (d door) String() string {
	return d.kind + " " + d.resource[strings.LastIndex(d.resource, "/")+1:] + d.sub
}

// A way is one to write a number into an object that was read.
type way struct {
	name    string
	method  string
	media   string
	query   string
	refused int // how it is told that somebody else wrote
	body    func(d door, read object, n int) any
}

// whole is what was read, with the next number.
func whole(d door, read object, n int) any { return read.set(d.field, d.said(n)) }

// part is only the number, and the version that was read.
func part(d door, read object, n int) any {
	return object{}.set(versionPlace, read.version()).set(d.field, d.said(n))
}

// applied is part for an apply.
func applied(d door, read object, n int) any {
	return object{"apiVersion": d.apiVersion, "kind": d.kind}.
		set("/metadata/name", read.at("/metadata/name")).set(versionPlace, read.version()).set(d.field, d.said(n))
}

// steps is a JSON patch that does something first, and then writes the number.
func steps(first func(d door, read object) object) func(door, object, int) any {
	return func(d door, read object, n int) any {
		return []object{first(d, read), {"op": "replace", "path": d.field, "value": d.said(n)}}
	}
}

func testsNumber(d door, read object) object {
	return object{"op": "test", "path": d.field, "value": read.at(d.field)}
}

func testsVersion(_ door, read object) object {
	return object{"op": "test", "path": versionPlace, "value": read.version()}
}

func namesVersion(_ door, read object) object {
	return object{"op": "replace", "path": versionPlace, "value": read.version()}
}

const rebase = "&onConflict=rebase"

// ways are all those to write that name what was read.
var ways = []way{
	{"PUT", http.MethodPut, "application/json", "", http.StatusConflict, whole},
	{"PUT that may be rebased", http.MethodPut, "application/json", rebase, http.StatusConflict, whole},
	{"merge patch", http.MethodPatch, mergePatch, "", http.StatusConflict, part},
	{"merge patch that may be rebased", http.MethodPatch, mergePatch, rebase, http.StatusConflict, part},
	{"strategic merge patch", http.MethodPatch, strategicPatch, "", http.StatusConflict, part},
	{"JSON patch that tests the number", http.MethodPatch, jsonPatch, "", http.StatusUnprocessableEntity, steps(testsNumber)},
	{"JSON patch that tests the version", http.MethodPatch, jsonPatch, "", http.StatusUnprocessableEntity, steps(testsVersion)},
	{"JSON patch that names the version", http.MethodPatch, jsonPatch, "", http.StatusConflict, steps(namesVersion)},
	{"JSON patch that may be rebased", http.MethodPatch, jsonPatch, rebase, http.StatusConflict, steps(namesVersion)},
	{"apply by force", http.MethodPatch, applyPatch, "&force=true", http.StatusConflict, applied},
}

// through are the ways that a door has.
func (d door) through() (all []way) {
	for _, w := range ways {
		if w.media != strategicPatch || !d.custom {
			all = append(all, w)
		}
	}
	return all
}

// path is where an object is read and written at the door.
func (d door) path(name string) string { return d.resource + "/" + name + d.sub }

// write writes the number in the place of what was read, as a manager, and returns what came of it.
func (w way) write(p *running, d door, name, manager string, read object, n int) (int, object, error) {
	got := object{}
	code, err := p.send(w.method, d.path(name)+"?fieldManager="+manager+w.query, w.media, w.body(d, read, n), &got)
	if err == nil && code < 300 && got.number(d.field) != n {
		err = fmt.Errorf("it was to be %d, and the answer %d has %d", n, code, got.number(d.field))
		return 0, got, &liar{err}
	}
	return code, got, err
}

// A liar is the error of an answer that says something else than what was done.
type liar struct{ error }
