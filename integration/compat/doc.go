// Package compat lets the reference judge pawl: it runs the tests that k8s.io/apiserver has for an
// implementation of storage.Interface on package compat of pawl, over each engine, and an aggregated
// API server's registry on it.
package compat
