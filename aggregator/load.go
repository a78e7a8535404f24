package aggregator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/internal/listing"
	"github.com/dynmcp/dynmcp/aggregator/internal/remote"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// firstWords is how long a strict start waits for a host to say what it can do.
// After that nothing is declared: what is declared must not be refused when it is
// asked for, and that a server cannot be reached must show without a host.
const firstWords = 3 * time.Second

// load brings an upstream up: connect, handshake, its tools, or nothing. It is
// what lazy calls a load. An upstream that does not survive being asked for its
// era is started a second time, without that, and one that moves to another replica
// meanwhile is placed again; one whose entry leaves its transport
// open, and that refuses streamable HTTP, is asked for SSE.
func (a *Aggregator) load(ctx context.Context, u *lazy.Upstream) (*upstream.Conn, error) {
	conn, err := a.loadOnce(ctx, u)
	if errors.Is(err, upstream.ErrProbe) {
		a.peerOf(u).handshakeOnly.Store(true)
		conn, err = a.loadOnce(ctx, u)
	}
	for moves := 1; errors.Is(err, upstream.ErrMoved) && moves < remote.MaxMoves && ctx.Err() == nil; moves++ {
		conn, err = a.loadOnce(ctx, u)
	}
	if p := a.peerOf(u); u.Server.TransportOpen && upstream.MaySpeakSSE(err) && p.speaksSSE.CompareAndSwap(false, true) {
		sse, sseErr := a.loadOnce(ctx, u)
		if sseErr == nil {
			return sse, nil
		}
		p.speaksSSE.Store(false)
		a.log.Debug("no SSE either", "upstream", u.Server.Name, "err", sseErr)
	}
	return conn, err
}

func (a *Aggregator) loadOnce(ctx context.Context, u *lazy.Upstream) (*upstream.Conn, error) {
	began := time.Now()
	p := a.peerOf(u)
	p.rootsAsked.Forget()
	server := u.Server
	if p.speaksSSE.Load() {
		server.Transport = schema.SSE
	}
	conn, err := a.placer.Connect(ctx, u, server, upstream.Options{
		Peer:    p,
		Info:    upstream.Info{Name: "dynmcp", Version: a.opts.Version},
		Logger:  a.log,
		Redact:  a.opts.Redact,
		HostEra: p.hostEra,
		Env:     a.opts.ChildEnv(a.config(), u.Server.Name),
		Mark:    func(h http.Header) { a.opts.Mark(u.Server.Name, h) },
		Login:   a.opts.Login(u.Server),

		Cork:     &a.cork,
		Throttle: a.throttle,

		HandshakeOnly: p.handshakeOnly.Load(),
	}, a.open)
	if err != nil {
		return nil, err
	}
	if err := a.introduceTo(ctx, p, conn); err != nil {
		conn.Close()
		return nil, err
	}
	p.handshakeOnly.Store(conn.Era() == transports.Handshake)
	p.noteEra(conn)
	p.record.starts.Add(1)
	p.since.Store(time.Now().UnixNano())
	if first, _ := p.declaration(); conn.Era() == transports.Handshake && u.Server.Transport != schema.Stdio && wire.Get(first.capabilities, "roots") != nil {
		p.rootsAsked.AwaitStream(conn)
	}
	a.log.Debug("loaded", "upstream", u.Server.Name, "took", time.Since(began).Round(time.Millisecond))
	return conn, nil
}

// introduceTo makes the handshake on a new connection, lists what the upstream
// has, and tells it what hosts have asked for so far.
func (a *Aggregator) introduceTo(ctx context.Context, p *peer, conn *upstream.Conn) error {
	capabilities, err := a.declarationTo(ctx, p, conn)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, p.upstream.Server.LoadTimeout)
	defer cancel()
	if err := conn.Handshake(ctx, capabilities); err != nil {
		return err
	}
	l, err := listing.Fetch(ctx, conn, a.log)
	if err != nil {
		return conn.StartFailure("listing", err)
	}
	if p.upstream.Server.Mounted != "" {
		if err := a.checkMounted(p.upstream.Server.Name, l); err != nil {
			return conn.StartFailure("listing", err)
		}
	}
	l.Tasks = offeredTasks(conn)
	l.AsksRoots = p.asksRoots.Load() || p.record.entry.asksRoots.Load()
	p.relatesTasks.Store(l.Tasks == catalog.HandshakeTasks)
	p.listing.Adopt(conn, l)
	levels{conn: p.source().Verbose()}.send(ctx, a)
	p.renewSubscriptions(conn)
	return nil
}

// checkMounted returns what is wrong with the listing of a server that has its entry in
// the tree. Of any other server that is a warning: there it costs nothing but the tool.
func (a *Aggregator) checkMounted(server string, l *catalog.Listing) error {
	broken, clashes := a.catalog.Check(server, l)
	switch {
	case clashes != nil:
		return errors.New(strings.Join(clashes, "; "))
	case broken != nil && !a.opts.IgnoreBrokenTools:
		return fmt.Errorf("%s (--ignore-broken-tool skips such tools)", strings.Join(broken, "; "))
	}
	return nil
}

// declarationTo returns the capabilities to declare to an upstream: those of the
// first host, or of its owner. In single-wrap mode the child is there before the host has spoken,
// and may end before it does.
func (a *Aggregator) declarationTo(ctx context.Context, p *peer, conn *upstream.Conn) (json.RawMessage, error) {
	var late <-chan time.Time
	if a.opts.Strict && !a.config().SingleWrap {
		late = time.After(firstWords)
	}
	select {
	case <-a.declared.known:
	case <-late:
		return nil, nil
	case <-conn.Done():
		return nil, conn.StartFailure("start", conn.Err())
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	first, _ := p.declaration()
	if first.era == transports.Stateless && wire.IsObject(wire.Get(first.capabilities, "roots")) {
		// Nothing of that era changes them, but an upstream that has given up waiting
		// for them is told so.
		roots := wire.Set(wire.Get(first.capabilities, "roots"), "listChanged", []byte("true"))
		return wire.Set(first.capabilities, "roots", roots), nil
	}
	return first.capabilities, nil
}

// hostEra returns the era of the first host, or of the owner, false before there is one;
// or that of the first host there, where it is loaded for another replica.
func (p *peer) hostEra() (transports.Era, bool) {
	if era := p.askedEra.Load(); era != nil {
		return *era, true
	}
	first, known := p.declaration()
	return first.era, known
}

// In a cluster a server runs once, or once for each user, on one of the replicas
// (schema.Server.Placement). Options.Place says on which, each time the server is loaded:
// here, as if there were no cluster, or elsewhere, where replica.go serves it to this
// replica. Nothing but the connection differs: what is listed, filtered, renamed and cut
// is so on the replica that the host is connected to.

// A Placement says where a server runs, for one connection to it.
type Placement = remote.Placement

// isWanted reports whether an upstream that has moved is loaded again at once: it is eager,
// or hosts wait for what it notifies them of.
func (a *Aggregator) isWanted(u *lazy.Upstream) bool {
	wanted := !u.Server.Lazy() || len(a.peerOf(u).source().Subscriptions()) > 0
	return wanted && a.ctx.Err() == nil && a.set.Has(u)
}
