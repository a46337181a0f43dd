// Package etcd starts real etcds inside a test process, of one member or several, with real disks, real
// fsyncs and real leases; and its tests hold kv/etcd to its promises on them.
//
// Tests of what takes long, such as many leader changes, run with PAWL_HEAVY=1.
package etcd
