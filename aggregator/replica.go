package aggregator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/dynmcp/dynmcp/aggregator/internal/fleet"
	"github.com/dynmcp/dynmcp/aggregator/internal/forward"
	"github.com/dynmcp/dynmcp/aggregator/internal/listing"
	"github.com/dynmcp/dynmcp/aggregator/internal/notify"
	"github.com/dynmcp/dynmcp/aggregator/internal/remote"
	"github.com/dynmcp/dynmcp/aggregator/internal/task"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// A replicaLink is a session of another replica of the cluster, about one server that
// runs here. The other replica uses the server as if it were its own child: it gets the
// server's own introduction, lists and answers, and passes the server's questions to its
// hosts. It decides which of its hosts are asked, and what they may see.
//
// Ids, progress tokens, subscriptions and the log level of replicas are kept apart here, as
// between hosts.
type replicaLink struct {
	agg        *Aggregator
	session    session
	endpoint   *fleet.Endpoint
	conn       *upstream.Conn
	edge       *host.Stdio
	retired    atomic.Bool // the replica was told that the connection takes no more calls
	introduced bool        // initialize or server/discover was answered; used by the reader only

	mu       sync.Mutex
	last     int64         // the id of the last request that was accepted
	inFlight int           // requests
	notSent  []int64       // ids of requests that the end of the connection kept from the server
	idle     chan struct{} // made when the connection has ended; closed when nothing is in flight
}

// ServeReplica serves a server that runs here, or is started here, to another replica,
// whose upstream.OpenReplica is at the other end of stream. principal is the user of a server
// that runs once for each user; otherwise it is ignored. A server of both eras that is started
// for it is used in the era of the other replica's first message, which is that of its first
// host.
//
// ServeReplica closes the stream. It returns when the other replica closes the stream, the
// server has ended or ctx ends. The error says why the server cannot be served: it is a
// *UnknownServerError, a *transports.Failure or that of ctx. The other replica was told it.
//
// here is the caller's lease to run the server here, which Options.Cluster knows. If it is lost,
// or the server is to move, before the server has started, ServeReplica does not wait for the
// start: the next replica may be waiting for this lease.
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
		if stream, era, err = remote.HostEra(ctx, stream); err != nil {
			return err
		}
		p := a.fleet.Of(u)
		p.AskedEra.Store(&era)
		conn, release, err = remote.AcquireHere(ctx, u, here)
		p.AskedEra.CompareAndSwap(&era, nil)
	}
	if err != nil {
		defer context.AfterFunc(ctx, func() { stream.Close() })()
		said := err
		if _, unknown := errors.AsType[*UnknownServerError](err); unknown {
			said = remote.Unknown(server)
		}
		_, _ = stream.Write(append(bytes.Join(remote.EndMessage(transports.ReplicaEnd{Failure: remote.ServerFailure(server, said)}), nil), '\n'))
		return err
	}
	defer release()

	l := &replicaLink{agg: a, endpoint: a.fleet.Of(u), conn: conn, edge: host.NewConn(stream, &a.cork)}
	l.session = l.open(server, principal)
	defer l.session.end()
	conversation := host.NewSession(l.session.ID, l.edge, host.SessionOptions{HandleRequest: l.handle, HandleNotification: l.notified, Logger: a.log})
	l.session.Join(conversation)
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

// upstreamOf returns the upstream of a server that runs once, or once for each user.
func (a *Aggregator) upstreamOf(server, principal string) (*lazy.Upstream, error) {
	u := a.set.Get(server)
	if u == nil {
		return nil, &UnknownServerError{Name: server}
	}
	if u.Server.Placement() != schema.PlacePrincipal {
		return u, nil
	}
	return a.fleet.Dedicated(u, fleet.PrincipalOwner+principal, fleet.PrincipalIdle)
}

// open returns the session of the link. Unless the server belongs to one user, the session
// has a principal of its own: it is notified and asked because of its calls in flight only.
func (l *replicaLink) open(server, user string) session {
	s := l.agg.openSession(Identity{User: user, Server: server, Replica: true, Shared: true, Persistent: true})
	if l.endpoint.Upstream.Owner == "" {
		s.User = "\x00" + s.ID
	}
	s.Recipient.Initialize()
	s.Declare(catalog.AbleToAll.Capabilities(), transports.Handshake)
	return s
}

// sayEnd tells the other replica that the connection to the server has ended, why, and
// which of its requests can be sent again.
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
	end := transports.ReplicaEnd{Failure: remote.ServerFailure(l.conn.Name(), l.conn.Loss()), Last: l.last, NotSent: l.notSent}
	l.mu.Unlock()
	_ = l.edge.Write(nil, host.Essential, remote.EndMessage(end)...)
}

// begin counts a request. It returns false if the connection has ended, which sayEnd tells.
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

// Connection implements forward.Link.
func (l *replicaLink) Connection() *upstream.Conn { return l.conn }

// End implements forward.Link.
func (l *replicaLink) End() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inFlight--; l.inFlight == 0 && l.idle != nil {
		close(l.idle)
	}
}

// handle answers a request from what is known here, or passes it on to the server.
func (l *replicaLink) handle(r *host.Request) {
	if !l.begin(r) {
		return
	}
	r.Number = l.agg.lastRequest.Add(1)
	switch r.Method {
	case "initialize", "server/discover":
		if l.introduced && r.Method == "server/discover" {
			break // it asks whether the server is alive
		}
		l.introduce(r)
		l.End()
		return
	case "tools/list", "resources/list", "resources/templates/list", "prompts/list":
		if page := l.page(r); page != nil {
			r.Reply(page, nil)
			l.End()
			return
		}
	case "logging/setLevel":
		if severity := notify.Severity(wire.Get(r.Params, "level")); severity >= 0 {
			l.session.Recipient.SetLevel(notify.Level{Params: bytes.Clone(r.Params), Severity: severity})
			r.Params = l.endpoint.Source().Verbose().Params
		}
	case "resources/subscribe", "resources/unsubscribe":
		uri, _ := wire.Text(wire.Get(r.Params, "uri"))
		subscribes := r.Method == "resources/subscribe"
		l.session.Recipient.SetSubscribed(uri, subscribes)
		if !subscribes && l.endpoint.IsSubscribed(uri) {
			r.Reply(json.RawMessage(`{}`), nil)
			l.End()
			return
		}
	case "subscriptions/listen":
		l.agg.work.AnswerWithin(r, func(ctx context.Context) { l.listen(ctx, r) })
		l.End()
		return
	}
	if !l.awaitList(r) {
		l.send(r)
	}
}

// introduce answers initialize or server/discover with the server's own introduction, in the
// server's era.
func (l *replicaLink) introduce(r *host.Request) {
	info, stateless := l.conn.ServerInfo(), l.conn.Era() == transports.Stateless
	switch initialize := r.Method == "initialize"; {
	case initialize && stateless:
		r.Reply(nil, &wire.Error{Code: transports.CodeUnsupportedVersion, Message: "unsupported protocol version", Data: fmt.Appendf(nil, `{"supported":[%q]}`, info.ProtocolVersion)})
		return
	case initialize:
		if capabilities := wire.Get(r.Params, "capabilities"); wire.IsObject(capabilities) {
			l.session.Declare(capabilities, transports.Handshake)
		}
	case !stateless:
		r.Reply(nil, unknownMethod(r.Method))
		return
	}
	l.introduced = true
	r.Reply(remote.Introduction(info, l.conn.Era()), nil)
}

// page returns a page of a list as the server listed it; nil if the list is not known, or
// the cursor is one of the server's.
func (l *replicaLink) page(r *host.Request) json.RawMessage {
	from, ours := remote.PageAt(r.Params)
	which, _ := listing.Of(r.Method)
	entries, ok := l.endpoint.Listing.Entries(l.conn, which)
	if !ours || !ok {
		return nil
	}
	return remote.Page(which.Key, entries, from)
}

// listen subscribes to what a stream of notifications is for, and keeps it open. The
// notifications themselves are sent on the link.
func (l *replicaLink) listen(ctx context.Context, r *host.Request) {
	granted := wire.Get(r.Params, "notifications")
	if !wire.IsObject(granted) {
		r.Reply(nil, transports.InvalidParams(`subscriptions/listen needs "notifications"`))
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
		maps.DeleteFunc(names, func(_ string, granted bool) bool { return !granted })
		granted = wire.Set(granted, member, quoted(slices.Sorted(maps.Keys(names))))
		return names
	}
	listening := notify.Stream{ID: r.ID, URIs: subscribe("resourceSubscriptions", fleet.AboutURI), Tasks: subscribe("taskIds", task.About)}
	s := l.session
	s.Recipient.AddStream(listening)
	s.Host.Notify("notifications/subscriptions/acknowledged", transports.SetMeta(wire.Set([]byte(`{}`), "notifications", granted), transports.MetaSubscriptionID, r.ID))
	select {
	case <-ctx.Done():
	case <-l.conn.Done():
	}
	s.Recipient.RemoveStream(listening)
	if l.conn.Err() != nil {
		return
	}
	s.agg.fleet.DropSubscriptions(s.Session, listening.URIs)
	s.agg.fleet.DropTasks(s.Session, listening.Tasks)
}

// notified passes notifications of the other replica and its hosts on to the server.
func (l *replicaLink) notified(method string, params json.RawMessage) {
	switch method {
	case "notifications/initialized": // this replica has sent it
	case "notifications/cancelled": // the session has ended the request
	case "notifications/progress":
		l.session.PassProgress(params)
	default:
		if err := l.conn.Notify(method, params); err != nil {
			l.agg.log.Debug("notification not sent", "upstream", l.conn.Name(), "err", err)
		}
	}
}

// send sends a request to the server unchanged, over the connection of the link.
func (l *replicaLink) send(r *host.Request) {
	to := forward.Route{Upstream: l.endpoint.Upstream, Link: l, Params: r.Params, Task: wire.Get(r.Params, "task") != nil}
	if err := l.agg.calls.Pass(l.session.Session, r, to); err != nil {
		r.Reply(nil, err)
		l.End()
	}
}

// Answered implements forward.Link: it passes the server's answer on. If the connection has ended, sayEnd answers for all
// calls at once.
func (l *replicaLink) Answered(c *forward.Call, result json.RawMessage, err error) {
	defer l.End()
	r, conn, _ := c.Finish(result, err)
	if err == nil && c.Route.Task && wire.Get(result, "task") != nil {
		conn.ForwardTaskProgress(&c.Call, func(params json.RawMessage) { l.session.Host.Notify("notifications/progress", params) })
	}
	var failure *transports.Failure
	if !errors.As(err, &failure) || conn.Err() == nil || failure.Outcome == transports.Executed {
		l.endpoint.NoteURLElicitations(l.session.Session, err)
		r.Reply(result, err)
		return
	}
	select {
	case <-conn.Done():
		if failure.Outcome == transports.NotSent {
			id, _ := transports.ParseID(r.ID)
			l.mu.Lock()
			l.notSent = append(l.notSent, id)
			l.mu.Unlock()
		}
	default:
		if !l.retired.Swap(true) {
			_ = l.edge.Write(nil, host.Essential, remote.RetiredMessage()...)
		}
		r.Reply(nil, err)
	}
}
