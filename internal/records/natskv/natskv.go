// Package natskv is a [records.Store] on NATS JetStream. Each bucket is a key-value bucket, visible
// to all tools of NATS, that a majority of three nodes keeps. No other package knows NATS.
//
//	bucket.go  a bucket and its records, one at a time
//	chunks.go  values that are larger than a message may be
//	watch.go   all changes, in their order
//	errors.go  what errors of NATS mean
package natskv

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/dynmcp/dynmcp/internal/records"
)

// StoreOptions locate the state.
type StoreOptions struct {
	URLs   []string     // nats://HOST:PORT or tls://HOST:PORT; other nodes are discovered
	Creds  string       // the path of a file of credentials, "" for none
	CA     string       // the path of a file of authorities for the nodes' certificates (PEM), "" for the system's
	Name   string       // of this connection, as NATS shows it
	Logger *slog.Logger // nil is silent

	answer time.Duration // time limit of an answer; 0 is 2 s
	retry  time.Duration // interval of attempts to move a bucket to more nodes; 0 is 10 s
}

// A Store is a connection to NATS. It reconnects without a time limit, to any node that can be
// reached.
type Store struct {
	opts StoreOptions
	log  *slog.Logger
	conn *nats.Conn
	js   jetstream.JetStream

	ctx  context.Context // ends with Close
	end  context.CancelFunc
	done chan struct{} // closed when maintain has returned

	denied atomic.Pointer[denial]

	mu        sync.Mutex
	buckets   map[string]*bucket
	connected func(bool)
	reported  bool            // last argument of connected
	link      context.Context // ends when the connection is lost
	cut       context.CancelFunc
}

// Open returns the store of a NATS cluster, whether or not it can be reached now. It is an error
// if the options are invalid.
func Open(opts StoreOptions) (*Store, error) {
	s := &Store{opts: opts, log: cmp.Or(opts.Logger, slog.New(slog.DiscardHandler)), done: make(chan struct{}), buckets: map[string]*bucket{}}
	s.opts.answer = cmp.Or(opts.answer, 2*time.Second)
	s.opts.retry = cmp.Or(opts.retry, 10*time.Second)
	s.ctx, s.end = context.WithCancel(context.Background())
	s.link, s.cut = context.WithCancel(s.ctx)
	var err error
	if s.conn, err = nats.Connect(strings.Join(opts.URLs, ","), s.connectOptions()...); err != nil {
		s.end()
		return nil, fmt.Errorf("nats: %w", err)
	}
	if s.js, err = jetstream.New(s.conn); err != nil {
		s.conn.Close()
		s.end()
		return nil, fmt.Errorf("nats: %w", err)
	}
	go s.maintain()
	return s, nil
}

// connectOptions returns the options of the connection, including its reconnect policy.
func (s *Store) connectOptions() []nats.Option {
	up := func(c *nats.Conn) { s.report(true, c.ConnectedUrlRedacted(), nil) }
	to := []nats.Option{
		nats.Name(s.opts.Name),
		nats.Timeout(s.opts.answer),
		// A node that silently disappeared is abandoned after three seconds.
		nats.PingInterval(time.Second),
		nats.MaxPingsOutstanding(2),
		// Reconnect without a limit, even after a node has refused the credentials twice: they
		// may not have reached it yet.
		nats.RetryOnFailedConnect(true),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(100 * time.Millisecond),
		nats.ReconnectJitter(100*time.Millisecond, 100*time.Millisecond),
		nats.IgnoreAuthErrorAbort(),
		// Requests that cannot be sent now fail: nobody expects them to be sent later.
		nats.ReconnectBufSize(-1),
		nats.ConnectHandler(up),
		nats.ReconnectHandler(up),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { s.report(false, "", err) }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			s.log.Debug("nats", "err", err)
			if errors.Is(err, nats.ErrPermissionViolation) {
				s.denied.Store(&denial{err, time.Now()})
			}
		}),
	}
	if s.opts.Creds != "" {
		to = append(to, credentials(s.opts.Creds))
	}
	if s.opts.CA != "" {
		to = append(to, authorities(s.opts.CA))
	}
	return to
}

// report reports a change of the connection. NATS calls it from one goroutine.
func (s *Store) report(connected bool, node string, err error) {
	s.mu.Lock()
	same := s.reported == connected
	s.reported = connected
	f := s.connected
	if !connected {
		s.cut()
		s.link, s.cut = context.WithCancel(s.ctx)
	}
	s.mu.Unlock()
	switch {
	case s.ctx.Err() != nil: // closed
	case connected:
		s.log.Info("connected to NATS", "node", node)
	case !same:
		s.log.Warn("the connection to NATS is lost; it is being made again", "err", err)
	}
	if f != nil && !same {
		f(connected)
	}
}

// asking returns a context for a request to NATS. It ends after the time limit, and when the
// connection for the answer is lost, for which the library would wait until the limit.
func (s *Store) asking(ctx context.Context, most time.Duration) (context.Context, context.CancelFunc) {
	ctx, unlink := s.linked(ctx)
	ctx, cancel := context.WithTimeout(ctx, most)
	return ctx, func() { cancel(); unlink() }
}

// linked returns a context that ends when the present connection is lost.
func (s *Store) linked(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	s.mu.Lock()
	link := s.link
	s.mu.Unlock()
	stop := context.AfterFunc(link, cancel)
	return ctx, func() { stop(); cancel() }
}

func (s *Store) OnConnected(f func(connected bool)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connected = f
}

// Connected reports whether there is a connection to a node.
func (s *Store) Connected() bool { return s.conn.IsConnected() }

// Close ends the connection and all watches.
func (s *Store) Close() error {
	s.end()
	<-s.done
	s.conn.Close()
	return nil
}

// Bucket returns a bucket, which is created if absent.
func (s *Store) Bucket(ctx context.Context, name string) (records.Bucket, error) {
	s.mu.Lock()
	b := s.buckets[name]
	s.mu.Unlock()
	if b == nil {
		b = &bucket{store: s, name: "dynmcp_" + name, chunks: map[string]string{}}
		if err := b.bind(ctx); err != nil {
			return nil, fmt.Errorf("bucket %s: %w", name, err)
		}
		s.mu.Lock()
		b = cmp.Or(s.buckets[name], b) // another call may have been faster
		s.buckets[name] = b
		s.mu.Unlock()
	}
	return writer{bucket: b}, nil
}

// maintain creates buckets that NATS has lost, and moves buckets that were created on too few
// nodes to three, until the store is closed.
func (s *Store) maintain() {
	defer close(s.done)
	tick := time.NewTicker(s.opts.retry)
	defer tick.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-tick.C:
		}
		s.mu.Lock()
		all := slices.Collect(maps.Values(s.buckets))
		s.mu.Unlock()
		for _, b := range all {
			created, err := b.ensure(s.ctx)
			switch {
			case err != nil:
				s.log.Debug("a bucket is not looked after", "bucket", b.name, "err", err)
			case created: // lost disks are replaced by empty ones
				s.log.Warn("a bucket was missing in NATS, and is empty now", "bucket", b.name)
			}
		}
	}
}
