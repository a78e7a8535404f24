// Package internode is the transport between the replicas of one service: HTTP over TLS 1.3.
// Both sides must present a certificate of the cluster.
//
//	/request/…         a host's request, forwarded unchanged      [Client.Request, Routes.Requests]
//	/mcp/SERVER        the lines of one upstream, both ways       [Client.Open, Routes.Upstream]
//	/result/HANDLE     a stored result of a principal             [Client.Result, Routes.Result]
//
// Requests and results use one persistent HTTP/2 connection each way. Pings detect a peer that is
// dead, stopped or disconnected, and fail all requests on its connection. A server that shuts down
// sends GOAWAY, so that clients resend the requests that were not processed. Each upstream has a
// connection of its own, which becomes a stream (package lines); empty lines take the place of pings.
//
// Replicas of two successive releases understand each other: unknown headers and members
// are ignored, and an unknown route is answered with 501, which becomes [ErrUnsupported].
package internode

import (
	"errors"
	"time"
)

// The headers of this protocol. A host's own headers of these names are ignored.
const (
	headerPrincipal = "Dynmcp-Principal" // the principal of the request, query-escaped
	headerHolder    = "Dynmcp-Holder"    // the ID of the replica that has the requested server
	headerLimit     = "Dynmcp-Limit"     // the limit of a stored result, in tokens
)

// Limits of connections.
const (
	dialTimeout     = 3 * time.Second
	pingAfter       = 2 * time.Second // without a frame, before a ping
	pingTimeout     = 3 * time.Second // for its answer
	idleTimeout     = 5 * time.Minute // without a request
	headerTimeout   = 5 * time.Second // also for the handshake of TLS
	shutdownTimeout = 3 * time.Second // for answers during the shutdown
	maxHeader       = 128 << 10       // those of a host have 64 KB
	maxStreams      = 100_000         // of one connection at once
	maxResult       = 256 << 20
	streamBuffer    = 256 << 10 // unread bytes of one request
	connBuffer      = 4<<20 - 1 // unread bytes of all requests; net/http allows no more
)

// ErrUnsupported means that a replica runs a release that does not know the request.
var ErrUnsupported = errors.New("the replica runs another release of dynmcp, which does not support the request")

// ErrDraining means that a replica is about to end, and accepts nothing new.
var ErrDraining = errors.New("the replica is about to end")

// A NotHereError means that a server runs on another replica than the one asked.
type NotHereError struct{ Holder string } // its ID

func (e *NotHereError) Error() string { return "it runs on the replica " + e.Holder }
