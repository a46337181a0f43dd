// Package local is an engine that keeps a store in one folder, or in memory.
//
// # A commit
//
// A commit is judged against the newest sequenced state, that is, what can be read and
// what is still on its way to the disk. If its conditions hold it takes the next revision
// and joins the queue. One goroutine takes what is queued as a group, writes the group as
// one frame of the log, waits for the disk once, makes the group readable, and answers its
// writers. While it waits the next group gathers, and before it takes that, it lets the writers
// who were answered go on, unless that takes longer than the disk: many are back at once. So the more
// writers there are, the more commits share an fsync, and a lone writer waits for nobody. In memory, where
// there is nothing to wait for, whoever commits does this work.
//
// So readers see only what is durable, in the order of revisions, and what was
// acknowledged survives both kill -9 and a loss of power. A refusal is answered once the
// revision that it lost to can be read.
//
// # When the disk fails, or is full
//
// If a group cannot be written, or an fsync fails, its commits end with [kv.ErrUnknown]; those
// sequenced after it rest on it and end with [kv.ErrReadOnly], as does every later one, for
// good: [Engine.Err] is a [FailedError]. Reads go on, and opening the store again finds
// out what was written.
//
// Room on the disk is taken before it is written to, a step ahead and in segments before
// they are needed, so that a disk that is full is met between groups, where nothing is
// half done. Then every commit ends with [kv.ErrReadOnly], none is unknown, and Engine.Err is a
// [FullError]; once a second the engine looks whether there is room, and goes on by itself when there
// is. What was to expire meanwhile goes then. Where no room can be taken in advance a write
// that does not fit is taken back, which comes to the same.
//
// # The folder
//
//	.gitignore               "*"
//	lock                     held while the store is open, as is the folder itself; the process id, for people
//	log/REVISION.seg         segments of the log, named by the first revision in them
//	snap/REVISION.snap       snapshots, named by the revision they show
//	tip                      which segment is the newest, and where it ends if the store is closed
//	restoring                while the folder is made from a backup
//
// Revisions in names are 16 hexadecimal digits. Numbers in heads are little-endian,
// checksums are CRC-32C, "uvarint" and "varint" are those of encoding/binary, a string is a
// uvarint length and its bytes, and times are nanoseconds since 1970.
//
// # A segment
//
//	segment  = head frame*
//	head     = "pawl log"
//	           version  u32   the format, 1
//	           checksum u32   of the head without this field
//	           id       u64   random: tells this file's frames from others' left-over bytes
//	           first    u64   the revision in the file's name
//	frame    = length   u32   of the payload
//	           checksum u32   of the frame without this field
//	           id       u64   the segment's
//	           next     u64   the revision that came next when the frame was written
//	           payload        record+
//	record   = 1 revision:uvarint time:varint author count:uvarint change{count}
//	         | 2 revision:uvarint    forget what only revisions before this one need
//	         | 3                     the store was closed here; no longer written
//	author   = user:string manager:string verb:string subresource:string
//	change   = flags:byte key:string replaces:uvarint created:uvarint
//	           expires:varint        if flags has 2
//	           value:string          unless flags has 1, a deletion
//
//	tip      = "pawl tip"
//	           version  u32   the format, 1
//	           checksum u32   of the file without this field
//	           id       u64   of the newest segment
//	           first    u64   of the newest segment
//	           size     u64   of its file when the store was closed; 0 while it is open
//
// A frame is written only when the one before it is on disk. So a bad frame with nothing
// good behind it is the torn end of a write that was never acknowledged: it is cut off, and
// the log says so. A bad frame with a good one behind it, or in any segment but the last, is
// damage: opening stops with a [DamageError], and changes nothing. So it does when the store
// was closed, and its last segment does not end as the tip says; only after a crash is
// damage to the last frame taken for a torn write, because it looks like one.
//
// The tip names a segment before any frame is written to that, so the newest one cannot
// be lost without being missed. A newer file than it names was begun, and holds no frame.
//
// A segment is never written to again once another has been begun, nor by a later
// run, unless it holds no commit yet.
//
// # A snapshot
//
//	snapshot = head tables versions* last
//	head     = "pawl snp"
//	           version  u32   the format, 1
//	           checksum u32   of the head without this field
//	           revision u64   that the snapshot shows
//	           time     u64   of the last commit
//	           floor    u64   older revisions are not to be read
//	           zero     u64
//	block    = length   u32   of the payload
//	           checksum u32   of the block without this field
//	           ordinal  u32   counts the blocks of the file from 0
//	           payload
//
// and the payloads of the three kinds of block are
//
//	tables   = 1 count:uvarint (name:string revision:uvarint){count}   when each changed last
//	versions = 2 version+
//	last     = 3 count:uvarint                                         of all versions
//	version  = key:string revision:uvarint created:uvarint time:varint
//	           n:uvarint author?     the n-th author of this block; a new one follows
//	           0 | 2 expires:varint
//	           value:string
//
// Versions are in the order of their keys. A snapshot is written in the background, under
// another name until it is complete, when four times as much log has gathered since the last as
// it is long itself, or [Options.SnapshotSize].
//
// # History
//
// The log is the history. Opening loads what history begins with, which is the empty
// store or the oldest snapshot, and replays the log after it, so a watch
// from before a restart goes on after it, and what a version replaced, by whom and when is
// still known. When a newer snapshot is as old as [Options.HistoryDuration], or has
// [Options.HistorySize] of log after it and is older than 75 seconds, it is read back,
// and then everything older is removed: the store shrinks by itself, whether or not it is
// written to.
//
// # A backup
//
// [Engine.Backup] writes one revision to a stream while the store goes on, and [Restore] makes a
// folder of it, in an empty place, whose revisions go on far ahead with all before compacted: one snapshot, and
// a segment without frames, so that neither is lost without being missed. A
// backup is a snapshot with something in it about itself:
//
//	backup   = head about tables versions* last      as above, but the head begins with "pawl bak"
//	about    = 4 taken:varint objects:uvarint count:uvarint (name:string content:string){count}
//
// The last block tells whether it is whole. The names and contents are files that the maker of the backup put
// in. A file named "restoring" lies in a folder while it is restored; opening refuses such a folder.
//
// [Check] reads every byte of a folder, and says what it holds and all that is wrong with it; [Engine.Shrink]
// forgets history and gives back its room at once.
//
// # Expiry
//
// A key that expires is deleted by a commit whose author is [Expirer], never before its
// time and within [ExpirySlack] after it; keys whose time comes at one moment share commits of
// up to 128. When that is, is kept as a time of
// day. A clock that is set forward is followed; one that is set back lengthens nothing.
package local

// For whoever changes this package.
//
// The order of locks is Engine.writing, Engine.mu, then those of mvcc; journal.mu is held alone.
// The writer goroutine owns the journal's file; Engine.mu is never held while it waits
// for the disk.
//
// testdata/v1 and testdata/v1.bak are what format 1 wrote. A change of the format gets the next version, a
// folder of its own there, and goes on reading this one.
