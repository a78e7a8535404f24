package upstream

import (
	"crypto/x509"
	"log/slog"
	"net/http"
	"time"

	"github.com/dynmcp/dynmcp/internal/guard"
	"github.com/dynmcp/dynmcp/internal/redact"
	"github.com/dynmcp/dynmcp/internal/sandbox"
	"github.com/dynmcp/dynmcp/internal/tap"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
)

// Options are what a Conn needs beside the entry of its server.
type Options struct {
	Peer   transports.Peer // takes what the upstream sends; nil refuses requests
	Info   Info            // how we introduce ourselves
	Logger *slog.Logger    // nil is silent

	// Redact hides secrets in what failures say and in a child's stderr. Nil
	// hides nothing.
	Redact *redact.Redactor

	// HandshakeOnly says that the upstream is known to want the initialize
	// handshake: it is not asked whether it speaks the stateless era.
	HandshakeOnly bool

	// HostEra returns the era of the host, false if no host is known. In the
	// handshake era the upstream is asked for that handshake first, as the host
	// itself would: one that speaks both eras can ask the host something in the
	// middle of a call only there, and may refuse the handshake after
	// server/discover. Nil is no host.
	HostEra func() (transports.Era, bool)

	// Login gives HTTP requests their authorization. Zero is what the headers of
	// the config say, and no more.
	Login Login

	// Mark adds what each HTTP request says of who makes it to its headers. Nil is
	// nothing.
	Mark func(http.Header)

	// Env are variables that a child gets whatever its entry says, as NAME=value.
	Env []string

	// Trace notes what a child does that has a sandbox. Nil does not.
	Trace *sandbox.Trace

	// Fence has a child killed when its deadline passes, also while this process is
	// stopped. Nil if unset.
	Fence *guard.Fence

	// Tap shows the messages of the connection. Nil if unset.
	Tap *tap.Tap

	// Cork holds back what is sent to the upstream and what its messages lead
	// to, while those of one read are handled. Nil if unset.
	Cork *wire.Cork

	// Throttle is called by what reads the upstream before it reads on, outside
	// of any hold of Cork. It may block while hosts do not read. Nil if unset.
	Throttle func()

	roots  *x509.CertPool // who signs the certificates of upstreams; nil is whom the system trusts
	timing timing
}

// A Login is how requests to an HTTP upstream are authorized.
type Login struct {
	// Transport returns a transport that authorizes the requests it passes on. Its
	// own errors are *transports.Failure; nothing was sent then. Nil if unset.
	Transport func(http.RoundTripper) http.RoundTripper
	// Hint says what to do about an answer with status 401 or 403, empty is not
	// known, and whether a person's login would mend it. It is not nil where Transport
	// is not.
	Hint func(*http.Response) (text string, login bool)
}

// timing are the waits that tests shorten. Zero is the usual one.
type timing struct {
	stopGrace  time.Duration
	bestEffort time.Duration
	ping       time.Duration
	reopen     time.Duration
	http       httpPatience
}
