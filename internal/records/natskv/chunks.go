package natskv

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/dynmcp/dynmcp/internal/records"
)

// A message has at most 1 MB. A larger value is first stored as a set of chunks with a unique
// name, and then the record is changed to a reference to the set. So a reader gets one value
// or another, and the record's compare-and-set applies to the value. The library's object
// store cannot do that (jetstream/object.go): its objects have no time to live, it keeps a record of
// each deleted one for ever, and it reads from one node, which may lack some chunks so far.
//
// Chunks have the time to live of their record plus an hour. A set stays for ever if its writer
// died before it changed a record without a time to live.

// reference is the prefix of a record with chunks. A value that begins with it by chance is
// stored in chunks too.
const reference = "dynmcp chunks: "

// errNoChunk means that a chunk of a value is missing: the record was replaced meanwhile, or is
// broken.
var errNoChunk = errors.New("a chunk of the value is missing")

func (b *bucket) chunkSubject(chunk string) string { return "$KV." + b.name + "_parts." + chunk }

// chunkSize is the largest size of our messages. The leader answers with the bytes in base64,
// which must fit into one message too.
func (b *bucket) chunkSize() int {
	const most = 512 << 10
	return min(most, cmp.Or(int(b.store.conn.MaxPayload())/2, most))
}

func (b *bucket) needsChunks(value []byte) bool {
	return len(value) > b.chunkSize() || bytes.HasPrefix(value, []byte(reference))
}

// split stores a value in chunks and returns the reference and the name of the set.
func (w writer) split(ctx context.Context, value []byte) (ref []byte, set string, err error) {
	set = rand.Text()
	ttl := w.ttl
	if ttl > 0 {
		ttl += time.Hour
	}
	n := 0
	for chunk := range slices.Chunk(value, w.chunkSize()) {
		_, err := ask(ctx, w.store, func(ctx context.Context) (uint64, error) {
			return w.publish(ctx, w.chunkSubject(fmt.Sprint(set, ".", n)), chunk, ttl)
		})
		if err != nil {
			w.drop(ctx, set)
			return nil, "", err
		}
		n++
	}
	return fmt.Appendf(nil, "%s%s %d %d", reference, set, n, len(value)), set, nil
}

// value returns the value of a record: the data of its message, or the content of its chunks.
// The error is errNoChunk if one is missing.
func (b *bucket) value(ctx context.Context, key string, data []byte) ([]byte, error) {
	ref, chunked := bytes.CutPrefix(data, []byte(reference))
	if !chunked {
		b.note(key, "")
		return append([]byte{}, data...), nil
	}
	var set string
	var n, size int
	if _, err := fmt.Sscanf(string(ref), "%s %d %d", &set, &n, &size); err != nil || size < 0 || size > records.MaxValue {
		return nil, fmt.Errorf("the record %s has a reference to no chunks: %q", key, ref)
	}
	value := make([]byte, 0, size)
	for i := range n {
		m, err := read(ctx, b.store, func(ctx context.Context) (*jetstream.RawStreamMsg, error) {
			return b.stream.GetLastMsgForSubject(ctx, b.chunkSubject(fmt.Sprint(set, ".", i)))
		})
		if errors.Is(err, records.ErrNotFound) {
			return nil, fmt.Errorf("the record %s: %w", key, errNoChunk)
		}
		if err != nil {
			return nil, err
		}
		value = append(value, m.Data...)
	}
	if len(value) != size {
		return nil, fmt.Errorf("the value of %s has %d bytes in its chunks, not %d", key, len(value), size)
	}
	b.note(key, set)
	return value, nil
}

// note records the set of chunks of a record, "" for none, and returns the previous one.
func (b *bucket) note(key, set string) (before string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before = b.chunks[key]
	if set == "" {
		delete(b.chunks, key)
	} else {
		b.chunks[key] = set
	}
	return before
}

// drop removes a set of chunks if possible; "" is no set.
func (b *bucket) drop(ctx context.Context, set string) {
	if set == "" {
		return
	}
	_, err := ask(ctx, b.store, func(ctx context.Context) (any, error) {
		return nil, b.stream.Purge(ctx, jetstream.WithPurgeSubject(b.chunkSubject(set+".>")))
	})
	if err != nil {
		b.store.log.Debug("the chunks of an older value stay", "bucket", b.name, "err", err)
	}
}
