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

// A Call is one request to an upstream. After it has ended, except by Cancel, it may be started
// again on another connection.
type Call struct {
	Method string
	Params json.RawMessage // as the host sent them; may be nil
	// Arguments is the part of Params that need not be parsed, nil if it is not known.
	Arguments json.RawMessage
	// NoToken means that Params contain no progress token.
	NoToken bool
	// Timeout is how long the call may take, in place of the server's timeout; 0 is no
	// limit. Nil means the server's.
	Timeout *time.Duration

	// Done receives the result or the error, exactly once unless Cancel returned true. The
	// result is valid until Done returns. An answer is delivered on the goroutine that reads
	// it, in the order of the wire, so Done must not block. A failure may come from any other
	// goroutine; a call that cannot be sent may end inside Start, on the caller's. Done may
	// still run after Cancel returned false.
	Done func(result json.RawMessage, err error)

	// Outline is the outline of the result, valid in Done; it may be nil.
	Outline *wire.Outline

	// Peer receives the call's progress, under the token in Params, and the messages on the
	// call's own stream, if the transport has one per call (HTTP). If it is nil, there is no
	// progress, and the connection's peer gets the rest.
	Peer transports.Peer

	// MayRead is called with the number of unhandled bytes read on the call's own stream, if
	// there are many, and with 0 when they were handled. If it returns false, the call ends.
	// Nil means that only the limit of a message applies.
	MayRead func(size int) bool

	unlimited bool      // the server's timeout does not apply
	token     wire.Span // the host's progress token in Params, if they have one
	hostToken []byte    // a copy of it

	// The table of pending calls guards these fields while it contains the call.
	id     int64
	sent   bool // it was sent, or queued
	unsent bool // nothing of it was or will be sent
	timer  *time.Timer
	held   bool               // the timer is stopped
	abort  context.CancelFunc // ends the call's own stream

	withdrawn atomic.Bool     // by Cancel, or by the timeout
	reason    json.RawMessage // set before withdrawn is
}

// pieces returns the call's params with our id in place of the host's progress token: tokens
// of several hosts would collide, and the call's id is unique.
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

// within returns the time limit of a call to a server with that timeout.
func (call *Call) within(timeout time.Duration) time.Duration {
	if call.Timeout != nil {
		return *call.Timeout
	}
	return timeout
}
