// Package internode is the transport between the replicas of one service: HTTP/2 over TLS 1.3.
// Both sides show a certificate of the cluster; without one nothing is reached.
//
//	/request/…         a host's request, passed on as it came     [Client.Request, Options.Requests]
//	/upstream/SERVER   the lines of one upstream, both ways       [Client.Open, Options.Upstream]
//	/result/HANDLE     a result that was kept for a user          [Client.Result, Options.Result]
//
// Between two replicas there is one HTTP/2 connection each way, which is kept. Pings find a
// peer that is dead, stopped or cut off, and fail all requests on its connection. A server
// that ends sends GOAWAY, so a client sends the requests again that were not processed.
//
// Replicas of two successive releases understand each other: unknown headers and members
// are ignored, and an unknown route is answered with 501, which becomes [ErrUnsupported].
package internode

import (
	"errors"
	"time"
)

// protocol is the version of the protocol between replicas.
const protocol = "1"

// The headers of this protocol. Those of a host are never taken for them.
const (
	headerProtocol  = "Dynmcp-Protocol"
	headerFrom      = "Dynmcp-From"      // the ID of the replica that asks
	headerPrincipal = "Dynmcp-Principal" // whom it asks for, as in a query
	headerHolder    = "Dynmcp-Holder"    // the ID of the replica that has what was asked for
	headerLimit     = "Dynmcp-Limit"     // of a kept result, in tokens
)

// Limits of connections.
const (
	dialTimeout     = 3 * time.Second
	pingAfter       = 2 * time.Second // without a frame, before a ping
	pingTimeout     = 3 * time.Second // for its answer
	idleTimeout     = 5 * time.Minute // without a request
	headerTimeout   = 5 * time.Second // also for the handshake of TLS
	shutdownTimeout = 3 * time.Second // for what is answered at the end
	maxHeader       = 128 << 10       // those of a host have 64 KB
	maxStreams      = 100_000         // of one connection at once
	maxResult       = 256 << 20
	streamBuffer    = 256 << 10 // that nobody has read of one request, in bytes
	connBuffer      = 4<<20 - 1 // of all together; net/http takes no more
)

// ErrUnsupported says that a replica is of a release that does not know what it was
// asked.
var ErrUnsupported = errors.New("the replica runs another release of dynmcp, which does not know this")

// ErrDraining says that a replica is about to end, and begins nothing.
var ErrDraining = errors.New("the replica is about to end")

// ErrLost is what a stream ends with whose replica is gone. One that the other side has
// closed ends with io.EOF.
var ErrLost = errors.New("the replica is gone")

// A NotHereError says that a server runs on another replica than the one asked.
type NotHereError struct{ Holder string } // its ID

func (e *NotHereError) Error() string { return "it runs on the replica " + e.Holder }
