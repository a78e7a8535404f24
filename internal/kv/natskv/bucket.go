package natskv

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/dynmcp/dynmcp/internal/kv"
)

// A bucket is a stream in which each subject, a record, has one message.
type bucket struct {
	store    *Store
	name     string // in NATS
	stream   jetstream.Stream
	replicas atomic.Int64
	missing  atomic.Bool // NATS has said that there is no such stream

	mu    sync.Mutex
	parts map[string]string // the set of parts that the value of a record is known to have, by key
}

func (b *bucket) subject(key string) string { return "$KV." + b.name + "." + key }

// Headers of messages.
const (
	operation    = "KV-Operation" // of a deletion, as NATS' own tools write it
	expectedLast = jetstream.ExpectedLastSubjSeqHeader
	timeToLive   = jetstream.MsgTTLHeader
	partsHeader  = "Dynmcp-Parts" // of a record with a large value
)

// Get implements kv.Bucket.
func (b *bucket) Get(ctx context.Context, key string) (kv.Entry, error) {
	if err := kv.Check(key, nil); err != nil {
		return kv.Entry{}, err
	}
	for {
		m, err := b.last(ctx, b.subject(key))
		if err != nil {
			return kv.Entry{}, err
		}
		e, err := b.entry(ctx, m.Subject, m.Sequence, m.Time, m.Header, m.Data)
		switch {
		case errors.Is(err, errReplaced):
			continue
		case err == nil && e.Value == nil:
			return kv.Entry{}, kv.ErrNotFound
		}
		return e, err
	}
}

// last returns the last message of a subject.
func (b *bucket) last(ctx context.Context, subject string) (*jetstream.RawStreamMsg, error) {
	ctx, cancel := b.store.asking(ctx, b.store.opts.answer)
	defer cancel()
	asked := time.Now()
	m, err := b.stream.GetLastMsgForSubject(ctx, subject)
	return m, b.noted(b.store.answered(err, asked))
}

// noted is failure, for what a stream was asked: if there is none it is made again.
func (b *bucket) noted(err error) error {
	if errors.Is(err, jetstream.ErrStreamNotFound) || errors.Is(err, jetstream.ErrNoStreamResponse) {
		b.missing.Store(true)
	}
	return failure(err)
}

// entry returns the entry that a message is.
func (b *bucket) entry(ctx context.Context, subject string, revision uint64, written time.Time, header nats.Header, data []byte) (kv.Entry, error) {
	e := kv.Entry{Key: strings.TrimPrefix(subject, b.subject("")), Value: data, Revision: revision, Written: written}
	parts := header.Get(partsHeader)
	switch {
	case header.Get(operation) != "":
		e.Value = nil
	case parts != "":
		value, err := b.join(ctx, e.Key, revision, parts)
		if err != nil {
			return kv.Entry{}, err
		}
		e.Value = value
	case e.Value == nil:
		e.Value = []byte{}
	}
	set, _, _ := strings.Cut(parts, " ")
	b.note(e.Key, set)
	return e, nil
}

// note notes which parts a record has, none for "", and returns those it had before.
func (b *bucket) note(key, set string) (before string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before = b.parts[key]
	if set == "" {
		delete(b.parts, key)
	} else {
		b.parts[key] = set
	}
	return before
}

// A writer is a bucket with how long what is written by way of it lasts: 0 is for ever.
// NATS removes the records by itself. Of a large value that is the record, and sweep removes
// the parts.
type writer struct {
	*bucket
	lasts time.Duration
}

// For implements kv.Bucket.
func (w writer) For(lasts time.Duration) kv.Bucket { return writer{w.bucket, lasts} }

// Put implements kv.Bucket.
func (w writer) Put(ctx context.Context, key string, value []byte) (uint64, error) {
	return w.set(ctx, key, value, "")
}

// Create implements kv.Bucket. The deletion of a record is a message of it as well: it
// is what is replaced then.
func (w writer) Create(ctx context.Context, key string, value []byte) (uint64, error) {
	at := "0"
	for {
		revision, err := w.set(ctx, key, value, at)
		if !errors.Is(err, kv.ErrConflict) {
			return revision, err
		}
		m, err := w.last(ctx, w.subject(key))
		next := "0"
		switch {
		case errors.Is(err, kv.ErrNotFound): // its deletion was forgotten just now
		case err != nil:
			return 0, err
		case m.Header.Get(operation) == "":
			return 0, kv.ErrConflict
		default:
			next = strconv.FormatUint(m.Sequence, 10)
		}
		if next == at {
			return 0, kv.ErrConflict // another change is being made
		}
		at = next
	}
}

// Update implements kv.Bucket.
func (w writer) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	if revision == 0 {
		return 0, kv.ErrConflict // it would make the record
	}
	return w.set(ctx, key, value, strconv.FormatUint(revision, 10))
}

// set makes a value that of a record whose last message is that of a number, or any if
// it is "".
func (w writer) set(ctx context.Context, key string, value []byte, at string) (uint64, error) {
	if err := kv.Check(key, value); err != nil {
		return 0, err
	}
	m := nats.NewMsg(w.subject(key))
	m.Data = value
	set := ""
	if len(value) > w.partSize() {
		var err error
		if set, err = w.split(ctx, key, value); err != nil {
			return 0, err
		}
		m.Data = nil
		m.Header.Set(partsHeader, fmt.Sprint(set, " ", len(value)))
	}
	if w.lasts > 0 {
		m.Header.Set(timeToLive, max(w.lasts, time.Second).String()) // no less is taken
	}
	revision, err := w.publish(ctx, m, at)
	if err == nil {
		w.drop(ctx, w.note(key, set))
	} else if errors.Is(err, kv.ErrConflict) {
		w.drop(ctx, set) // and else it may have been made
	}
	return revision, err
}

// Delete implements kv.Bucket.
func (b *bucket) Delete(ctx context.Context, key string, revision uint64) error {
	if err := kv.Check(key, nil); err != nil {
		return err
	}
	m := nats.NewMsg(b.subject(key))
	m.Header.Set(operation, "DEL")
	m.Header.Set(timeToLive, remembered.String())
	at := ""
	if revision != 0 {
		at = strconv.FormatUint(revision, 10)
	}
	_, err := b.publish(ctx, m, at)
	if err == nil {
		b.drop(ctx, b.note(key, ""))
	}
	return err
}

// publish adds a message to the stream, if the last one of its subject is that of a
// number, 0 for none, or of any if at is "".
func (b *bucket) publish(ctx context.Context, m *nats.Msg, at string) (revision uint64, err error) {
	ctx, cancel := b.store.asking(ctx, b.store.opts.answer)
	defer cancel()
	if at != "" {
		m.Header.Set(expectedLast, at)
	}
	asked := time.Now()
	ack, err := b.store.js.PublishMsg(ctx, m)
	if err != nil {
		return 0, b.noted(b.store.answered(err, asked))
	}
	return ack.Sequence, nil
}
