// Package natskv is a [kv.Store] on NATS JetStream: each bucket is a key-value bucket
// as all tools of NATS know it, which a majority of three nodes keeps. It is the only
// package that knows NATS.
//
//	streams.go  the stream of a bucket: how it is made, on how many nodes, kept tidy
//	bucket.go   one record at a time
//	parts.go    values that are larger than a message may be
//	watch.go    all changes, in their order
package natskv

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/dynmcp/dynmcp/internal/kv"
)

// Options say where the state is.
type Options struct {
	URLs   []string     // nats://HOST:PORT or tls://HOST:PORT; the other nodes are learned from these
	Creds  string       // the path of a file of credentials, "" is none
	CA     string       // the path of a file of authorities that vouch for the nodes (PEM), "" is the system's
	Name   string       // of this connection, as NATS shows it
	Prefix string       // of the names of buckets, "dynmcp" if it is ""; another for each cluster of one account
	Logger *slog.Logger // nil is silent

	answer time.Duration // how long an answer may take, 2 s if it is 0
	tend   time.Duration // how often a bucket on too few nodes is tried to be put on more, 10 s if it is 0
}

// A Store is a connection to NATS. It is made anew for as long as it takes, to whichever
// node can be reached.
type Store struct {
	opts Options
	log  *slog.Logger
	conn *nats.Conn
	js   jetstream.JetStream

	ctx  context.Context // ends with Close
	end  context.CancelFunc
	wake chan struct{} // has room for one: buckets may be put on more nodes now
	done chan struct{} // closed when tending has ended

	denied atomic.Pointer[denial]

	mu        sync.Mutex
	buckets   map[string]*bucket
	connected func(bool)
	said      bool            // what connected was told last
	link      context.Context // ends when the connection is lost
	cut       context.CancelFunc
}

var _ kv.Store = (*Store)(nil)

// Open returns the store of a cluster of NATS, whether that can be reached now or not.
// An error says what is wrong with the options.
func Open(opts Options) (*Store, error) {
	if opts.Prefix == "" {
		opts.Prefix = "dynmcp"
	}
	if opts.answer == 0 {
		opts.answer = 2 * time.Second
	}
	if opts.tend == 0 {
		opts.tend = 10 * time.Second
	}
	s := &Store{opts: opts, log: opts.Logger, wake: make(chan struct{}, 1), done: make(chan struct{}), buckets: map[string]*bucket{}}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.ctx, s.end = context.WithCancel(context.Background())
	s.link, s.cut = context.WithCancel(s.ctx)
	to := []nats.Option{
		nats.Name(opts.Name),
		nats.Timeout(opts.answer),
		// A node that is gone without a word is left after three seconds.
		nats.PingInterval(time.Second),
		nats.MaxPingsOutstanding(2),
		// It is tried for ever, also after a node has refused the credentials twice: they
		// may be on their way to it.
		nats.RetryOnFailedConnect(true),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(100 * time.Millisecond),
		nats.ReconnectJitter(100*time.Millisecond, 100*time.Millisecond),
		nats.IgnoreAuthErrorAbort(),
		// What cannot be sent now fails: nobody expects it to be sent later.
		nats.ReconnectBufSize(-1),
		nats.ConnectHandler(func(c *nats.Conn) { s.tell(true, c.ConnectedUrlRedacted(), nil) }),
		nats.ReconnectHandler(func(c *nats.Conn) { s.tell(true, c.ConnectedUrlRedacted(), nil) }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { s.tell(false, "", err) }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			s.log.Debug("nats", "err", err)
			if errors.Is(err, nats.ErrPermissionViolation) {
				s.denied.Store(&denial{err, time.Now()})
			}
		}),
	}
	if opts.Creds != "" {
		to = append(to, credentials(opts.Creds))
	}
	if opts.CA != "" {
		to = append(to, authorities(opts.CA))
	}
	var err error
	if s.conn, err = nats.Connect(strings.Join(opts.URLs, ","), to...); err != nil {
		s.end()
		return nil, fmt.Errorf("nats: %w", err)
	}
	if s.js, err = jetstream.New(s.conn); err != nil {
		s.conn.Close()
		s.end()
		return nil, fmt.Errorf("nats: %w", err)
	}
	go s.tend()
	return s, nil
}

// A denial is what NATS says of a message that it did not take, and not in answer to it.
type denial struct {
	err error
	at  time.Time
}

// answered returns the error of a question that was asked at a time. One that NATS does not
// permit has no answer.
func (s *Store) answered(err error, asked time.Time) error {
	if d := s.denied.Load(); errors.Is(err, context.DeadlineExceeded) && d != nil && d.at.After(asked) {
		return d.err
	}
	return err
}

// tell passes on that the connection has come or gone. NATS calls it from one goroutine.
func (s *Store) tell(connected bool, node string, err error) {
	s.mu.Lock()
	same := s.said == connected
	s.said = connected
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
		select {
		case s.wake <- struct{}{}:
		default:
		}
	case !same:
		s.log.Warn("the connection to NATS is lost; it is being made again", "err", err)
	}
	if f != nil && !same {
		f(connected)
	}
}

// asking returns a context for a question to NATS. It ends when the answer takes too long
// and when the connection that it would come by is lost, which NATS would wait out.
func (s *Store) asking(ctx context.Context, most time.Duration) (context.Context, context.CancelFunc) {
	ctx, unlink := s.linked(ctx)
	ctx, cancel := context.WithTimeout(ctx, most)
	return ctx, func() { cancel(); unlink() }
}

// linked returns a context that ends when the connection that there is now is lost.
func (s *Store) linked(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	s.mu.Lock()
	link := s.link
	s.mu.Unlock()
	stop := context.AfterFunc(link, cancel)
	return ctx, func() { stop(); cancel() }
}

// OnConnected implements kv.Store.
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

// Bucket returns a bucket, which is made on three nodes if there are as many, or else on
// one, and put on three when there are.
func (s *Store) Bucket(ctx context.Context, name string) (kv.Bucket, error) {
	s.mu.Lock()
	b := s.buckets[name]
	s.mu.Unlock()
	if b != nil {
		return writer{bucket: b}, nil
	}
	if strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" || name == "" {
		return nil, fmt.Errorf("%q is no name of a bucket", name)
	}
	b = &bucket{store: s, name: s.opts.Prefix + "_" + name, parts: map[string]string{}}
	if err := b.open(ctx); err != nil {
		return nil, fmt.Errorf("bucket %s: %w", name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if other := s.buckets[name]; other != nil {
		return writer{bucket: other}, nil
	}
	s.buckets[name] = b
	return writer{bucket: b}, nil
}

// failure returns an error of NATS as one of kv's.
func failure(err error) error {
	var answer *jetstream.APIError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &answer) && (answer.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || answer.ErrorCode == wrongLastSequence):
		return kv.ErrConflict
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return kv.ErrNotFound
	case refused(err, answer):
		return fmt.Errorf("NATS refuses it: %w", err)
	case errors.Is(err, nats.ErrReconnectBufExceeded): // it keeps nothing for later
		err = errors.New("not connected to NATS")
	}
	return fmt.Errorf("%w: %w", kv.ErrUnavailable, err)
}

// refused reports whether NATS does not do what it was asked, however often that is: what
// is wrong has to be mended there. What it says with a code of 5xx passes, but for limits.
func refused(err error, answer *jetstream.APIError) bool {
	switch {
	case errors.Is(err, nats.ErrMaxPayload), errors.Is(err, nats.ErrPermissionViolation):
		return true
	case answer == nil, errors.Is(err, jetstream.ErrStreamNotFound), answer.ErrorCode == noPeers:
		return false
	}
	return answer.Code < 500 || slices.Contains(limits, answer.ErrorCode)
}

// limits are the codes of what a stream or a node has no room for (JSStreamStoreFailedF,
// JSMemoryResourcesExceededErr and JSStorageResourcesExceededErr of the server).
var limits = []jetstream.ErrorCode{10077, 10028, 10047}

// noPeers is what a node says while it does not know the others yet (JSClusterNoPeersErrF).
const noPeers jetstream.ErrorCode = 10005

// wrongLastSequence is what a node says of a record that another change is just being
// made to (JSStreamWrongLastSequenceConstantErr of the server).
const wrongLastSequence jetstream.ErrorCode = 10164
