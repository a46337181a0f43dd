//lint:file-ignore SA1019 clients still write Endpoints

package builtin

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pawl-dev/pawl/registry"
)

// endpoints is what holds for Endpoints, which whoever routes writes and reads.
var endpoints = rules[*corev1.Endpoints]{
	policy: registry.Policy{Namespaced: true, CreateOnUpdate: true, UnconditionalUpdate: true},
	defaults: func(e *corev1.Endpoints) {
		for i := range e.Subsets {
			for j := range e.Subsets[i].Ports {
				or(&e.Subsets[i].Ports[j].Protocol, corev1.ProtocolTCP)
			}
		}
	},
	wrong: func(e *corev1.Endpoints) field.ErrorList {
		errs := wrongFinalizers(e)
		for i, s := range e.Subsets {
			path := field.NewPath("subsets").Index(i)
			if len(s.Addresses)+len(s.NotReadyAddresses) == 0 {
				errs = append(errs, field.Required(path, "must specify `addresses` or `notReadyAddresses`"))
			}
			for j, p := range s.Ports {
				path := path.Child("ports").Index(j)
				if p.Name == "" && len(s.Ports) > 1 {
					errs = append(errs, field.Required(path.Child("name"), ""))
				}
				errs = append(errs, wrongPort(p.Port, path.Child("port"))...)
				errs = append(errs, oneOf(p.Protocol, path.Child("protocol"), protocols...)...)
			}
		}
		return errs
	},
}

// limitRanges is what holds for limit ranges: they are stored, and limit nothing yet (rule B72).
var limitRanges = rules[*corev1.LimitRange]{
	policy: registry.Policy{Namespaced: true, CreateOnUpdate: true, UnconditionalUpdate: true},
	defaults: func(l *corev1.LimitRange) {
		for i := range l.Spec.Limits {
			fillInLimit(&l.Spec.Limits[i])
		}
	},
	wrong: wrongFinalizersOf[*corev1.LimitRange],
}

// fillInLimit fills in, for containers, the default limit from the maximum, and the default request
// from the default limit or else from the minimum.
func fillInLimit(l *corev1.LimitRangeItem) {
	for _, list := range []corev1.ResourceList{l.Max, l.Min, l.Default, l.DefaultRequest, l.MaxLimitRequestRatio} {
		roundUp(list)
	}
	if l.Type == corev1.LimitTypeContainer {
		l.Default = filledFrom(l.Default, l.Max)
		l.DefaultRequest = filledFrom(filledFrom(l.DefaultRequest, l.Default), l.Min)
	}
}

// filledFrom is list with what only from has.
func filledFrom(list, from corev1.ResourceList) corev1.ResourceList {
	if list == nil {
		list = corev1.ResourceList{}
	}
	for name, q := range from {
		if _, has := list[name]; !has {
			list[name] = q.DeepCopy()
		}
	}
	return list
}

// dataKinds are kinds of the core group that are data, and little else.
func dataKinds() []Kind {
	return []Kind{
		define(Kind{
			Version: "v1", Kind: "Endpoints", Plural: "endpoints", Singular: "endpoints", ShortNames: []string{"ep"}, Revision: 1,
			Deprecated: "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
		}, endpoints, nil),
		define(Kind{
			Version: "v1", Kind: "LimitRange", Plural: "limitranges", Singular: "limitrange", ShortNames: []string{"limits"}, Revision: 1,
		}, limitRanges, nil),
	}
}
