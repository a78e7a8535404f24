package upstream

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/dynmcp/dynmcp/internal/certs"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/upstream/command"
)

// Open connects to an upstream: it starts the child, or prepares an HTTP connection. Nothing is
// sent before Handshake. Close must be called.
func Open(server schema.Server, opts ConnOptions) (*Conn, error) {
	c := newConn(server, opts)
	var err error
	switch {
	case server.OpenAPI != "":
		err = openAdapted(c)
	case server.Transport == schema.Stdio:
		err = openChild(c)
	case server.Transport == schema.StreamableHTTP:
		if err = configureTLS(c); err == nil {
			c.link = newHTTPLink(c)
		}
	case server.Transport == schema.SSE:
		if err = configureTLS(c); err == nil {
			c.link = &sseLink{httpLink: newHTTPLink(c), ready: make(chan struct{})}
		}
	default:
		err = c.newFailure(transports.CodeStartFailed, transports.NotSent, fmt.Errorf("transport %q is not supported", server.Transport))
	}
	if err != nil {
		c.cancel()
		return nil, err
	}
	return c, nil
}

// configureTLS reads the certificates of the entry.
func configureTLS(c *Conn) (err error) {
	if c.opts.tls != nil {
		return nil
	}
	if c.opts.tls, err = certs.Config(c.server.TLS); err != nil {
		f := c.newFailure(transports.CodeStartFailed, transports.NotSent, err)
		f.Hint = `correct "tls" in its entry, or the file`
		return f
	}
	return nil
}

func newConn(server schema.Server, opts ConnOptions) *Conn {
	opts.Logger = cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))
	if opts.Throttle == nil {
		opts.Throttle = func() {}
	}
	if opts.Host == nil {
		opts.Host = func() (Host, bool) { return Host{}, false }
	}
	opts.timing = timing{
		stopGrace:  cmp.Or(opts.timing.stopGrace, stopGrace),
		bestEffort: cmp.Or(opts.timing.bestEffort, bestEffort),
		ping:       cmp.Or(opts.timing.ping, pingWait),
		reopen:     cmp.Or(opts.timing.reopen, reopenFirst),
		http:       cmp.Or(opts.timing.http, defaultHTTPTimeouts),
	}
	server.MaxMessageBytes = cmp.Or(server.MaxMessageBytes, defaultMaxMessage)
	c := &Conn{
		server:   server,
		opts:     opts,
		isDynmcp: opts.Dynmcp || server.Command != "" && command.IsThisProgram(server),
		log:      opts.Logger.With("upstream", server.Name),
		done:     make(chan struct{}),
		gone:     make(chan struct{}),
	}
	c.peer = opts.Tap.Upstream(server.Name)
	c.reporter = reporter{server: server.Name, remote: server.Transport != schema.Stdio, redact: opts.Redact, stderr: func() string {
		if c.link == nil { // it could not be opened
			return ""
		}
		return c.link.stderr()
	}}
	c.goroutines.panicked = func(p any) {
		c.log.Error("panic", "panic", p, "stack", string(debug.Stack()))
		c.end(fmt.Errorf("internal error: %v", p))
	}
	c.invalid.log, c.health, c.requests.conn = c.log, &health{conn: c}, c
	c.subscriptions = &subscriptions{conn: c, wake: make(chan struct{}, 1), topics: map[topic]bool{}, pause: reopenFirst}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}
