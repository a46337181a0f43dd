package local

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"maps"
	"slices"
	"time"
	"unique"

	"github.com/pawl-dev/pawl/kv"
)

const (
	snapshotMagic     = "pawl snp"
	backupMagic       = "pawl bak"
	snapshotHeadBytes = 48
	blockBytes        = 12       // the head of a block
	blockTarget       = 64 << 10 // a block is ended when its payload reaches this
	blockMax          = 64 << 20 // and never longer: one version, and the tables, are less
)

// The kinds of block.
const (
	tablesBlock   = 1 + iota // the last change to each table
	versionsBlock            // versions in key order
	lastBlock                // how many versions there were
	aboutBlock               // of a backup: where it is from, and what goes with it
)

// A snapshotHead is the head of a snapshot file.
type snapshotHead struct {
	rev   kv.Revision
	time  time.Time   // of the last commit at rev
	floor kv.Revision // no older revision may be read
}

func (h snapshotHead) append(b []byte, magic string) []byte {
	head := len(b)
	b = append(b, magic...)
	b = le.AppendUint32(b, formatVersion)
	b = le.AppendUint32(b, 0)
	b = le.AppendUint64(b, uint64(h.rev))
	b = le.AppendUint64(b, uint64(h.time.UnixNano()))
	b = le.AppendUint64(b, uint64(h.floor))
	b = le.AppendUint64(b, 0) // room
	le.PutUint32(b[head+12:], headerSum(b[head:]))
	return b
}

// parseSnapshotHead returns the head of a file of that magic, or what is wrong with it.
func parseSnapshotHead(b []byte, magic string) (h snapshotHead, problem string) {
	switch {
	case len(b) < snapshotHeadBytes || string(b[:8]) != magic:
		return h, "this is not the head of a " + map[string]string{snapshotMagic: "snapshot", backupMagic: "backup"}[magic]
	case le.Uint32(b[8:]) > formatVersion:
		return h, fmt.Sprintf("format %d was written by a newer pawl, which can open it; this one knows up to %d", le.Uint32(b[8:]), formatVersion)
	case headerSum(b[:snapshotHeadBytes]) != le.Uint32(b[12:]):
		return h, "the head's checksum is wrong"
	}
	h.rev = kv.Revision(le.Uint64(b[16:]))
	h.time = time.Unix(0, int64(le.Uint64(b[24:]))).UTC()
	h.floor = kv.Revision(le.Uint64(b[32:]))
	return h, ""
}

// A blockWriter writes the blocks of a snapshot.
type blockWriter struct {
	out     io.Writer
	ordinal uint32
	buf     []byte
	authors map[unique.Handle[kv.Author]]int // of this block
}

func (w *blockWriter) begin(kind byte) {
	w.buf = append(w.buf[:0], make([]byte, blockBytes)...)
	w.buf = append(w.buf, kind)
	w.authors = map[unique.Handle[kv.Author]]int{}
}

func (w *blockWriter) end() error {
	le.PutUint32(w.buf, uint32(len(w.buf)-blockBytes))
	le.PutUint32(w.buf[8:], w.ordinal)
	le.PutUint32(w.buf[4:], frameSum(w.buf))
	w.ordinal++
	_, err := w.out.Write(w.buf)
	return err
}

// version appends v. Its author is written out once per block.
func (w *blockWriter) version(v *kv.Version) {
	b := appendString(w.buf, v.Key)
	b = binary.AppendUvarint(b, uint64(v.Revision))
	b = binary.AppendUvarint(b, uint64(v.Created))
	b = binary.AppendVarint(b, int64(v.Time))
	n, known := w.authors[v.Author]
	if !known {
		n = len(w.authors)
		w.authors[v.Author] = n
	}
	b = binary.AppendUvarint(b, uint64(n))
	if !known {
		b = appendAuthor(b, v.By())
	}
	if v.Expires.IsZero() {
		b = append(b, 0)
	} else {
		b = binary.AppendVarint(append(b, expiresFlag), int64(v.Expires))
	}
	w.buf = appendString(b, v.Value)
}

// An image is what a snapshot or a backup holds.
type image struct {
	head     snapshotHead
	about    *About // of a backup
	tables   map[string]kv.Revision
	versions iter.Seq[*kv.Version] // in key order
}

// write writes m to out. Before each block of versions it calls between with how many it
// has written so far, and gives up if that fails.
func (m image) write(out io.Writer, between func(count int) error) error {
	magic := snapshotMagic
	if m.about != nil {
		magic = backupMagic
	}
	if _, err := out.Write(m.head.append(nil, magic)); err != nil {
		return err
	}
	w := &blockWriter{out: out}
	if m.about != nil {
		w.begin(aboutBlock)
		w.buf = m.about.append(w.buf)
		if err := w.end(); err != nil {
			return err
		}
	}
	w.begin(tablesBlock)
	w.buf = binary.AppendUvarint(w.buf, uint64(len(m.tables)))
	for _, name := range slices.Sorted(maps.Keys(m.tables)) {
		w.buf = appendString(w.buf, name)
		w.buf = binary.AppendUvarint(w.buf, uint64(m.tables[name]))
	}
	if err := w.end(); err != nil {
		return err
	}
	count, err := w.versions(m.versions, between)
	if err != nil {
		return err
	}
	w.begin(lastBlock)
	w.buf = binary.AppendUvarint(w.buf, uint64(count))
	return w.end()
}

// versions writes the blocks of versions, and returns how many there were.
func (w *blockWriter) versions(all iter.Seq[*kv.Version], between func(count int) error) (count int, err error) {
	for v := range all {
		if len(w.buf) >= blockTarget || count == 0 {
			if count > 0 {
				if err := w.end(); err != nil {
					return count, err
				}
			}
			if err := between(count); err != nil {
				return count, err
			}
			w.begin(versionsBlock)
		}
		w.version(v)
		count++
	}
	if count > 0 {
		err = w.end()
	}
	return count, err
}

var errStopped = errors.New("stopped")

// A snapshotReader reads a snapshot or a backup.
type snapshotReader struct {
	name   string
	advice string // what can be done about damage
	in     *bufio.Reader
	left   int64 // bytes that may follow
	offset int64
	head   snapshotHead
	about  *About // of a backup
	tables map[string]kv.Revision
	blocks uint32
	buf    []byte
	begun  func(size int) // if set, versions are parts of what was read, and this is told of each such part
	fields reader
	err    error
}

// snapshotAdvice is what can be done about a damaged snapshot. A base is one that history begins with.
func snapshotAdvice(base, later bool) string {
	switch {
	case !base:
		return "move it away: the log holds what it shows"
	case later:
		return "move it away to open the store from the next snapshot, with less history, or restore the folder from a backup"
	}
	return "restore the folder from a backup: nothing else holds what it held"
}

// newSnapshotReader reads the head and the tables of a snapshot of that size.
func newSnapshotReader(name string, in io.Reader, size int64) (*snapshotReader, error) {
	return newReader(name, in, size, snapshotMagic, snapshotAdvice(false, false))
}

// newReader reads what comes before the versions.
func newReader(name string, in io.Reader, size int64, magic, advice string) (*snapshotReader, error) {
	r := &snapshotReader{name: name, advice: advice, in: bufio.NewReaderSize(in, 256<<10), left: size, fields: reader{authors: &authors{}}}
	b := make([]byte, snapshotHeadBytes)
	n, err := io.ReadFull(r.in, b)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	head, problem := parseSnapshotHead(b[:n], magic)
	if problem != "" {
		return nil, r.damage(problem)
	}
	r.head = head
	r.left -= snapshotHeadBytes
	r.offset = snapshotHeadBytes
	if magic == backupMagic {
		if err := r.readAbout(); err != nil {
			return nil, err
		}
	}
	return r, r.readTables()
}

func (r *snapshotReader) readTables() error {
	fields, err := r.block(tablesBlock)
	if err != nil {
		return err
	}
	fields.byte()
	r.tables = map[string]kv.Revision{}
	for range fields.count() {
		name := string(fields.bytes())
		r.tables[name] = fields.revision()
	}
	return r.check(fields, len(fields.rest) > 0)
}

func (r *snapshotReader) damage(what string) error {
	return &DamageError{r.name, r.offset, what, r.advice}
}

// fits returns an error unless the snapshot shows the revision in its name.
func (r *snapshotReader) fits(rev kv.Revision) error {
	if r.head.rev != rev {
		return &DamageError{r.name, 0, "its name does not fit its head", r.advice}
	}
	return nil
}

// check returns the error of a block whose fields have been read.
func (r *snapshotReader) check(fields *reader, surplus bool) error {
	switch {
	case fields.err != nil:
		return r.damage("a block " + fields.err.Error())
	case surplus:
		return r.damage("a block holds more than it should")
	}
	return nil
}

// block reads the next block, which must be of one of kinds; the kind is its first byte.
func (r *snapshotReader) block(kinds ...byte) (*reader, error) {
	if r.left < blockBytes {
		return nil, r.damage("it ends too early")
	}
	var head [blockBytes]byte
	if err := r.fill(head[:]); err != nil {
		return nil, err
	}
	n := int64(le.Uint32(head[:]))
	if n == 0 || n > r.left-blockBytes || n > blockMax {
		return nil, r.damage("a block's length is wrong")
	}
	if r.begun == nil {
		r.buf = slices.Grow(r.buf[:0], int(n))[:n]
	} else {
		r.buf = make([]byte, n)
		r.begun(int(n))
	}
	if err := r.fill(r.buf); err != nil {
		return nil, err
	}
	sum := crc32.Update(crc32.Checksum(head[:4], castagnoli), castagnoli, head[8:])
	switch {
	case crc32.Update(sum, castagnoli, r.buf) != le.Uint32(head[4:]):
		return nil, r.damage("a block's checksum is wrong")
	case le.Uint32(head[8:]) != r.blocks:
		return nil, r.damage("a block is missing or out of place")
	case !slices.Contains(kinds, r.buf[0]):
		return nil, r.damage("a block is of the wrong kind")
	}
	r.blocks++
	r.left -= blockBytes + n
	r.offset += blockBytes + n
	r.fields.rest, r.fields.err, r.fields.shared = r.buf, nil, r.begun != nil
	return &r.fields, nil
}

// fill reads exactly as much as b holds.
func (r *snapshotReader) fill(b []byte) error {
	switch _, err := io.ReadFull(r.in, b); {
	case err == io.EOF || err == io.ErrUnexpectedEOF:
		return r.damage("it ends too early")
	case err != nil:
		return fmt.Errorf("read %s: %w", r.name, err)
	}
	return nil
}

// end returns an error unless the last block held just that, and nothing follows.
func (r *snapshotReader) end(fields *reader, wrong bool) error {
	_, err := r.in.ReadByte()
	if err != nil && err != io.EOF {
		return fmt.Errorf("read %s: %w", r.name, err)
	}
	return r.check(fields, wrong || len(fields.rest) > 0 || err == nil)
}

// versions yields the versions in key order. Afterwards err says whether they were all.
func (r *snapshotReader) versions() iter.Seq[*kv.Version] {
	return func(yield func(*kv.Version) bool) {
		var count uint64
		var last string
		for {
			fields, err := r.block(versionsBlock, lastBlock)
			if err != nil {
				r.err = err
				return
			}
			if fields.byte() == lastBlock {
				wrong := fields.uvarint() != count
				r.err = r.end(fields, wrong)
				return
			}
			var authors []unique.Handle[kv.Author]
			for len(fields.rest) > 0 {
				var v *kv.Version
				v, authors = r.version(fields, authors)
				if v != nil && v.Key <= last {
					fields.fail("has keys out of order")
				}
				if fields.err != nil {
					break
				}
				if !yield(v) {
					return
				}
				last = v.Key
				count++
			}
			if r.err = r.check(fields, len(fields.rest) > 0); r.err != nil {
				return
			}
		}
	}
}

// version reads one version; authors are those named in this block so far.
func (r *snapshotReader) version(fields *reader, authors []unique.Handle[kv.Author]) (*kv.Version, []unique.Handle[kv.Author]) {
	v := &kv.Version{Key: fields.key(), Revision: fields.revision(), Created: fields.revision(), Time: kv.InstantOf(fields.time())}
	switch n := fields.uvarint(); {
	case n < uint64(len(authors)):
		v.Author = authors[n]
	case n == uint64(len(authors)):
		v.Author = fields.author()
		authors = append(authors, v.Author)
	default:
		fields.fail("names an author that it does not hold")
	}
	switch fields.byte() {
	case 0:
	case expiresFlag:
		v.Expires = kv.InstantOf(fields.time())
	default:
		fields.fail("holds a version with flags that this version does not know")
	}
	v.Value = fields.value()
	switch problem := kv.CheckKey(v.Key); {
	case fields.err != nil:
		return nil, authors
	case problem != "":
		fields.fail("holds a bad key: " + problem)
	case v.Created > v.Revision || v.Revision > r.head.rev:
		fields.fail("holds a version from the future")
	}
	return v, authors
}
