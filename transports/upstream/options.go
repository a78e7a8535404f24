package upstream

import (
	"crypto/tls"
	"log/slog"
	"net/http"
	"time"

	"github.com/dynmcp/dynmcp/internal/event"
	"github.com/dynmcp/dynmcp/internal/guard"
	"github.com/dynmcp/dynmcp/internal/redact"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
)

// ConnOptions configure a Conn.
type ConnOptions struct {
	Peer   transports.Peer // receives what the upstream sends; nil refuses requests
	Info   Info            // how dynmcp introduces itself
	Logger *slog.Logger    // nil is silent

	// Redact removes secrets from failures and from a child's stderr. Nil removes nothing.
	Redact *redact.Redactor

	// HandshakeOnly means that the upstream requires the initialize handshake: it is not asked
	// for the stateless era.
	HandshakeOnly bool

	// Host returns what dynmcp presents of the host, false if no host is known. For a host of the
	// handshake era initialize is tried first, as that host would: only in that era can an
	// upstream that supports both send requests to the host during a call, and it may refuse
	// initialize after server/discover. Nil means no host.
	Host func() (Host, bool)

	// Login authorizes HTTP requests. If it is zero, only the headers of the config are sent.
	Login Login

	// Adapter makes the server of an entry with an OpenAPI document. Nil means that no module does.
	Adapter Adapter

	// Mark adds headers that identify the principal of each HTTP request. It may be nil.
	Mark func(http.Header)

	// Dynmcp means that the upstream is dynmcp itself, whose errors say whether a call ran. A server
	// whose command is this program is recognised without it.
	Dynmcp bool

	// Env are variables that a child always gets, as NAME=value.
	Env []string

	// Fence kills a child at its deadline, even while this process is stopped. It may be
	// nil.
	Fence *guard.Fence

	// Tap shows the messages of the connection. It may be nil.
	Tap *event.Tap

	// Cork holds back messages to the upstream, and those that its messages cause, while the
	// messages of one read are handled. It may be nil.
	Cork *wire.Cork

	// Throttle is called before each read from the upstream, while Cork holds nothing back. It
	// may block while hosts do not read. It may be nil.
	Throttle func()

	tls    *tls.Config // of HTTP connections; nil is that of the entry
	timing timing
}

// A Host is what an upstream may know of the host.
type Host struct {
	Era  transports.Era
	Name string // dynmcp introduces itself by this name, unless it is empty
}

// A Login authorizes requests to an HTTP upstream.
type Login struct {
	// Transport returns a transport that authorizes the requests it forwards. Its own errors
	// are *transports.Failure; nothing was sent then. It may be nil.
	Transport func(http.RoundTripper) http.RoundTripper
	// Hint returns what to do about an answer with status 401 or 403, "" if unknown, and
	// whether a person's login would fix it. It is set if Transport is.
	Hint func(*http.Response) (text string, login bool)
}

// timing are waits that tests shorten. Zero is the default.
type timing struct {
	stopGrace  time.Duration
	bestEffort time.Duration
	ping       time.Duration
	reopen     time.Duration
	http       httpTimeouts
}
