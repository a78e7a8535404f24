// Package probe is a host for comparisons. It frames messages, pairs ids and follows pages by its own
// code: it shares none with transports/upstream, so that what that package loses or changes shows.
//
// It is simple, not tolerant: one connection, no reconnects, no limits but of an answer's time.
package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
)

// An Observer receives the notifications and requests of a server, in the order of its stream.
type Observer interface {
	Notify(method string, params json.RawMessage)
}

// A link carries messages to the other end. It passes what arrives to Peer.handle, and the end of
// the connection to Peer.end.
type link interface {
	// send sends a message. call is the call whose request it is, or nil.
	send(message []byte, call *Call)
	// cancelled ends a call that was cancelled. It reports whether that tells the server, which
	// otherwise needs a message.
	cancelled(call *Call) (told bool)
	// opened is called when both ends agree on a version, and listen when the server knows it.
	opened(version string)
	listen()
	// listed is called with the tools of a list.
	listed(tools []json.RawMessage)
	// failure adds what is known of the end, such as a child's stderr.
	failure(err error) error
	close()
}

// A Peer is a connection to a server. Close must be called.
type Peer struct {
	// Capabilities are those that Open declares.
	Capabilities json.RawMessage

	link     link
	observer Observer
	info     json.RawMessage // clientInfo
	meta     map[string]string

	mu     sync.Mutex
	lastID int64
	calls  map[string]*Call // by id
	err    error            // why the connection ended
	late   int              // answers of cancelled calls
	ended  chan struct{}    // closed with err set
}

// A Call is a request. Done is called once with its end, on the goroutine that reads.
type Call struct {
	Method   string
	Params   json.RawMessage
	Progress Observer // of the call; may be nil
	Done     func(result json.RawMessage, err error)

	id, token string
	abort     context.CancelFunc // ends its request over HTTP; nil on lines
}

// Info is what a server says of itself.
type Info struct {
	ProtocolVersion string
	Capabilities    json.RawMessage
	Implementation  json.RawMessage // serverInfo
	Instructions    string
	Extra           json.RawMessage // the other members of the answer, as an object
}

// Has reports whether a server has a capability.
func (i *Info) Has(capability string) bool {
	var all map[string]json.RawMessage
	return json.Unmarshal(i.Capabilities, &all) == nil && wire.IsObject(all[capability])
}

// ErrEra means that a server does not speak an era.
var ErrEra = errors.New("it does not speak that era")

func newPeer(name, version string, observer Observer) *Peer {
	info := fmt.Appendf(nil, `{"name":%s,"version":%s}`, wire.Quote(name), wire.Quote(version))
	return &Peer{Capabilities: json.RawMessage(`{}`), observer: observer, info: info, calls: map[string]*Call{}, ended: make(chan struct{})}
}

// Start sends a request.
func (p *Peer) Start(call *Call) {
	params := call.Params
	if len(params) == 0 {
		params = json.RawMessage(`{}`)
	}
	meta := wire.Get(params, "_meta")
	call.token, _ = wire.Text(wire.Get(meta, "progressToken"))
	if meta == nil {
		meta = []byte(`{}`)
	}
	for name, value := range p.meta {
		meta = wire.Set(meta, name, []byte(value))
	}
	if len(meta) > len(`{}`) {
		params = wire.Set(params, "_meta", meta)
	}
	p.mu.Lock()
	p.lastID++
	call.id = strconv.FormatInt(p.lastID, 10)
	err := p.err
	if err == nil {
		p.calls[call.id] = call
	}
	p.mu.Unlock()
	if err != nil {
		call.Done(nil, err)
		return
	}
	p.link.send(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, call.id, call.Method, params), call)
}

// Cancel ends a call without an answer, and tells the server. It reports false if the call has
// ended.
func (p *Peer) Cancel(call *Call) bool {
	if p.take(call.id) == nil {
		return false
	}
	if !p.link.cancelled(call) {
		p.notify("notifications/cancelled", fmt.Sprintf(`{"requestId":%s}`, call.id))
	}
	if call.abort != nil {
		call.abort()
	}
	return true
}

// Late returns how many answers of cancelled calls have arrived.
func (p *Peer) Late() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.late
}

// Ask sends a request and returns its result, or an error that may be a *wire.Error.
func (p *Peer) Ask(ctx context.Context, method string, params json.RawMessage) (result json.RawMessage, err error) {
	done := make(chan struct{})
	call := &Call{Method: method, Params: params, Done: func(r json.RawMessage, e error) {
		result, err = r, e
		close(done)
	}}
	p.Start(call)
	select {
	case <-done:
	case <-ctx.Done():
		if p.Cancel(call) {
			return nil, context.Cause(ctx)
		}
		<-done
	}
	return result, err
}

// List returns the entries of all pages of a list.
func (p *Peer) List(ctx context.Context, method, member string) (all []json.RawMessage, err error) {
	params := json.RawMessage(`{}`)
	for range 10_000 {
		result, err := p.Ask(ctx, method, params)
		if err != nil {
			return nil, err
		}
		var page map[string]json.RawMessage
		var entries []json.RawMessage
		if err := json.Unmarshal(result, &page); err != nil {
			return nil, err
		}
		if len(page[member]) > 0 {
			if err := json.Unmarshal(page[member], &entries); err != nil {
				return nil, err
			}
		}
		all = append(all, entries...)
		cursor := page["nextCursor"]
		if len(cursor) == 0 || string(cursor) == "null" {
			if method == "tools/list" {
				p.link.listed(all)
			}
			return all, nil
		}
		params = fmt.Appendf(nil, `{"cursor":%s}`, cursor)
	}
	return nil, errors.New("the list does not end")
}

// discoverTimeout limits the wait of a server that does not answer server/discover.
const discoverTimeout = 5 * time.Second

// Open introduces the host in an era. The error wraps ErrEra if the server does not speak it.
func (p *Peer) Open(ctx context.Context, era transports.Era) (Info, error) {
	if era == transports.Handshake {
		return p.initialize(ctx)
	}
	p.meta = map[string]string{
		transports.MetaVersion: `"` + transports.StatelessVersion + `"`, transports.MetaCapabilities: string(p.Capabilities), transports.MetaClientInfo: string(p.info),
	}
	ctx, cancel := context.WithTimeout(ctx, discoverTimeout)
	defer cancel()
	result, err := p.Ask(ctx, "server/discover", nil)
	if err != nil {
		return Info{}, fmt.Errorf("%w: %w", ErrEra, p.link.failure(err))
	}
	var answer struct {
		SupportedVersions []string       `json:"supportedVersions"`
		Meta              map[string]any `json:"_meta"`
	}
	_ = json.Unmarshal(result, &answer) // members of other types are as good as missing
	for _, version := range answer.SupportedVersions {
		if version == transports.StatelessVersion {
			p.link.opened(version)
			p.listen()
			return infoOf(result, version, wire.Get(result, "_meta", "io.modelcontextprotocol/serverInfo"),
				"supportedVersions", "_meta", "resultType", "ttlMs", "cacheScope"), nil
		}
	}
	return Info{}, ErrEra
}

func (p *Peer) initialize(ctx context.Context) (Info, error) {
	result, err := p.Ask(ctx, "initialize", fmt.Appendf(nil, `{"protocolVersion":"2025-11-25","capabilities":%s,"clientInfo":%s}`, p.Capabilities, p.info))
	if err != nil {
		return Info{}, p.link.failure(err)
	}
	version, ok := wire.Text(wire.Get(result, "protocolVersion"))
	if !ok {
		return Info{}, errors.New("the answer to initialize names no version")
	}
	p.link.opened(version)
	p.notify("notifications/initialized", `{}`)
	p.link.listen()
	return infoOf(result, version, wire.Get(result, "serverInfo"), "protocolVersion", "serverInfo"), nil
}

// infoOf reads what both eras say alike. known are members that Extra does not have.
func infoOf(result json.RawMessage, version string, implementation []byte, known ...string) Info {
	instructions, _ := wire.Text(wire.Get(result, "instructions"))
	return Info{
		ProtocolVersion: version, Capabilities: wire.Get(result, "capabilities"), Implementation: implementation, Instructions: instructions,
		Extra: wire.Delete(result, append(known, "capabilities", "instructions")...),
	}
}

// listen asks a server of the stateless era for its notifications of changed lists.
func (p *Peer) listen() {
	p.Start(&Call{
		Method: "subscriptions/listen",
		Params: json.RawMessage(`{"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true}}`),
		Done:   func(json.RawMessage, error) {},
	})
}

func (p *Peer) notify(method, params string) {
	p.link.send(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%q,"params":%s}`, method, params), nil)
}

// take removes and returns the call in flight under id, or nil.
func (p *Peer) take(id string) *Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	call := p.calls[id]
	delete(p.calls, id)
	return call
}

// handle reads a message. What is none, such as a banner, is skipped.
func (p *Peer) handle(text []byte) {
	var m map[string]json.RawMessage
	if json.Unmarshal(text, &m) != nil {
		return
	}
	id := m["id"]
	method, isRequest := wire.Text(m["method"])
	switch {
	case isRequest && id == nil:
		p.handleNotification(method, m["params"])
	case isRequest && method == "ping":
		p.link.send(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{}}`, id), nil)
	case isRequest:
		p.observer.Notify(method, m["params"])
		p.link.send(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"this host answers no requests"}}`, id), nil)
	case m["error"] != nil:
		p.finish(string(id), nil, wire.ParseError(m["error"]))
	default:
		p.finish(string(id), m["result"], nil)
	}
}

// waits reports whether a call is in flight.
func (p *Peer) waits(call *Call) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls[call.id] == call
}

// fail ends a call that may have ended.
func (p *Peer) fail(call *Call, err error) {
	if p.take(call.id) != nil {
		call.Done(nil, err)
	}
}

func (p *Peer) finish(id string, result json.RawMessage, err error) {
	if call := p.take(id); call != nil {
		call.Done(result, err)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.late++
}

// handleNotification passes progress to its call. Progress of no call in flight is dropped, and
// the acknowledgement of listen, which says nothing.
func (p *Peer) handleNotification(method string, params json.RawMessage) {
	switch method {
	case "notifications/progress":
	case "notifications/subscriptions/acknowledged":
		return
	default:
		p.observer.Notify(method, params)
		return
	}
	token, _ := wire.Text(wire.Get(params, "progressToken"))
	p.mu.Lock()
	var of Observer
	for call := range maps.Values(p.calls) {
		if call.token != "" && call.token == token {
			of = call.Progress
		}
	}
	p.mu.Unlock()
	if of != nil {
		of.Notify(method, params)
	}
}

// end ends the connection and all its calls.
func (p *Peer) end(err error) {
	p.mu.Lock()
	if p.err != nil {
		p.mu.Unlock()
		return
	}
	p.err = err
	calls := p.calls
	p.calls = map[string]*Call{}
	p.mu.Unlock()
	close(p.ended)
	for _, call := range calls {
		call.Done(nil, err)
	}
}

// Close ends the connection, and a child with everything that it started.
func (p *Peer) Close() {
	p.end(errors.New("the connection was closed"))
	p.link.close()
}
