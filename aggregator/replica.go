package aggregator

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dynmcp/dynmcp/aggregator/internal/listing"
	"github.com/dynmcp/dynmcp/aggregator/internal/notify"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// A replicaLink is a session of another replica of the cluster, about one server that
// runs here. To that replica the server is as if it were its own child: it gets the
// server's own introduction, lists and answers, and its hosts are asked what the server
// asks in their calls. Which of its hosts that is, what they may see and how, is decided
// there.
//
// What cannot be two replicas' at once is told apart here as between hosts: ids and
// progress tokens, subscriptions, the log level.
type replicaLink struct {
	agg        *Aggregator
	session    *session
	peer       *peer
	conn       *upstream.Conn
	edge       *host.Stdio
	introduced bool // it has had an answer to initialize or server/discover; of the reader alone

	mu       sync.Mutex
	last     int64         // the id of the last request that was taken
	inFlight int           // requests
	notSent  []int64       // those that the end of the connection kept from the server
	retired  bool          // it was told that the connection takes no more calls
	idle     chan struct{} // made when the connection has ended; closed when nothing is in flight
}

// ServeReplica serves a server that runs here, or is started here, to another replica,
// whose upstream.OpenReplica is at the other end of stream. principal is the user whose
// own the server is, where it is placed so; else it is not looked at. A server of both eras
// that is started for it is spoken to in the one in which the other replica begins, that of
// its first host.
//
// ServeReplica returns when the other replica closes the stream, the server has ended or
// ctx ends, and has closed the stream then. The error says why the server cannot be served:
// it is a *UnknownServerError, a *transports.Failure or that of ctx, and the other replica
// was told.
//
// here is the caller's right to run the server here, which Options.Place knows. When it is
// lost, or the server is to move, before the server is there, that is not waited for: where
// it would be placed then, somebody may be waiting for this very right.
func (a *Aggregator) ServeReplica(ctx context.Context, stream io.ReadWriteCloser, server, principal string, here Placement) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(a.ctx, cancel)()
	defer stream.Close()
	u, err := a.upstreamOf(server, principal)
	var conn *upstream.Conn
	release := func() {}
	if err == nil {
		var era transports.Era
		if stream, era, err = hostEraThere(ctx, stream); err != nil {
			return err
		}
		p := a.peerOf(u)
		p.askedEra.Store(&era)
		conn, release, err = acquireHere(ctx, u, here)
		p.askedEra.CompareAndSwap(&era, nil)
	}
	if err != nil {
		defer context.AfterFunc(ctx, func() { stream.Close() })()
		_, _ = stream.Write(append(bytes.Join(endMessage(transports.ReplicaEnd{Failure: blame(server, err)}), nil), '\n'))
		return err
	}
	defer release()

	l := &replicaLink{agg: a, peer: a.peerOf(u), conn: conn, edge: host.NewConn(stream, &a.cork)}
	l.session = l.open(server, principal)
	defer l.session.end()
	conversation := host.NewSession(l.session.id, l.edge, host.Options{HandleRequest: l.handle, HandleNotification: l.notified, Logger: a.log})
	l.session.attach(conversation)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		defer a.work.Recover()
		select {
		case <-u.Gone():
			conn.Retire()
		case <-conn.Done():
		case <-ctx.Done():
			return
		}
		select {
		case <-conn.Done():
			l.sayEnd(ctx)
			cancel()
		case <-ctx.Done():
		}
	}()
	err = l.edge.Serve(ctx, conversation)
	cancel()
	<-watched
	if a.ctx.Err() != nil || conn.Err() != nil {
		return nil
	}
	return err
}

// upstreamOf returns the upstream of a server that runs once, or once for a user.
func (a *Aggregator) upstreamOf(server, principal string) (*lazy.Upstream, error) {
	u := a.set.Get(server)
	if u == nil {
		return nil, &UnknownServerError{Name: server}
	}
	if u.Server.Placement() != schema.PlacePrincipal {
		return u, nil
	}
	own, gone, err := a.set.Own(u, principalOwner+principal, principalIdle)
	if gone != nil {
		a.peers.Delete(gone)
	}
	return own, err
}

// hostEraThere returns the era in which another replica would speak to a server if it ran
// there, which its first line tells, and the stream with that line.
func hostEraThere(ctx context.Context, stream io.ReadWriteCloser) (io.ReadWriteCloser, transports.Era, error) {
	defer context.AfterFunc(ctx, func() { stream.Close() })()
	in := bufio.NewReader(stream)
	line, err := in.ReadBytes('\n')
	if err != nil {
		return nil, 0, cmp.Or(ctx.Err(), err)
	}
	era := transports.Handshake
	if wire.EqualString(wire.Get(line, "method"), "server/discover") {
		era = transports.Stateless
	}
	return struct {
		io.Reader
		io.WriteCloser
	}{io.MultiReader(bytes.NewReader(line), in), stream}, era, nil
}

// acquireHere is Acquire of an upstream that must be this replica's own: a link to another
// replica, which ran it before, is let go, and the error is upstream.ErrMoved when it may
// not be started here any more.
func acquireHere(ctx context.Context, u *lazy.Upstream, here Placement) (*upstream.Conn, func(), error) {
	ctx, cancel := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel(nil)
	watching.Go(func() {
		select {
		case <-here.Moving:
			cancel(upstream.ErrMoved)
		case <-here.Lost:
			cancel(upstream.ErrMoved)
		case <-ctx.Done():
		}
	})
	for range maxMoves {
		conn, release, err := u.Acquire(ctx)
		if err != nil && context.Cause(ctx) == upstream.ErrMoved {
			return nil, nil, upstream.ErrMoved
		}
		if err != nil || !conn.Remote() {
			return conn, release, err
		}
		u.Retire(conn)
		release()
	}
	return nil, nil, upstream.ErrMoved
}

// open returns the session of the link. Unless the server is a user's own, nobody else's
// session has its principal: what it is told and asked goes by what it has in flight.
func (l *replicaLink) open(server, user string) *session {
	s := l.agg.openSession(principal{})
	s.principal.name = user
	if l.peer.upstream.Owner == "" {
		s.principal.name = "\x00" + s.id
	}
	s.only, s.replica, s.shares, s.lasts = server, true, true, true
	s.recipient.Initialize()
	s.declared = declaration{capabilities: json.RawMessage(ableToAll)}
	return s
}

// blame returns the failure that a server cannot be served for, nil if it is not to blame.
func blame(server string, err error) json.RawMessage {
	var failure *transports.Failure
	var unknown *UnknownServerError
	switch {
	case errors.As(err, &unknown):
		failure = &transports.Failure{Upstream: server, Code: transports.CodeNotPlaced, Outcome: transports.NotSent, Cause: errors.New("the replica that is to run it does not know it: its config is another")}
	case errors.Is(err, upstream.ErrMoved), errors.Is(err, lazy.ErrClosed), errors.Is(err, context.Canceled):
		return nil
	case !errors.As(err, &failure):
		failure = &transports.Failure{Upstream: server, Code: transports.CodeStartFailed, Outcome: transports.NotSent, Cause: err}
	case failure.Code == transports.CodeShuttingDown:
		return nil
	}
	return failure.Record()
}

func endMessage(end transports.ReplicaEnd) [][]byte {
	said, err := json.Marshal(end)
	if err != nil {
		said = []byte(`{}`) // not reached: it is numbers and JSON
	}
	return replicaMessage(transports.MethodReplicaEnded, said)
}

// replicaMessage returns a notification of ours, beside what is the server's.
func replicaMessage(method string, said json.RawMessage) [][]byte {
	message := wire.Notification(wire.Quote(method))
	message[len(message)-1] = fmt.Appendf(nil, `,%q:%s}`, transports.MemberReplica, said)
	return message
}

// sayEnd tells the other replica that the connection to the server has ended, why, and
// which of its requests can be made again.
func (l *replicaLink) sayEnd(ctx context.Context) {
	idle := make(chan struct{})
	l.mu.Lock()
	l.idle = idle
	if l.inFlight == 0 {
		close(idle)
	}
	l.mu.Unlock()
	select {
	case <-idle: // the end of the connection ends every call
	case <-ctx.Done():
		return
	}
	l.mu.Lock()
	end := transports.ReplicaEnd{Failure: blame(l.conn.Name(), l.conn.Loss()), Last: l.last, NotSent: l.notSent}
	l.mu.Unlock()
	_ = l.edge.Write(nil, host.Essential, endMessage(end)...)
}

// begin counts a request; false is that it comes too late, which sayEnd says.
func (l *replicaLink) begin(r *host.Request) bool {
	id, _ := transports.ParseID(r.ID)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.idle != nil {
		return false
	}
	l.last = id
	l.inFlight++
	return true
}

func (l *replicaLink) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inFlight--; l.inFlight == 0 && l.idle != nil {
		close(l.idle)
	}
}

// handle passes a request on, unless what it is about is kept here.
func (l *replicaLink) handle(r *host.Request) {
	if !l.begin(r) {
		return
	}
	r.Number = l.agg.lastRequest.Add(1)
	switch r.Method {
	case "initialize", "server/discover":
		if l.introduced && r.Method == "server/discover" {
			break // it asks whether the server lives
		}
		l.introduce(r)
		l.end()
		return
	case "tools/list", "resources/list", "resources/templates/list", "prompts/list":
		if page := l.page(r); page != nil {
			r.Reply(page, nil)
			l.end()
			return
		}
	case "logging/setLevel":
		if severity := notify.Severity(wire.Get(r.Params, "level")); severity >= 0 {
			l.session.recipient.SetLevel(notify.Level{Params: r.Params, Severity: severity})
			r.Params = l.peer.source().Verbose().Params
		}
	case "resources/subscribe", "resources/unsubscribe":
		uri, _ := wire.Text(wire.Get(r.Params, "uri"))
		subscribes := r.Method == "resources/subscribe"
		l.session.recipient.SetSubscribed(uri, subscribes)
		if subscribes {
			l.peer.seenURIs.add(uri) // so that the end of the subscription goes there too
		} else if l.agg.isSubscribed(l.peer.upstream, uri) {
			r.Reply(json.RawMessage(`{}`), nil)
			l.end()
			return
		}
	case "subscriptions/listen":
		l.agg.work.AnswerWithin(r, func(ctx context.Context) { l.listen(ctx, r) })
		l.end()
		return
	}
	l.pass(r)
}

// introduce answers with what the server said of itself, in its era.
func (l *replicaLink) introduce(r *host.Request) {
	info, stateless := l.conn.ServerInfo(), l.conn.Era() == transports.Stateless
	said := bytes.Clone(info.Extra)
	if !wire.IsObject(said) {
		said = []byte(`{}`)
	}
	set := func(member string, value json.RawMessage) {
		if value != nil {
			said = wire.Set(said, member, value)
		}
	}
	set("capabilities", info.Capabilities)
	if info.Instructions != "" {
		set("instructions", wire.Quote(info.Instructions))
	}
	switch initialize := r.Method == "initialize"; {
	case initialize && stateless:
		r.Reply(nil, &wire.Error{Code: transports.CodeUnsupportedVersion, Message: "unsupported protocol version", Data: fmt.Appendf(nil, `{"supported":[%q]}`, info.ProtocolVersion)})
		return
	case initialize:
		if capabilities := wire.Get(r.Params, "capabilities"); wire.IsObject(capabilities) {
			l.session.mu.Lock()
			l.session.declared.capabilities = bytes.Clone(capabilities)
			l.session.mu.Unlock()
		}
		set("protocolVersion", wire.Quote(info.ProtocolVersion))
		set("serverInfo", info.Implementation)
	case !stateless:
		r.Reply(nil, unknownMethod(r.Method))
		return
	default:
		set("supportedVersions", fmt.Appendf(nil, `[%q]`, info.ProtocolVersion))
		if info.Implementation != nil {
			said = transports.SetMeta(said, mcp.MetaKeyServerInfo, info.Implementation)
		}
	}
	l.introduced = true
	r.Reply(said, nil)
}

// pagePrefix begins the cursors of page, pageBytes is how long its pages are at least.
const (
	pagePrefix = "dynmcp-"
	pageBytes  = 1 << 20
)

// page returns a page of a list as the server listed it; nil if the list is not known, or
// the page is the server's.
func (l *replicaLink) page(r *host.Request) json.RawMessage {
	from := 0
	if cursor := wire.Get(r.Params, "cursor"); cursor != nil {
		text, _ := wire.Text(cursor)
		number, ok := strings.CutPrefix(text, pagePrefix)
		var err error
		if from, err = strconv.Atoi(number); !ok || err != nil || from < 0 {
			return nil
		}
	}
	which, _ := listing.Of(r.Method)
	entries, ok := l.peer.listing.Entries(l.conn, which)
	if !ok {
		return nil
	}
	out := fmt.Appendf(nil, `{%q:[`, which.Key)
	at := min(from, len(entries))
	for ; at < len(entries) && len(out) < pageBytes; at++ {
		if at > from {
			out = append(out, ',')
		}
		out = append(out, entries[at]...)
	}
	out = append(out, ']')
	if at < len(entries) {
		out = fmt.Appendf(out, `,"nextCursor":"%s%d"`, pagePrefix, at)
	}
	return append(out, '}')
}

// notifyReplicas tells other replicas that use a server which of its lists have changed,
// once they are known here.
func (a *Aggregator) notifyReplicas(u *lazy.Upstream, changed map[string]bool) {
	for _, s := range a.peerOf(u).source().Sessions() {
		for method := range changed {
			if s.replica {
				s.peer.Notify(method, nil)
			}
		}
	}
}

// listen keeps a stream of notifications open: all comes on the link itself, so there is
// nothing to it but what it subscribes to.
func (l *replicaLink) listen(ctx context.Context, r *host.Request) {
	granted := wire.Get(r.Params, "notifications")
	if !wire.IsObject(granted) {
		r.Reply(nil, invalid(`subscriptions/listen needs "notifications"`))
		return
	}
	subscribe := func(member string, about func(string) json.RawMessage) map[string]bool {
		asked := wire.Get(granted, member)
		if asked == nil {
			return nil
		}
		var mu sync.Mutex
		var asking sync.WaitGroup
		names := map[string]bool{}
		for raw := range wire.Elements(asked) {
			name, _ := wire.Text(raw)
			asking.Go(func() {
				defer l.agg.work.Recover()
				err := l.conn.Subscribe(ctx, about(name))
				mu.Lock()
				defer mu.Unlock()
				names[name] = err == nil
			})
		}
		asking.Wait()
		var kept []string
		for raw := range wire.Elements(asked) {
			if name, _ := wire.Text(raw); names[name] {
				kept = append(kept, name)
			} else {
				delete(names, name)
			}
		}
		granted = wire.Set(granted, member, quoted(kept))
		return names
	}
	listening := notify.Stream{ID: r.ID, URIs: subscribe("resourceSubscriptions", aboutURI), Tasks: subscribe("taskIds", aboutTask)}
	for uri := range listening.URIs {
		l.peer.seenURIs.add(uri)
	}
	s := l.session
	s.recipient.AddStream(listening)
	s.peer.Notify("notifications/subscriptions/acknowledged", transports.SetMeta(wire.Set([]byte(`{}`), "notifications", granted), transports.MetaSubscriptionID, r.ID))
	select {
	case <-ctx.Done():
	case <-l.conn.Done():
		s.recipient.RemoveStream(listening)
		return
	}
	s.recipient.RemoveStream(listening)
	s.dropSubscriptions(listening.URIs)
	s.dropTasks(listening.Tasks)
}

// notified passes on what the other replica, or a host there, tells the server.
func (l *replicaLink) notified(method string, params json.RawMessage) {
	switch method {
	case "notifications/initialized": // the server was, by this replica
	case "notifications/cancelled": // the session has ended the request
	case "notifications/progress":
		l.session.passProgress(params)
	default:
		if err := l.conn.Notify(method, params); err != nil {
			l.agg.log.Debug("notification not sent", "upstream", l.conn.Name(), "err", err)
		}
	}
}

// pass sends a request on to the server as it is, over the connection that the link is
// about.
func (l *replicaLink) pass(r *host.Request) {
	c, err := l.session.newCall(r, route{upstream: l.peer.upstream, link: l, params: r.Params, task: wire.Get(r.Params, "task") != nil})
	if err != nil {
		r.Reply(nil, err)
		l.end()
		return
	}
	c.Timeout = new(time.Duration) // it is limited where it comes from
	c.send(r, nil, nil)
}

// answered passes the server's answer on. Why the connection ended is told for all calls
// that it cut off at once.
func (l *replicaLink) answered(c *forwardedCall, result json.RawMessage, err error) {
	defer l.end()
	r, conn, _ := c.finish(result, err)
	var failure *transports.Failure
	switch {
	case err == nil:
		if c.route.task && wire.Get(result, "task") != nil {
			s := c.session
			conn.KeepProgress(&c.Call, func(params json.RawMessage) { s.peer.Notify("notifications/progress", params) })
		}
		r.Reply(result, nil)
	case !errors.As(err, &failure) || conn.Err() == nil:
		r.Reply(nil, err)
	case failure.Outcome == transports.Executed:
		r.Reply(nil, err)
	case isClosed(conn.Done()):
		if failure.Outcome == transports.NotSent {
			id, _ := transports.ParseID(r.ID)
			l.mu.Lock()
			l.notSent = append(l.notSent, id)
			l.mu.Unlock()
		}
	default:
		l.mu.Lock()
		first := !l.retired
		l.retired = true
		l.mu.Unlock()
		if first {
			_ = l.edge.Write(nil, host.Essential, replicaMessage(transports.MethodReplicaRetired, []byte(`{}`))...)
		}
		r.Reply(nil, err)
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
