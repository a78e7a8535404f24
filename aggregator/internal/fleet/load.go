package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/internal/listing"
	"github.com/dynmcp/dynmcp/aggregator/internal/notify"
	"github.com/dynmcp/dynmcp/aggregator/internal/remote"
	"github.com/dynmcp/dynmcp/aggregator/internal/sessions"
	"github.com/dynmcp/dynmcp/aggregator/internal/task"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/approval"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// declarationWait is how long a strict start waits for the declaration of a host. After that nothing is
// declared: a declared request must not be refused later, and the failure to reach a server must
// show without a host.
const declarationWait = 3 * time.Second

// load brings an upstream up, in a load of package lazy: it connects, performs the handshake and
// lists the tools, or leaves nothing behind. An upstream that ends when asked for its era is
// started again without that question, one that moves to another replica meanwhile is placed
// again, and one whose entry names no transport, and that refuses streamable HTTP, is tried
// with SSE.
func (f *Fleet) load(ctx context.Context, u *lazy.Upstream) (*upstream.Conn, error) {
	conn, err := f.loadOnce(ctx, u)
	if errors.Is(err, upstream.ErrProbe) {
		f.Of(u).handshakeOnly.Store(true)
		conn, err = f.loadOnce(ctx, u)
	}
	for moves := 1; errors.Is(err, upstream.ErrMoved) && moves < remote.MaxMoves && ctx.Err() == nil; moves++ {
		conn, err = f.loadOnce(ctx, u)
	}
	if p := f.Of(u); u.Server.TransportOpen && upstream.MayNeedSSE(err) && p.speaksSSE.CompareAndSwap(false, true) {
		sse, sseErr := f.loadOnce(ctx, u)
		if sseErr == nil {
			return sse, nil
		}
		p.speaksSSE.Store(false)
		return nil, bothFailed(err, sseErr)
	}
	return conn, err
}

// bothFailed returns the error of a server that was tried with streamable HTTP and then with SSE: a login that
// is missing, otherwise the first one with the cause of the second.
func bothFailed(first, second error) error {
	a, ok1 := errors.AsType[*transports.Failure](first)
	b, ok2 := errors.AsType[*transports.Failure](second)
	switch {
	case !ok1 || !ok2:
		return first
	case b.Code == transports.CodeAuthRequired:
		return second
	}
	both := *a
	both.Cause = fmt.Errorf("%w; then, as a server with SSE: %w", a.Cause, b.Cause)
	return &both
}

func (f *Fleet) loadOnce(ctx context.Context, u *lazy.Upstream) (*upstream.Conn, error) {
	began := time.Now()
	p := f.Of(u)
	p.RootsAsked.Forget()
	server, err := f.Run.Entry(ctx, u, connectedTo(p))
	if err != nil {
		return nil, err
	}
	conn, err := f.placer.Connect(ctx, u, server, optionsOf(p), f.Open)
	if err != nil {
		return nil, err
	}
	f.followEntry(u, server, conn)
	if err := f.introduceTo(ctx, p, conn); err != nil {
		conn.Close()
		return nil, err
	}
	p.handshakeOnly.Store(conn.Era() == transports.Handshake)
	p.noteEra(conn)
	p.Record.Starts.Add(1)
	p.Since.Store(time.Now().UnixNano())
	if first, _ := p.declaration(); conn.Era() == transports.Handshake && u.Server.Transport != schema.Stdio && wire.Get(first.Capabilities, "roots") != nil {
		p.RootsAsked.AwaitStream(conn)
	}
	f.Log.Debug("loaded", "upstream", u.Server.Name, "took", time.Since(began).Round(time.Millisecond))
	return conn, nil
}

// connectedTo returns the entry of an upstream with the transport to use.
func connectedTo(p *Endpoint) schema.Server {
	server := p.Upstream.Server
	if p.speaksSSE.Load() {
		server.Transport = schema.SSE
	}
	return server
}

// optionsOf returns the options of a connection to an upstream.
func optionsOf(p *Endpoint) upstream.ConnOptions {
	opts := p.fleet.Run.Connection(p.Upstream)
	opts.Peer, opts.Host, opts.HandshakeOnly = p, p.host, p.handshakeOnly.Load()
	opts.Throttle = func() { awaitReaders(p.fleet.Sessions.Exclusive()) }
	return opts
}

// introduceTo performs the handshake on a new connection, lists the upstream's content, and sends
// it the levels and subscriptions of hosts.
func (f *Fleet) introduceTo(ctx context.Context, p *Endpoint, conn *upstream.Conn) error {
	capabilities, err := f.declarationTo(ctx, p, conn)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, p.Upstream.Server.LoadTimeout)
	defer cancel()
	if err := conn.Handshake(ctx, capabilities); err != nil {
		return err
	}
	l, err := listing.Fetch(ctx, conn, f.ExtensionLists, f.Log)
	if err != nil {
		return conn.StartFailure("listing", err)
	}
	if p.Upstream.Server.Mounted != "" {
		if err := f.checkMounted(p.Upstream.Server.Name, l); err != nil {
			return conn.StartFailure("listing", err)
		}
	}
	if approval.Needed(p.Upstream.Server) != approval.Off {
		listing.ReadPages(ctx, conn, l, f.Log)
	}
	l.Tasks, l.Declared = task.Offered(conn), catalog.AbilitiesOf(capabilities)
	l.AsksRoots = p.asksRoots.Load() || p.Record.Entry.AsksRoots.Load()
	p.relatesTasks.Store(l.Tasks == catalog.HandshakeTasks)
	p.Listing.Adopt(conn, l)
	levels{conn: p.Source().Verbose()}.Send(ctx, f)
	p.renewSubscriptions(conn)
	return nil
}

// checkMounted returns an error for the invalid listing of a server whose entry is in the tree. For
// other servers that is a warning: there it affects only the tool.
func (f *Fleet) checkMounted(server string, l *catalog.Listing) error {
	broken, clashes := f.Catalog.Check(server, l)
	switch {
	case clashes != nil:
		return errors.New(strings.Join(clashes, "; "))
	case broken != nil && !f.SkipBroken:
		return fmt.Errorf("%s (--ignore-broken-tool skips such tools)", strings.Join(broken, "; "))
	}
	return nil
}

// declarationTo returns the capabilities to declare to an upstream: those of the first host, or of
// its owner. In single-wrap mode the child is started before the host's handshake, and may end
// before it.
func (f *Fleet) declarationTo(ctx context.Context, p *Endpoint, conn *upstream.Conn) (json.RawMessage, error) {
	var late <-chan time.Time
	if f.Strict && !f.SingleWrap {
		late = time.After(declarationWait)
	}
	select {
	case <-f.Declared.Known:
	case <-late:
		return nil, nil
	case <-conn.Done():
		return nil, conn.StartFailure("start", conn.Err())
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	first, _ := p.declaration()
	if first.Era == transports.Stateless && wire.IsObject(wire.Get(first.Capabilities, "roots")) {
		// In that era they cannot change, but an upstream that has stopped waiting for them is
		// told about them this way.
		roots := wire.Set(wire.Get(first.Capabilities, "roots"), "listChanged", []byte("true"))
		return wire.Set(first.Capabilities, "roots", roots), nil
	}
	return first.Capabilities, nil
}

// host returns the era of the first host, or of the owner, false before there is one; for another
// replica, that of the first host there. A run that this process wraps for its host also gets the
// name of that.
func (p *Endpoint) host() (upstream.Host, bool) {
	if era := p.AskedEra.Load(); era != nil {
		return upstream.Host{Era: *era}, true
	}
	first, known := p.declaration()
	if !p.fleet.SingleWrap || p.fleet.Places == nil {
		first.Host = ""
	}
	return upstream.Host{Era: first.Era, Name: first.Host}, known
}

// Wanted reports whether an upstream that has moved is loaded again at once: it is eager, or hosts
// wait for its notifications.
func (f *Fleet) Wanted(u *lazy.Upstream) bool {
	return (!u.Server.Lazy() || f.Of(u).hasSubscribers()) && f.Context.Err() == nil && f.Set.Has(u)
}

// awaitReaders waits while a host is far behind. Hosts that share a run do not delay upstreams.
func awaitReaders(exclusive []*notify.Recipient[*sessions.Session]) {
	for _, to := range exclusive {
		if h, ok := to.Peer().(*host.Session); ok {
			h.AwaitReader()
		}
	}
}

// maxStartWait is how long a caller waits for an upstream that is being started before it is told
// to call again: hosts give up after a minute.
const maxStartWait = 45 * time.Second

// Acquire gets a connection for a request through Acquire of the upstream or of the session's own
// one, or with load through Load. It waits no longer than a host does. A host that sent a progress
// token is told about the wait. Without r, on the control plane, it waits until ctx ends.
func (f *Fleet) Acquire(ctx context.Context, s *sessions.Session, r *host.Request, u *lazy.Upstream, load bool) (*upstream.Conn, func(), error) {
	u, err := f.For(s, u)
	if err != nil {
		return nil, nil, err
	}
	acquire := u.Acquire
	if load {
		acquire = u.Load
	}
	if r == nil {
		return acquire(ctx)
	}
	if ctx.Err() != nil {
		return nil, nil, r.CutOff(u.Server.Name, transports.NotSent)
	}
	waiting, cancel := context.WithTimeout(ctx, maxStartWait)
	defer cancel()
	if token := wire.Get(r.Meta, "progressToken"); token != nil {
		stop := f.Work.ReportWait(waiting, r.Peer, token, "starting "+u.Server.Name)
		defer stop()
	}
	conn, release, err := acquire(waiting)
	switch {
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		err = r.CutOff(u.Server.Name, transports.NotSent)
	case errors.Is(err, lazy.ErrClosed):
		err = replaced(u.Server.Name)
	case errors.Is(err, context.DeadlineExceeded) && waiting.Err() != nil:
		err = &transports.Failure{Upstream: u.Server.Name, Outcome: transports.NotSent, Code: transports.CodeTimeout,
			Cause: errors.New("it is still starting"), Hint: "call again; the start goes on"}
	}
	return conn, release, err
}
