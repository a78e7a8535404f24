// Package selfhost runs dynmcp with an in-memory host, for the verbs that start servers.
package selfhost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/dynmcp/dynmcp/aggregator"
	"github.com/dynmcp/dynmcp/aggregator/surface"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/event"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/upstream"
	"github.com/dynmcp/dynmcp/transports/upstream/command"
)

// A Host is a run of dynmcp together with its only host, which is connected in memory.
type Host struct {
	cfg  *schema.Config
	agg  *aggregator.Aggregator
	Conn *upstream.Conn // the host's end of the connection; nil after Serve

	served   chan struct{} // closed when aggregator.Serve has returned
	serveErr error         // the error of aggregator.Serve
	answers  answers
}

// Answered reports whether a server has answered a call, rather than dynmcp itself, which refused
// the call or lost it.
func (h *Host) Answered() bool { return h.answers.any.Load() }

// Tree returns the tree of the config, nil if no module has trees.
func (h *Host) Tree() surface.Tree { return h.agg.Tree() }

// answers observes whether a server has answered a call.
type answers struct {
	event.Observers
	any atomic.Bool
}

func (a *answers) Called(call event.Call) {
	if call.ByServer() {
		a.any.Store(true)
	}
}

func (a *answers) Wants() (calls, params bool) { return true, false }

// maxOwnMessage limits an answer of the aggregator. Messages of upstreams were already checked
// against their max_message_bytes.
const maxOwnMessage = 1 << 30

// Start runs dynmcp on cfg and connects the host. The caller must call Close. In single-wrap mode
// the upstream is ready when Start returns; in config mode no lazy server was started. A nil log
// discards.
func Start(ctx context.Context, cfg *schema.Config, log *slog.Logger) (*Host, error) {
	return StartAs(ctx, cfg, aggregator.Options{Logger: log}, HostOptions(log))
}

// StartAs is Start with other options, including the Logger, and for another host.
func StartAs(ctx context.Context, cfg *schema.Config, options aggregator.Options, host upstream.ConnOptions) (*Host, error) {
	h, near, err := Serve(ctx, cfg, options)
	if err != nil {
		return nil, err
	}
	host.Dynmcp = true
	h.Conn = upstream.OpenStream(schema.Server{Name: "dynmcp", MaxMessageBytes: maxOwnMessage}, near, host)
	if err := h.Conn.Handshake(ctx, nil); err != nil {
		err = h.StartError(ctx, err)
		h.Close()
		return nil, err
	}
	return h, nil
}

// Serve runs dynmcp on cfg for a host that the caller connects to the returned stream, which ends
// with Close of the Host at the latest.
func Serve(ctx context.Context, cfg *schema.Config, options aggregator.Options) (*Host, net.Conn, error) {
	if cfg.SingleWrap {
		if err := checkCommand(cfg.Servers[0]); err != nil {
			return nil, nil, err
		}
	}
	h := &Host{cfg: cfg, served: make(chan struct{})}
	options.Observe = append(options.Observe, &h.answers)
	var err error
	if h.agg, _, err = NewAggregator(ctx, cfg, options, module.Run{}); err != nil {
		return nil, nil, err
	}
	near, far := net.Pipe()
	go h.serve(context.WithoutCancel(ctx), far)
	return h, near, nil
}

// HostOptions returns the options of the usual host, which logs notifications if log is not nil.
func HostOptions(log *slog.Logger) upstream.ConnOptions {
	options := upstream.ConnOptions{Info: upstream.Info{Name: "dynmcp", Version: cli.Version}, HandshakeOnly: true}
	if log != nil {
		options.Peer = NotifyFunc(func(method string, params json.RawMessage) {
			log.Info(strings.TrimPrefix(method, "notifications/"), "params", string(params))
		})
	}
	return options
}

// serve serves the host over the other end of its connection.
func (h *Host) serve(ctx context.Context, far net.Conn) {
	defer close(h.served)
	defer far.Close()
	defer func() {
		if p := recover(); p != nil {
			h.serveErr = fmt.Errorf("internal error: %v\n%s", p, debug.Stack())
		}
	}()
	h.serveErr = h.agg.Serve(ctx, far, far)
}

// StartError returns the reason for a failed handshake. In single-wrap mode that is the failure of
// the upstream, with which Serve ends.
func (h *Host) StartError(ctx context.Context, err error) error {
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
		return cli.Interrupted(ctx.Err())
	}
	return err
}

// View returns the catalogue.
func (h *Host) View() *catalog.View { return h.agg.View() }

// Status returns the status of the run.
func (h *Host) Status() aggregator.Status { return h.agg.Status() }

// Close ends dynmcp and everything it has started.
func (h *Host) Close() {
	if h.Conn != nil {
		h.Conn.Close()
	}
	h.agg.Close()
	<-h.served
}

// A NotifyFunc is a peer that receives notifications. It refuses requests, for which the host
// declares no capability.
type NotifyFunc func(method string, params json.RawMessage)

// Notify implements transports.Peer.
func (f NotifyFunc) Notify(method string, params json.RawMessage) { f(method, params) }

// Request implements transports.Peer.
func (NotifyFunc) Request(context.Context, string, json.RawMessage) func() (json.RawMessage, error) {
	return func() (json.RawMessage, error) {
		return nil, &wire.Error{Code: wire.CodeMethodNotFound, Message: "the command line answers no requests"}
	}
}

// Load starts servers in parallel, and returns the errors of those that failed, by name. It calls
// done with the name of each server that has started or failed.
func (h *Host) Load(ctx context.Context, done func(server string), servers ...string) map[string]error {
	failed := map[string]error{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, name := range servers {
		wg.Go(func() {
			err := h.LoadOne(ctx, name)
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

// LoadOne starts a server.
func (h *Host) LoadOne(ctx context.Context, name string) error {
	s, err := conf.Usable(h.cfg, name)
	if err != nil {
		return err
	}
	if err := checkCommand(s); err != nil {
		return err
	}
	return withAdvice(s, cli.Interrupted(h.agg.Load(ctx, name)))
}

// checkCommand checks that a server's command exists. Its error is clearer than that of a failed
// start.
func checkCommand(s schema.Server) error {
	if s.Transport != schema.Stdio {
		return nil
	}
	return command.Check(s)
}
