package natskv

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/dynmcp/dynmcp/internal/kv"
)

// A watch reads the stream by way of a consumer, which lives in the memory of one node
// and numbers what it sends. When the node is gone, or a number is missing, another
// consumer goes on behind the last message that was told. The library has ordered
// consumers of its own, which wait up to ten seconds before they try again.
type watch struct {
	*bucket
	prefix  string
	changed func(kv.Entry)
	ready   func() // nil when it was called

	made  time.Time       // when NATS made the stream
	last  uint64          // all up to here was told
	heard time.Time       // when the stream was heard of last
	until uint64          // it is ready when this was told, and
	list  map[string]bool // these were, the subjects there were at first
}

// errLost says that what has changed since the last message cannot be known any more.
var errLost = errors.New("the order of changes is lost")

const (
	// heartbeat is how often a consumer that has nothing to tell says so. It is given up
	// after two without a word.
	heartbeat = time.Second
	// pause is how long it takes at least from one consumer to the next, and half as much
	// at most in addition.
	pause = 200 * time.Millisecond
	// forgotten is how long a stream may be shorter than what was told of it: a node that
	// has just become the leader may not have read all of it.
	forgotten = 15 * time.Second
)

// Watch implements kv.Bucket.
func (b *bucket) Watch(ctx context.Context, prefix string, changed func(kv.Entry), ready func()) error {
	if ready == nil {
		ready = func() {}
	}
	w := &watch{bucket: b, prefix: prefix, changed: changed, ready: ready, heard: time.Now()}
	run, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(b.store.ctx, cancel)()
	for {
		err := w.follow(run)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case b.store.ctx.Err() != nil:
			return fmt.Errorf("%w: it was closed", kv.ErrUnavailable)
		case errors.Is(err, errLost):
			return fmt.Errorf("bucket %s: %w", b.name, err)
		}
		b.store.log.Debug("a watch goes on with another consumer", "bucket", b.name, "told", w.last, "err", err)
		select {
		case <-time.After(pause + rand.N(pause/2)):
		case <-run.Done():
		}
	}
}

// follow tells what one consumer sends, until that fails.
func (w *watch) follow(ctx context.Context) error {
	// A consumer outlives the connection, and takes for told what it sent just before that
	// was lost: another one has to send it again.
	ctx, unlink := w.store.linked(ctx)
	defer unlink()
	if err := w.check(ctx); err != nil {
		return err
	}
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
	ask, cancel := w.store.asking(ctx, 2*w.store.opts.answer)
	defer cancel()
	consumer, err := w.store.js.CreateConsumer(ask, "KV_"+w.name, config)
	if err != nil {
		return w.noted(err)
	}
	messages, err := consumer.Messages(jetstream.PullMaxMessages(64), jetstream.PullExpiry(30*time.Second), jetstream.PullHeartbeat(heartbeat))
	if err != nil {
		return err
	}
	defer messages.Stop()
	for number := uint64(1); ; number++ {
		m, err := w.next(ctx, messages)
		if err != nil {
			return err
		}
		meta, err := m.Metadata()
		if err != nil {
			return err
		}
		if meta.Sequence.Consumer != number {
			return fmt.Errorf("got message %d of the consumer, not %d", meta.Sequence.Consumer, number)
		}
		if strings.HasPrefix(m.Subject(), w.subject(w.prefix)) {
			e, err := w.entry(ctx, m.Subject(), meta.Sequence.Stream, meta.Timestamp, m.Headers(), m.Data())
			switch {
			case err == nil:
				w.changed(e)
			case errors.Is(err, kv.ErrUnavailable):
				return err
			case !errors.Is(err, errReplaced): // which is told when it comes
				w.store.log.Error("a record cannot be read", "bucket", w.name, "err", err)
			}
		}
		w.last, w.heard = meta.Sequence.Stream, time.Now()
		delete(w.list, m.Subject())
		if err := w.begun(ctx); err != nil {
			return err
		}
	}
}

// next returns the next message. A consumer that says nothing for a minute but that it
// is there has nothing to tell.
func (w *watch) next(ctx context.Context, messages jetstream.MessagesContext) (jetstream.Msg, error) {
	for {
		wait, cancel := context.WithTimeout(ctx, time.Minute)
		m, err := messages.Next(jetstream.NextContext(wait))
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			return m, err
		}
		if w.store.Connected() {
			w.heard = time.Now()
			if w.ready != nil {
				return nil, errors.New("what there was at first has ended before it was told")
			}
		}
	}
}

// check asks the stream's leader whether it is the stream that was told of, and at first
// what there is to tell before it is ready.
func (w *watch) check(ctx context.Context) error {
	for begin := time.Now(); ; {
		ask, cancel := w.store.asking(ctx, w.store.opts.answer)
		stream, err := w.store.js.Stream(ask, "KV_"+w.name)
		cancel()
		if err != nil {
			return w.noted(err)
		}
		info := stream.CachedInfo()
		silent := time.Since(w.heard)
		switch {
		case w.made.IsZero():
			w.made = info.Created
		case !w.made.Equal(info.Created):
			return fmt.Errorf("%w: the bucket was made anew", errLost)
		case w.last > 0 && silent > remembered/2:
			return fmt.Errorf("%w: it was not reached for %s", errLost, silent.Truncate(time.Minute))
		case info.State.LastSeq < w.last && time.Since(begin) > forgotten:
			return fmt.Errorf("%w: it ends at %d, before %d", errLost, info.State.LastSeq, w.last)
		}
		if info.State.LastSeq >= w.last {
			break
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if w.ready == nil {
		return nil
	}
	if w.list == nil {
		ask, cancel := w.store.asking(ctx, w.store.opts.answer)
		defer cancel()
		info, err := w.stream.Info(ask, jetstream.WithSubjectFilter(w.subject(">")))
		if err != nil {
			return w.noted(err)
		}
		w.list = map[string]bool{}
		for subject := range info.State.Subjects {
			w.list[subject] = true
		}
	}
	last, err := w.bucket.last(ctx, w.subject(">"))
	switch {
	case err == nil:
		w.until = last.Sequence
	case !errors.Is(err, kv.ErrNotFound):
		return err
	}
	return w.begun(ctx)
}

// begun calls ready when what was there at first was told. A record that was changed
// again before it was sent is told when its last change comes, which is behind what was
// the end.
func (w *watch) begun(ctx context.Context) error {
	if w.ready == nil || w.last < w.until {
		return nil
	}
	for subject := range w.list {
		m, err := w.bucket.last(ctx, subject)
		switch {
		case errors.Is(err, kv.ErrNotFound):
			delete(w.list, subject)
		case err != nil:
			return err
		case m.Sequence <= w.last: // it was told
			delete(w.list, subject)
		default:
			w.until = max(w.until, m.Sequence)
		}
	}
	if w.last >= w.until {
		w.ready()
		w.ready = nil
	}
	return nil
}
