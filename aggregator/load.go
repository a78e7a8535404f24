package aggregator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

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
	for moves := 1; errors.Is(err, upstream.ErrMoved) && moves < maxMoves && ctx.Err() == nil; moves++ {
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
	p.forgetRoots()
	server := u.Server
	if p.speaksSSE.Load() {
		server.Transport = schema.SSE
	}
	conn, err := a.connect(ctx, u, server, upstream.Options{
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
	})
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
	p.holdForStream(conn)
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
	l, err := a.listAll(ctx, conn)
	if err != nil {
		return conn.StartFailure("listing", err)
	}
	if p.upstream.Server.Mounted != "" {
		if err := a.checkMounted(p.upstream.Server.Name, l); err != nil {
			return conn.StartFailure("listing", err)
		}
	}
	l.AsksRoots = p.asksRoots.Load() || p.record.entry.asksRoots.Load()
	p.relatesTasks.Store(l.Tasks == catalog.HandshakeTasks)
	p.listing.adopt(conn, l)
	a.sendLevels(ctx, map[*upstream.Conn]logLevel{conn: p.verbose()})
	a.renewSubscriptions(p.upstream, conn)
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
	case <-a.sessions.declared:
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

// A list is one of those that make up a listing.
type list struct {
	capability  string // that offers it
	method, key string
	changed     string                                           // the notification that it has
	from        func(*catalog.Listing) *[]json.RawMessage        // what an upstream listed
	shown       func(*snapshot, *catalog.View) []json.RawMessage // what hosts read
}

// lists begins with the one that an upstream is of no use without.
var lists = []list{
	{"tools", "tools/list", "tools", "notifications/tools/list_changed",
		func(l *catalog.Listing) *[]json.RawMessage { return &l.Tools }, (*snapshot).tools},
	{"resources", "resources/list", "resources", "notifications/resources/list_changed",
		func(l *catalog.Listing) *[]json.RawMessage { return &l.Resources }, func(_ *snapshot, v *catalog.View) []json.RawMessage { return v.Resources() }},
	{"resources", "resources/templates/list", "resourceTemplates", "notifications/resources/list_changed",
		func(l *catalog.Listing) *[]json.RawMessage { return &l.Templates }, func(_ *snapshot, v *catalog.View) []json.RawMessage { return v.Templates() }},
	{"prompts", "prompts/list", "prompts", "notifications/prompts/list_changed",
		func(l *catalog.Listing) *[]json.RawMessage { return &l.Prompts }, func(_ *snapshot, v *catalog.View) []json.RawMessage { return v.Prompts() }},
}

// otherLists bounds how long a load waits for resources and prompts once it has
// the tools, at most half of what is left of load_timeout.
const otherLists = 5 * time.Second

// listAll asks an upstream for everything it advertised, all lists at once. Only
// its tools decide whether it can be used: any other list that fails, or takes
// much longer than they do, is empty and named in Failed.
func (a *Aggregator) listAll(loading context.Context, conn *upstream.Conn) (*catalog.Listing, error) {
	info := conn.ServerInfo()
	l := &catalog.Listing{Protocol: info.ProtocolVersion, Tasks: offeredTasks(conn), Capabilities: info.Capabilities, Info: info.Implementation, Instructions: info.Instructions, Rest: info.Extra, Failed: map[string]string{}}
	ctx, cancel := context.WithCancel(loading)
	defer cancel()
	errs := make([]error, len(lists))
	var others sync.WaitGroup
	for i, which := range lists[1:] {
		others.Go(func() { *which.from(l), errs[1+i] = a.listOne(ctx, conn, which) })
	}
	l.Tools, errs[0] = a.listOne(ctx, conn, lists[0])
	patience := time.Duration(0)
	if errs[0] == nil {
		patience = otherLists
		if end, ok := ctx.Deadline(); ok {
			patience = min(patience, time.Until(end)/2)
		}
	}
	defer time.AfterFunc(patience, cancel).Stop()
	others.Wait()
	if err := cmp.Or(errs...); errs[0] != nil || err != nil && (conn.Err() != nil || loading.Err() != nil) {
		return nil, err
	}
	for i, err := range errs {
		switch {
		case errors.Is(err, context.Canceled):
			l.Failed[lists[i].method] = lists[i].method + ": no answer in time"
		case err != nil:
			l.Failed[lists[i].method] = err.Error()
		}
	}
	return l, nil
}

// listOne returns one list, empty if its capability is not advertised. One that
// is advertised and not known is empty as well: real servers do this. A panic is
// an error, for it runs on a goroutine whose caller waits for it.
func (a *Aggregator) listOne(ctx context.Context, conn *upstream.Conn, which list) (entries []json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			a.log.Error("panic", "panic", p, "stack", string(debug.Stack()))
			entries, err = nil, fmt.Errorf("%s: internal error: %v", which.method, p)
		}
	}()
	if !conn.ServerInfo().Has(which.capability) {
		return nil, nil
	}
	entries, err = conn.List(ctx, which.method, which.key)
	if rpc, ok := errors.AsType[*wire.Error](err); ok && rpc.Code == wire.CodeMethodNotFound {
		a.log.Warn("advertised but not known, taken as empty", "upstream", conn.Name(), "method", which.method)
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", which.method, err)
	}
	return entries, nil
}

// installed logs what is wrong with the catalogue that was not wrong before,
// and has hosts notified.
func (a *Aggregator) installed(before *catalog.View) {
	known := map[string]bool{}
	conflicts, warnings := a.problems(before)
	for _, w := range slices.Concat(conflicts, warnings) {
		known[w] = true
	}
	conflicts, warnings = a.problems(a.catalog.View())
	for _, w := range conflicts {
		if !known[w] {
			a.log.Error(w)
		}
	}
	for _, w := range warnings {
		if !known[w] {
			a.log.Warn(w)
		}
	}
	a.sessions.markDirty()
}

// problems says what is wrong with a view: paths of the tree that nothing can be called
// by, and what is left out or without effect.
func (a *Aggregator) problems(view *catalog.View) (conflicts, warnings []string) {
	warnings = slices.Concat(view.Collisions(), view.Warnings(), pinWarnings(a.config(), view))
	if slices.Contains(a.config().Expose, schema.ExposeTree) {
		var ofTree []string
		conflicts, ofTree = NewTree(a.config()).Problems(view)
		warnings = append(warnings, ofTree...)
	}
	return conflicts, warnings
}
