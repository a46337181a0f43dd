// Package clients runs client-go against pawl: typed and dynamic clients, informers, retries
// and leader election, each doing what controllers do with it all day.
package clients
