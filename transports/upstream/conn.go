package upstream

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dynmcp/dynmcp/internal/event"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
)

// defaultMaxMessage is the max_message_bytes of an entry without one.
const defaultMaxMessage = 16 << 20

// Info is an implementation's name and version as the handshake carries them.
type Info struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// ServerInfo is the description of an upstream from the handshake.
type ServerInfo struct {
	ProtocolVersion string
	Capabilities    json.RawMessage
	Implementation  json.RawMessage // its name and version: "serverInfo"
	Instructions    string
	Extra           json.RawMessage // an object of all other members
}

// Has reports whether the upstream advertised a capability, such as "tools".
func (i *ServerInfo) Has(capability string) bool { return wire.Get(i.Capabilities, capability) != nil }

// announces reports whether the upstream sends notifications of changes in a list.
func (i *ServerInfo) announces(capability string) bool {
	return string(wire.Get(i.Capabilities, capability, "listChanged")) == "true"
}

// A Conn is a connection to one upstream. Its methods may be called from many
// goroutines.
type Conn struct {
	reporter
	goroutines

	copies    bool        // the params of a call are no longer used when Start returns
	onReplica bool        // another replica runs the upstream
	isDynmcp  bool        // it is dynmcp too, and may speak as dynmcp
	killed    atomic.Bool // by Kill
	server    schema.Server
	opts      ConnOptions
	log       *slog.Logger
	info      ServerInfo
	link      link
	peer      event.Connection // the name of the upstream in ConnOptions.Tap

	agreed    atomic.Pointer[string] // the protocol version, once known
	stateless atomic.Bool            // the upstream is of the stateless era
	eraMeta   eraMeta                // the members of _meta in every request of that era
	declared  json.RawMessage        // what Handshake declared

	calls    pending        // our requests to the upstream
	tasks    taskProgress   // of calls that became tasks
	requests serverRequests // the upstream's requests to us
	health   *health
	junk     atomic.Int64           // lines that were not messages
	stray    atomic.Pointer[string] // the first line before the handshake that no server of MCP writes
	invalid  invalidText

	subscriptions *subscriptions // of the stateless era

	ctx     context.Context // ends with the connection
	cancel  context.CancelFunc
	done    chan struct{} // closed when nothing more will be received
	closing atomic.Bool
	gone    chan struct{} // closed when Close returns

	mu    sync.Mutex
	err   error // why the connection takes no new calls
	ended bool  // the calls in flight were ended
}

// ServerInfo returns what the upstream said in the handshake.
func (c *Conn) ServerInfo() *ServerInfo { return &c.info }

// Era returns the era of the upstream, once Handshake has returned.
func (c *Conn) Era() transports.Era {
	if c.stateless.Load() {
		return transports.Stateless
	}
	return transports.Handshake
}

// Copies reports whether the params of a call are no longer used when Start has returned. A call
// that could not be sent has a copy.
func (c *Conn) Copies() bool { return c.copies }

// Done is closed when the connection has ended.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err returns why the connection takes no new calls, nil if it does. Until Done
// is closed, calls in flight may still be answered.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Loss returns the failure of a call that is not sent because of Err, which must not be nil.
func (c *Conn) Loss() *transports.Failure { return c.endFailure(c.Err(), transports.NotSent) }

// Notify sends a notification. A nil error does not mean delivery.
func (c *Conn) Notify(method string, params json.RawMessage) error {
	message := wire.Notification(wire.Quote(method), params)
	c.opts.Tap.Show(c.peer, false, message...)
	return c.link.send(message...)
}

// Close ends the connection: calls in flight fail, the child and its group are stopped. It
// returns when nothing of the connection is left.
func (c *Conn) Close() {
	if !c.closing.CompareAndSwap(false, true) {
		<-c.gone
		return
	}
	defer close(c.gone)
	c.end(errClosed)
	c.link.close()
	c.goroutines.close()
}

// drainMost is how long calls in flight may continue when the connection takes no new ones:
// some never get an answer, because a message that they need can no longer reach the
// upstream.
const drainMost = 10 * time.Minute

// retire makes the connection refuse new calls because of err. The connection ends when the
// calls in flight have ended, or after drainMost.
func (c *Conn) retire(err error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = err
	c.mu.Unlock()

	drained := c.calls.refuse()
	c.spawn(func() { // if this is refused, the connection has ended
		waitAtMost(drained, drainMost)
		c.end(err)
	})
}

// end ends every call and every server request with err, once; afterwards nothing can be sent.
func (c *Conn) end(err error) {
	c.mu.Lock()
	if c.ended {
		c.mu.Unlock()
		return
	}
	c.ended = true
	if c.err == nil {
		c.err = err
	}
	c.mu.Unlock()

	if n := c.invalid.count.Load(); n > 1 {
		c.log.Info("messages were not UTF-8", "count", n)
	}
	calls := c.calls.close()
	c.cancel()
	close(c.done)
	for _, call := range calls {
		outcome := transports.Unknown // also if it is being sent at this moment
		if call.unsent {
			outcome = transports.NotSent
		}
		c.guarded(func() { call.Done(nil, c.endFailure(err, outcome)) })
	}
}

// goroutines are the goroutines that a connection waits for.
type goroutines struct {
	panicked func(p any) // ends the connection

	starting sync.Mutex
	closed   bool // no more may be started
	wg       sync.WaitGroup
}

// spawn runs f on a goroutine that close waits for. It reports false after close.
func (g *goroutines) spawn(f func()) bool {
	g.starting.Lock()
	defer g.starting.Unlock()
	if g.closed {
		return false
	}
	g.wg.Go(func() { g.guarded(f) })
	return true
}

// guarded runs f; a panic ends the connection, not the process.
func (g *goroutines) guarded(f func()) {
	defer func() {
		if p := recover(); p != nil {
			g.panicked(p)
		}
	}()
	f()
}

func (g *goroutines) close() {
	g.starting.Lock()
	g.closed = true
	g.starting.Unlock()
	g.wg.Wait()
}
