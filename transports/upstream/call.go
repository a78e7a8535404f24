package upstream

import (
	"context"
	"encoding/json"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
)

// A Call is one request to an upstream. When it has ended, in any way but by
// Cancel, it may be started again on another connection.
type Call struct {
	Method string
	Params json.RawMessage // as the host sent them; may be nil
	// NoToken says that Params are known to hold no progress token.
	NoToken bool
	// Timeout is how long the call may take, in the place of the server's timeout; 0 is
	// any time. Nil leaves the server's.
	Timeout *time.Duration

	// Done takes the result or the error, exactly once unless Cancel returned
	// true. The result is lent until Done returns. An answer is delivered on the goroutine that reads it, in the order
	// of the wire, so Done must not block. Any other goroutine may bring a
	// failure; a call that cannot be sent may end inside Start, on the caller's.
	// Done may still run, or be running, after Cancel returned false.
	Done func(result json.RawMessage, err error)

	// Outline is of the result, for Done while it runs; nil of most that are short.
	Outline *wire.Outline

	// Peer takes the call's progress, under the token that Params carried, and
	// what the upstream sends on the call's own stream, where the transport
	// has one a call (HTTP). Nil wants no progress and leaves the rest to the
	// connection's peer.
	Peer transports.Peer

	// MayRead is told how many bytes were read on the call's own stream and not handled, if
	// they are many, and 0 when they were. False ends the call. Nil has no limit but that of
	// a message.
	MayRead func(size int) bool

	unlimited bool      // the server's timeout does not hold
	token     wire.Span // of the host, where Params have one
	hostToken []byte    // the same

	// Guarded by the table of pending calls while the call is in it.
	id     int64
	sent   bool // it went out, or is queued to
	unsent bool // nothing of it went out, nor will
	timer  *time.Timer
	held   bool               // the timer is stopped
	abort  context.CancelFunc // ends the call's own stream

	withdrawn atomic.Bool     // by Cancel, or by the timeout
	reason    json.RawMessage // set before withdrawn is
}

// pieces returns the call's params with our id in place of the host's progress
// token: tokens of several hosts would collide, and the call's id is unique
// already.
func (call *Call) pieces(id int64) (params [3][]byte, n int) {
	switch {
	case len(call.Params) == 0:
		return params, 0
	case call.token.Len == 0:
		params[0] = call.Params
		return params, 1
	}
	at, end := call.token.Off, call.token.Off+call.token.Len
	return [3][]byte{call.Params[:at], strconv.AppendInt(nil, id, 10), call.Params[end:]}, 3
}

// within returns the time that a call may take whose server has that timeout.
func (call *Call) within(timeout time.Duration) time.Duration {
	if call.Timeout != nil {
		return *call.Timeout
	}
	return timeout
}
