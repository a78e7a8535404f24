package natskv

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/dynmcp/dynmcp/internal/records"
)

// nodes is the number of nodes that store a bucket: one of them may be lost.
const nodes = 3

// remembered is how long the deletion of a record is kept for watches.
const remembered = 7 * 24 * time.Hour

// A bucket is a key-value bucket of the library. Its methods are bypassed where those of v1.55.0 do less
// than records.Bucket promises: CreateKeyValue lets any node answer Get; Put and Update accept no
// time to live; Watch omits present records that change before they are sent, and takes up to
// twenty seconds to detect that the node of its consumer is gone.
type bucket struct {
	store    *Store
	name     string // in NATS
	stream   jetstream.Stream
	keyValue jetstream.KeyValue

	mu     sync.Mutex
	chunks map[string]string // the set of chunks of a record's value, as far as known, by key
}

func (b *bucket) subject(key string) string { return "$KV." + b.name + "." + key }

// config is the config of the library's CreateKeyValue except for three fields.
func (b *bucket) config(replicas int) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:        "KV_" + b.name,
		Description: "state that replicas of dynmcp share",
		// Chunks of large values have subjects of their own, so that a watch of the
		// records does not receive them.
		Subjects:          []string{b.subject(">"), b.chunkSubject(">")},
		MaxMsgsPerSubject: 1,
		Discard:           jetstream.DiscardNew,
		DenyDelete:        true,
		AllowRollup:       true,
		// Records expire without a marker: watches are not notified.
		AllowMsgTTL: true,
		// The leader answers reads. With direct gets, a node that lacks the last change may
		// answer.
		AllowDirect: false,
		Storage:     jetstream.FileStorage,
		Replicas:    replicas,
	}
}

// ensure creates the stream of the bucket if absent, on three nodes if possible, or else on
// one. A stream on fewer nodes is moved to three if possible.
func (b *bucket) ensure(ctx context.Context) (created bool, err error) {
	// Creating a stream on three nodes waits for the election of its leader.
	ctx, cancel := b.store.asking(ctx, 5*b.store.opts.answer)
	defer cancel()
	js := b.store.js
	stream, err := js.Stream(ctx, "KV_"+b.name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return b.create(ctx)
	}
	if err != nil {
		return false, failure(err)
	}
	c := stream.CachedInfo().Config
	switch {
	case c.AllowDirect, !c.AllowMsgTTL, !c.AllowRollup, c.MaxMsgsPerSubject != 1, !slices.Equal(c.Subjects, b.config(0).Subjects):
		return false, fmt.Errorf("the stream %s in NATS has another layout: this dynmcp has not created it, and does not use it", c.Name)
	case c.Replicas >= nodes, b.store.conn.ConnectedClusterName() == "":
		return false, nil
	}
	c.Replicas = nodes
	if _, err = js.UpdateStream(ctx, c); err != nil {
		b.store.log.Debug("a bucket stays on fewer nodes", "bucket", b.name, "err", err)
	} else {
		b.store.log.Info("a bucket is kept on more nodes now", "bucket", b.name, "nodes", nodes)
	}
	return false, nil
}

// create creates the stream, on one node if there are too few. created is false if another replica
// was faster.
func (b *bucket) create(ctx context.Context) (created bool, err error) {
	if _, err = b.store.js.CreateStream(ctx, b.config(nodes)); tooFewNodes(err) {
		_, err = b.store.js.CreateStream(ctx, b.config(1))
	}
	if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		return false, nil
	}
	return err == nil, failure(err)
}

// bind makes the bucket ready for use.
func (b *bucket) bind(ctx context.Context) error {
	if _, err := b.ensure(ctx); err != nil {
		return err
	}
	var err error
	b.stream, err = read(ctx, b.store, func(ctx context.Context) (jetstream.Stream, error) { return b.store.js.Stream(ctx, "KV_"+b.name) })
	if err == nil {
		b.keyValue, err = read(ctx, b.store, func(ctx context.Context) (jetstream.KeyValue, error) { return b.store.js.KeyValue(ctx, b.name) })
	}
	return err
}

func (b *bucket) Get(ctx context.Context, key string) (records.Record, error) {
	if err := records.Check(key, nil); err != nil {
		return records.Record{}, err
	}
	for before := uint64(0); ; {
		record, err := read(ctx, b.store, func(ctx context.Context) (jetstream.KeyValueEntry, error) { return b.keyValue.Get(ctx, key) })
		if err != nil {
			return records.Record{}, err
		}
		e := records.Record{Key: key, Revision: record.Revision(), Written: record.Created()}
		e.Value, err = b.value(ctx, key, record.Value())
		if !errors.Is(err, errNoChunk) || e.Revision == before {
			return e, err
		}
		before = e.Revision // the record was replaced during the read, unless its revision is the same again
	}
}

// A writer is a bucket with the time to live of records written through it, 0 for none.
type writer struct {
	*bucket
	ttl time.Duration
}

// WithTTL implements records.Bucket. The shortest time to live of NATS is a second.
func (w writer) WithTTL(ttl time.Duration) records.Bucket {
	return writer{w.bucket, max(ttl, time.Second)}
}

func (w writer) Create(ctx context.Context, key string, value []byte) (uint64, error) {
	return w.write(ctx, key, value, func(ctx context.Context, data []byte) (uint64, error) {
		return w.keyValue.Create(ctx, key, data, jetstream.KeyTTL(w.ttl))
	})
}

func (w writer) Put(ctx context.Context, key string, value []byte) (uint64, error) {
	return w.write(ctx, key, value, func(ctx context.Context, data []byte) (uint64, error) {
		return w.publish(ctx, w.subject(key), data, w.ttl)
	})
}

func (w writer) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	if revision == 0 {
		return 0, records.ErrConflict // revision 0 would create the record
	}
	return w.write(ctx, key, value, func(ctx context.Context, data []byte) (uint64, error) {
		return w.publish(ctx, w.subject(key), data, w.ttl, jetstream.WithExpectLastSequencePerSubject(revision))
	})
}

// write makes store write a value, after storing it in chunks if it is large. The chunks of the
// previous value are removed.
func (w writer) write(ctx context.Context, key string, value []byte, store func(context.Context, []byte) (uint64, error)) (revision uint64, err error) {
	if err := records.Check(key, value); err != nil {
		return 0, err
	}
	set := ""
	if w.needsChunks(value) {
		if value, set, err = w.split(ctx, value); err != nil {
			return 0, err
		}
	}
	revision, err = ask(ctx, w.store, func(ctx context.Context) (uint64, error) { return store(ctx, value) })
	if err == nil {
		w.drop(ctx, w.note(key, set))
	} else if !errors.Is(err, records.ErrUnavailable) { // otherwise it may have been written
		w.drop(ctx, set)
	}
	return revision, err
}

// publish adds a message to the stream.
func (b *bucket) publish(ctx context.Context, subject string, data []byte, ttl time.Duration, opts ...jetstream.PublishOpt) (uint64, error) {
	if ttl > 0 {
		opts = append(opts, jetstream.WithMsgTTL(ttl))
	}
	ack, err := b.store.js.PublishMsg(ctx, &nats.Msg{Subject: subject, Data: data}, opts...)
	if err != nil {
		return 0, err
	}
	return ack.Sequence, nil
}

func (b *bucket) Delete(ctx context.Context, key string, revision uint64) error {
	if err := records.Check(key, nil); err != nil {
		return err
	}
	_, err := ask(ctx, b.store, func(ctx context.Context) (any, error) {
		return nil, b.keyValue.Purge(ctx, key, jetstream.PurgeTTL(remembered), jetstream.LastRevision(revision))
	})
	if err == nil {
		b.drop(ctx, b.note(key, ""))
	}
	return err
}
