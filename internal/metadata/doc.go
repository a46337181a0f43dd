// Package metadata says of the metadata of objects that have no Go type what is certain about it, without
// reading it into an ObjectMeta, which costs more than all the rest of such an object.
//
// [Plain] and [Tidy] are about its form: what reading and writing it would leave as it is. [Born] and
// [Succeeds] are about what apimachinery's validation finds in it. True is a promise; false only says
// that the library has to be asked, and its words are the answer to a client.
package metadata
