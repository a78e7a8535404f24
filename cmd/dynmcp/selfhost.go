package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"

	"al.essio.dev/pkg/shellescape"

	"github.com/dynmcp/dynmcp/aggregator"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/upstream"
	"github.com/dynmcp/dynmcp/transports/upstream/command"
)

// A selfHost is dynmcp together with a host of our own in front of it, connected
// in memory: what a verb shows is what any host would get.
type selfHost struct {
	cfg  *schema.Config
	agg  *aggregator.Aggregator
	conn *upstream.Conn // the host's end of the connection

	served   chan struct{} // closed when Serve has returned
	serveErr error         // what it returned
}

// maxOwnMessage bounds an answer of our own aggregator. What upstreams send was
// already checked against their max_message_bytes.
const maxOwnMessage = 1 << 30

// startSelf runs dynmcp on cfg and initializes it. close must be called. In
// single-wrap mode the upstream is ready then; in config mode no lazy server has
// been started. A nil log is silent.
func startSelf(ctx context.Context, cfg *schema.Config, log *slog.Logger) (*selfHost, error) {
	return startSelfWith(ctx, cfg, aggregator.Options{Logger: log})
}

// startSelfWith is startSelf with other options, whose Logger is its log.
func startSelfWith(ctx context.Context, cfg *schema.Config, options aggregator.Options) (*selfHost, error) {
	log := options.Logger
	if cfg.SingleWrap {
		if err := checkCommand(cfg.Servers[0]); err != nil {
			return nil, err
		}
	}
	agg, err := newAggregator(cfg, options)
	if err != nil {
		return nil, err
	}
	opts := upstream.Options{Info: upstream.Info{Name: "dynmcp", Version: version}, HandshakeOnly: true}
	if log != nil {
		opts.Peer = notifyFunc(func(method string, params json.RawMessage) {
			log.Info(strings.TrimPrefix(method, "notifications/"), "params", string(params))
		})
	}
	near, far := net.Pipe()
	h := &selfHost{
		cfg:    cfg,
		agg:    agg,
		conn:   upstream.OpenStream(schema.Server{Name: "dynmcp", MaxMessageBytes: maxOwnMessage}, near, opts),
		served: make(chan struct{}),
	}
	go func() {
		defer close(h.served)
		defer far.Close()
		defer recoverInto(&h.serveErr)
		h.serveErr = agg.Serve(context.WithoutCancel(ctx), far, far)
	}()
	if err := h.conn.Handshake(ctx, nil); err != nil {
		err = h.startError(ctx, err)
		h.close()
		return nil, err
	}
	return h, nil
}

// startError explains a failed handshake. In single-wrap mode it fails because the
// upstream did, which ends Serve with an error that says more.
func (h *selfHost) startError(ctx context.Context, err error) error {
	if ctx.Err() == nil && h.cfg.SingleWrap {
		select {
		case <-h.served:
			if fatal, ok := errors.AsType[*aggregator.FatalError](h.serveErr); ok {
				return withAdvice(h.cfg.Servers[0], fatal.Err)
			}
		case <-ctx.Done():
		}
	}
	if ctx.Err() != nil {
		return interrupted(ctx.Err())
	}
	return err
}

// close ends dynmcp and everything it has started.
func (h *selfHost) close() {
	h.conn.Close()
	h.agg.Close()
	<-h.served
}

// A notifyFunc is a peer that takes notifications. It refuses requests: our host
// declares no capability to ask for.
type notifyFunc func(method string, params json.RawMessage)

func (f notifyFunc) Notify(method string, params json.RawMessage) { f(method, params) }

func (notifyFunc) Request(context.Context, string, json.RawMessage) func() (json.RawMessage, error) {
	return func() (json.RawMessage, error) {
		return nil, &wire.Error{Code: wire.CodeMethodNotFound, Message: "the command line answers no requests"}
	}
}

// load starts servers, all at once, and returns the errors of those that failed.
// done is called for each that has started or failed.
func (h *selfHost) load(ctx context.Context, done func(server string), servers ...string) map[string]error {
	failed := map[string]error{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, name := range servers {
		wg.Go(func() {
			err := h.loadOne(ctx, name)
			done(name)
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed[name] = err
			}
		})
	}
	wg.Wait()
	return failed
}

func (h *selfHost) loadOne(ctx context.Context, name string) error {
	s, err := serverNamed(h.cfg, name)
	if err != nil {
		return err
	}
	if s.Off != nil {
		return offError(s)
	}
	if err := checkCommand(s); err != nil {
		return err
	}
	return withAdvice(s, interrupted(h.agg.Load(ctx, name)))
}

// withAdvice adds a hint to a failure that has none.
func withAdvice(s schema.Server, err error) error {
	var failure *transports.Failure
	switch {
	case !errors.As(err, &failure) || failure.Hint != "":
		return err
	case failure.Code == transports.CodeTimeout:
		return hinted(err, "if it needs more time, raise load_timeout in its entry")
	case s.Transport == schema.Stdio:
		return hinted(err, "run its command in a shell to see more:\n  %s", commandLine(s))
	}
	return hinted(err, checkURLHint)
}

const checkURLHint = "check its url in the config, the network, and that the server is running"

// commandLine returns the command of a server as it can be typed into a shell of
// Unix. Its variables, which may be secrets, are left out.
func commandLine(s schema.Server) string {
	line := endpoint(s)
	if s.Cwd != "" {
		line = "cd " + shellescape.Quote(s.Cwd) + " && " + line
	}
	return line
}

// checkCommand explains a missing command better than a failed start does.
func checkCommand(s schema.Server) error {
	if s.Transport != schema.Stdio {
		return nil
	}
	return command.Check(s)
}

// errInterrupted says that the context of a verb ended.
var errInterrupted = errors.New("interrupted")

// interrupted returns err, in the user's words where it is the user's interrupt.
func interrupted(err error) error {
	if errors.Is(err, context.Canceled) {
		return errInterrupted
	}
	return err
}

// listEntries returns all entries of a list. One that no server offers is empty.
func (h *selfHost) listEntries(ctx context.Context, method, key string) ([]json.RawMessage, error) {
	entries := []json.RawMessage{}
	cursor := ""
	for {
		params := json.RawMessage(`{}`)
		if cursor != "" {
			params = fmt.Appendf(nil, `{"cursor":%s}`, wire.Quote(cursor))
		}
		result, err := h.conn.Call(ctx, method, params)
		var rpc *wire.Error
		switch {
		case errors.As(err, &rpc) && rpc.Code == wire.CodeMethodNotFound:
			return entries, nil
		case err != nil:
			return nil, interrupted(err)
		}
		for entry := range wire.Elements(wire.Get(result, key)) {
			entries = append(entries, entry)
		}
		if cursor = member(result, "nextCursor"); cursor == "" {
			return entries, nil
		}
	}
}

// member returns a member of an object that is a string, "" if it is none.
func member(object json.RawMessage, key string) string {
	text, _ := wire.Text(wire.Get(object, key))
	return text
}
