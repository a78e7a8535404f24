package natskv

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/dynmcp/dynmcp/internal/records"
)

// A watch reads the stream through a consumer, which is in the memory of one node and numbers its
// messages. When the node is gone or a number is missing, a new consumer continues after the
// last delivered message. The library's Watch does so as well, but checks its consumer only
// every ten seconds, and silently continues in another stream of the same name.
type watch struct {
	*bucket
	prefix  string
	changed func(records.Record)
	ready   func() // nil after it was called

	created time.Time         // when NATS created the stream
	last    uint64            // every message up to here was delivered
	heard   time.Time         // when there last was a consumer
	short   time.Time         // since when the stream has ended before last, zero if it does not
	list    map[string]uint64 // undelivered subjects of the initial state
	until   uint64            // the initially last message of a record, unknown before the leader answered
}

// errLost means that the changes since the last message are unknown.
var errLost = errors.New("the order of changes is lost")

const (
	unknown = math.MaxUint64

	// heartbeat is the interval of an idle consumer's heartbeats. After two missing ones it is
	// abandoned.
	heartbeat = time.Second
	// idle is the time without messages after which a watch that is not ready checks whether it
	// is complete. Heartbeats of the consumer may be missing for less.
	idle = 5 * heartbeat
	// pause is the shortest time between two consumers; up to half of it is added.
	pause = 200 * time.Millisecond
	// catchUp is how long a stream may end before its delivered messages: a node that has just
	// become the leader may not have read all of it.
	catchUp = 15 * time.Second
)

func (b *bucket) Watch(ctx context.Context, prefix string, changed func(records.Record), ready func()) error {
	if ready == nil {
		ready = func() {}
	}
	w := &watch{bucket: b, prefix: prefix, changed: changed, ready: ready, until: unknown}
	run, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(b.store.ctx, cancel)()
	for {
		err := w.follow(run)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case b.store.ctx.Err() != nil:
			return fmt.Errorf("%w: it was closed", records.ErrUnavailable)
		case errors.Is(err, errLost):
			return fmt.Errorf("bucket %s: %w", b.name, err)
		}
		b.store.log.Debug("a watch goes on with another consumer", "bucket", b.name, "revision", w.last, "err", err)
		select {
		case <-time.After(pause + rand.N(pause/2)):
		case <-run.Done():
		}
	}
}

// follow delivers the messages of one consumer, until it fails.
func (w *watch) follow(ctx context.Context) error {
	// A consumer outlives the connection, and does not repeat messages that were sent just before
	// the loss: a new consumer must.
	ctx, unlink := w.store.linked(ctx)
	defer unlink()
	if err := w.check(ctx); err != nil {
		return err
	}
	messages, err := w.consume(ctx)
	if err != nil {
		return err
	}
	defer messages.Stop()
	w.heard = time.Now()
	defer func() { w.heard = time.Now() }()
	for number := uint64(1); ; {
		wait, cancel := context.WithTimeout(ctx, idle)
		m, err := messages.Next(jetstream.NextContext(wait))
		cancel()
		settled := false
		switch {
		case err == nil:
			if settled, err = w.deliver(ctx, m, number); err != nil {
				return err
			}
			number++
		case !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil:
			return err
		default:
			w.until = unknown // the record may have expired
			settled = true
		}
		if w.ready != nil && settled {
			if err := w.check(ctx); err != nil {
				return err
			}
		}
	}
}

// consume creates a consumer after the last message.
func (w *watch) consume(ctx context.Context) (jetstream.MessagesContext, error) {
	config := jetstream.ConsumerConfig{
		FilterSubject:     w.subject(">"),
		AckPolicy:         jetstream.AckNonePolicy,
		DeliverPolicy:     jetstream.DeliverAllPolicy,
		MemoryStorage:     true,
		Replicas:          1,
		InactiveThreshold: 30 * time.Second,
	}
	if w.last > 0 {
		config.DeliverPolicy, config.OptStartSeq = jetstream.DeliverByStartSequencePolicy, w.last+1
	}
	consumer, err := ask(ctx, w.store, func(ctx context.Context) (jetstream.Consumer, error) {
		return w.store.js.CreateConsumer(ctx, "KV_"+w.name, config)
	})
	if err != nil {
		return nil, err
	}
	return consumer.Messages(jetstream.PullMaxMessages(64), jetstream.PullExpiry(30*time.Second), jetstream.PullHeartbeat(heartbeat))
}

// deliver calls changed for the message with a number, and reports whether the whole initial
// state may have been delivered.
func (w *watch) deliver(ctx context.Context, m jetstream.Msg, number uint64) (settled bool, err error) {
	meta, err := m.Metadata()
	if err != nil {
		return false, err
	}
	if meta.Sequence.Consumer != number {
		return false, fmt.Errorf("got message %d of the consumer, not %d", meta.Sequence.Consumer, number)
	}
	e := records.Record{Key: strings.TrimPrefix(m.Subject(), w.subject("")), Revision: meta.Sequence.Stream, Written: meta.Timestamp}
	if strings.HasPrefix(e.Key, w.prefix) {
		if m.Headers().Get("KV-Operation") == "" { // otherwise it is a deletion
			e.Value, err = w.value(ctx, e.Key, m.Data())
		}
		switch {
		case err == nil:
			w.changed(e)
		case errors.Is(err, records.ErrUnavailable):
			return false, err
		case !errors.Is(err, errNoChunk): // otherwise it was replaced, which is delivered later
			w.store.log.Error("a record cannot be read", "bucket", w.name, "err", err)
		}
	}
	w.last = e.Revision
	delete(w.list, m.Subject())
	return w.last >= w.until && (len(w.list) == 0 || meta.NumPending == 0), nil
}

// check asks the leader whether the stream is still the same one. It calls ready when the whole
// initial state was delivered or has expired. A record that was changed before it was sent is
// delivered with its last change, and the node of the consumer may lag behind the leader.
func (w *watch) check(ctx context.Context) error {
	var opts []jetstream.StreamInfoOpt
	if w.ready != nil {
		opts = append(opts, jetstream.WithSubjectFilter(w.subject(">")))
	}
	info, err := read(ctx, w.store, func(ctx context.Context) (*jetstream.StreamInfo, error) { return w.stream.Info(ctx, opts...) })
	if err != nil {
		return err
	}
	if w.created.IsZero() {
		w.created, w.list = info.Created, info.State.Subjects
	}
	if info.State.LastSeq >= w.last {
		w.short = time.Time{}
	} else if w.short.IsZero() {
		w.short = time.Now()
	}
	switch {
	case !w.created.Equal(info.Created):
		return fmt.Errorf("%w: the bucket was created again", errLost)
	case w.last > 0 && time.Since(w.heard) > remembered/2:
		return fmt.Errorf("%w: it was not reached for %s", errLost, time.Since(w.heard).Truncate(time.Minute))
	case w.short.IsZero():
	case time.Since(w.short) > catchUp:
		return fmt.Errorf("%w: it ends at %d, before %d", errLost, info.State.LastSeq, w.last)
	default:
		return fmt.Errorf("the stream ends at %d, before %d", info.State.LastSeq, w.last)
	}
	if w.ready == nil {
		return nil
	}
	if w.until == unknown {
		if w.until, err = w.lastRecord(ctx); err != nil {
			return err
		}
	}
	maps.DeleteFunc(w.list, func(subject string, _ uint64) bool { return info.State.Subjects[subject] == 0 })
	if len(w.list) == 0 && w.last >= w.until {
		w.ready()
		w.ready = nil
	}
	return nil
}

// lastRecord returns the revision of the last change of any record, 0 if absent.
func (w *watch) lastRecord(ctx context.Context) (uint64, error) {
	m, err := read(ctx, w.store, func(ctx context.Context) (*jetstream.RawStreamMsg, error) {
		return w.stream.GetLastMsgForSubject(ctx, w.subject(">"))
	})
	switch {
	case errors.Is(err, records.ErrNotFound):
		return 0, nil
	case err != nil:
		return unknown, err
	}
	return m.Sequence, nil
}
