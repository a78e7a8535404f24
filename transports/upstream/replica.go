package upstream

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
)

// ErrMoved is wrapped by the Err of a connection whose server is to run elsewhere, or ran on a
// replica that is gone. It is not the server's fault.
var ErrMoved = errors.New("it may run elsewhere from now on")

// OpenReplica is OpenStream for a stream to another replica, which runs the server.
func OpenReplica(server schema.Server, stream io.ReadWriteCloser, opts ConnOptions) *Conn {
	c := newConn(server, opts)
	c.onReplica, c.isDynmcp = true, true // that replica has removed the marks
	openStream(c, stream)
	c.copies = false // params that were not accepted there may be sent again
	return c
}

// Remote reports whether the upstream runs on another replica.
func (c *Conn) Remote() bool { return c.onReplica }

// Retire makes the connection refuse new calls, because the upstream is to run elsewhere. The
// connection ends with [ErrMoved] when its calls in flight have ended.
func (c *Conn) Retire() { c.retire(ErrMoved) }

// Kill ends the connection with [ErrMoved] at once. A child and everything that it started are
// killed. Calls in flight may have run. Close must still be called.
func (c *Conn) Kill() {
	c.killed.Store(true)
	c.link.kill() // first, because end runs the Done of every call in flight
	c.end(errNotHere)
}

var errNotHere = fmt.Errorf("this replica may not run it any more: %w", ErrMoved)

// handleReplica handles a notification of the replica itself, and reports whether m is one.
func (c *Conn) handleReplica(m wire.Message) bool {
	said := wire.Get(m.Raw, transports.MemberReplica)
	if said == nil {
		return false
	}
	switch m.Method {
	case transports.MethodReplicaRetired:
		c.Retire()
	case transports.MethodReplicaEnded:
		var end transports.ReplicaEnd
		if err := json.Unmarshal(said, &end); err != nil {
			c.end(replicaGone(err))
			break
		}
		c.calls.markUnsent(end.Last, end.NotSent)
		if end.Failure != nil {
			c.end(transports.ReadFailure(c.server.Name, end.Failure))
		} else {
			c.end(fmt.Errorf("the replica that ran it released it: %w", ErrMoved))
		}
	}
	return true
}

// replicaGone is the error of a connection whose stream ended without a last message.
func replicaGone(err error) error {
	return fmt.Errorf("the dynmcp that ran it is gone (%w): %w", err, ErrMoved)
}
