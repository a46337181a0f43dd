// Package upkeep serves what the keeper of a server needs from it while it runs.
//
//	GET  /pawl/backup                       a backup, in the form of kv/local
//	POST /pawl/compact?before=REVISION      forget what only revisions before that one need
//	POST /pawl/compact?older-than=DURATION  forget what is older, by the times of the commits
//
// These are not resources, and the reference has nothing like them. They are authorized as paths
// are. Whoever may read a backup has every secret of the server, its keys among them: no less
// than its administrator.
//
// A backup is one revision, however long it takes to be sent; commits go on meanwhile. It is sent
// as it is made, so an error on the way can only be told by breaking off: the end of a
// backup says that it is whole, and a client must look for that. One backup is made at a
// time, and a client that takes nothing for a while loses it.
package upkeep
