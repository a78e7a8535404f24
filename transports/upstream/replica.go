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

// ErrMoved is in the Err of a connection that ended, or takes no more calls, because its
// server is to run elsewhere, or ran on a replica that is gone: it is not to blame.
var ErrMoved = errors.New("it may run elsewhere from now on")

// OpenReplica is OpenStream for a stream at the other end of which another replica serves
// the server that it runs.
func OpenReplica(server schema.Server, stream io.ReadWriteCloser, opts Options) *Conn {
	c := newConn(server, opts)
	c.passed = true
	openStream(c, stream)
	c.copies = false // whose params were not taken there may be sent again
	return c
}

// Remote reports whether the upstream runs on another replica.
func (c *Conn) Remote() bool { return c.passed }

// Retire has the connection take no new calls, because the upstream is to run elsewhere.
// It ends, with [ErrMoved], when those in flight have ended.
func (c *Conn) Retire() { c.retire(ErrMoved) }

// Kill ends the connection with [ErrMoved] at once, and a child with all that it started,
// without giving it time to end by itself. Calls in flight may have run. Close must be called all the
// same.
func (c *Conn) Kill() {
	c.killed.Store(true)
	c.link.kill() // first: a listener to the end would ask the child to end
	c.end(errNotHere)
}

var errNotHere = fmt.Errorf("this replica may not run it any more: %w", ErrMoved)

// replicaSays does what a notification of the replica's own says, and reports whether it
// is one. Calls that did not reach the server may be made again.
func (c *Conn) replicaSays(m wire.Message) bool {
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
			c.end(fmt.Errorf("the replica that ran it let it go: %w", ErrMoved))
		}
	}
	return true
}

// replicaGone is why a connection ended whose stream ended without a last message.
func replicaGone(err error) error {
	return fmt.Errorf("the replica that ran it is gone (%w): %w", err, ErrMoved)
}
