// Package local is an engine that keeps a store in one folder, or in memory.
package local
