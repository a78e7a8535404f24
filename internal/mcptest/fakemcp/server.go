package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
)

// A fake is a fake upstream. Faults set the fields of the second group before the first message is
// read; later they do not change.
type fake struct {
	cfg    config
	ledger *ledger
	offer  *offer
	tasks  taskTable
	faults []*armed

	ignoreTerm  atomic.Bool // signals are obeyed while faults are still starting
	ignoreEOF   bool
	exitAt      int           // the number of messages after which the process exits; 0: never
	afterRead   func(c *call) // stdio: runs on the reading goroutine after each request
	sessionless bool          // HTTP: no session ids
	out         *lines
	cancelled   atomic.Int64 // requests that the client has cancelled
	preface     func()       // runs once, before the first message is written
}

func newFake(cfg config) (*fake, error) {
	l, err := openLedger(cfg.ledger)
	if err != nil {
		return nil, err
	}
	f := &fake{cfg: cfg, ledger: l, out: &lines{file: os.Stdout, end: "\n"}}
	if f.offer, err = newOffer(cfg); err != nil {
		return nil, err
	}
	f.faults, err = arm(cfg)
	return f, err
}

// A peer is one client: the one on stdio, or one HTTP session.
type peer struct {
	fake *fake
	push func(msg []byte) // sends a message of no request

	mu        sync.Mutex
	received  [][]byte                      // the last messages of the client
	count     int                           // all of them
	running   map[string]context.CancelFunc // request id → cancel
	asked     map[string]chan message       // id of our request → where its answer goes
	asks      int
	watched   map[string]bool // subscribed URIs
	listeners []*listener
	ready     bool            // initialize has been answered
	declared  json.RawMessage // in initialize
	calls     sync.WaitGroup
}

func newPeer(f *fake, push func([]byte)) *peer {
	return &peer{
		fake: f, push: push,
		running: map[string]context.CancelFunc{},
		asked:   map[string]chan message{},
		watched: map[string]bool{},
	}
}

// A call is one request of the client.
type call struct {
	message
	peer   *peer
	ctx    context.Context
	cancel context.CancelFunc
	header http.Header      // HTTP only
	send   func(msg []byte) // sends a message of this request, the answer last
	about  meta             // of the new protocol, zero for the old
	late   string           // a list whose change is announced behind the answer

	params    callParams // those that could be decoded
	paramsErr error      // of decoding them
}

// callParams are the params that several methods use, decoded once because they may be large.
type callParams struct {
	Name            string          `json:"name"`
	URI             string          `json:"uri"`
	Level           string          `json:"level"`
	ProtocolVersion string          `json:"protocolVersion"`
	Arguments       json.RawMessage `json:"arguments"`
	Meta            meta            `json:"_meta"`
}

// errSilent ends a call without an answer.
var errSilent = errors.New("no answer")

// receive handles one message. It returns a request as a call, which the caller must serve, on any
// goroutine.
func (p *peer) receive(raw []byte, send func([]byte)) *call {
	p.record(raw)
	var m message
	if err := json.Unmarshal(raw, &m); err != nil {
		send(errorAnswer(json.RawMessage("null"), failure(-32700, "Parse error: %v", err)))
		return nil
	}
	switch {
	case m.Method == "":
		p.answered(m)
	case m.ID == nil:
		p.notified(m)
	default:
		return p.begin(m, send)
	}
	return nil
}

// record stores messages for the tool received. It runs before the message is handled, so that a
// call sees itself.
func (p *peer) record(raw []byte) {
	const keep = 10_000
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.received) == keep {
		p.received = p.received[1:]
	}
	p.received = append(p.received, raw)
	p.count++
	if p.count == p.fake.exitAt {
		p.fake.exit(4, "exit-at")
	}
}

func (p *peer) begin(m message, send func([]byte)) *call {
	ctx, cancel := context.WithCancel(context.Background())
	c := &call{message: m, peer: p, ctx: ctx, cancel: cancel, send: send}
	c.paramsErr = decode(m.Params, &c.params)
	c.about = c.params.Meta
	p.fake.ledger.add("%s", c.event())
	p.mu.Lock()
	p.running[string(m.ID)] = cancel
	p.mu.Unlock()
	p.calls.Add(1)
	return c
}

// serve answers the call, unless a fault handles it.
func (c *call) serve() {
	defer c.end()
	if c.strikeRequest() {
		return
	}
	result, err := c.dispatch()
	var e *rpcError
	switch {
	case errors.Is(err, errSilent):
		return
	case errors.As(err, &e):
		c.reply(errorAnswer(c.ID, e))
	case err != nil:
		c.reply(errorAnswer(c.ID, failure(-32603, "%v", err)))
	default:
		c.reply(answer(c.ID, c.modernize(result)))
	}
	if c.late != "" {
		c.peer.changed(c.late)
	}
}

func (p *peer) initialized() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ready
}

func (p *peer) setReady(declared json.RawMessage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ready, p.declared = true, declared
}

func (c *call) reply(msg []byte) {
	if !c.strikeAnswer(msg) {
		c.send(msg)
	}
}

func (c *call) end() {
	p := c.peer
	p.mu.Lock()
	delete(p.running, string(c.ID))
	p.mu.Unlock()
	c.cancel()
	p.calls.Done()
}

// cancelAll cancels all calls of a client that has disconnected.
func (p *peer) cancelAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, cancel := range p.running {
		cancel()
	}
}

// notified handles a notification of the client.
func (p *peer) notified(m message) {
	var params struct{ RequestID json.RawMessage }
	if m.Method != "notifications/cancelled" {
		p.fake.ledger.add("notified %s", m.Method)
		if m.Method == "notifications/initialized" && p.fake.cfg.askRoots {
			id, _ := p.ask()
			p.push(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":"roots/list"}`, id))
		}
		if m.Method == "notifications/initialized" && p.fake.cfg.regard == "late" {
			p.push([]byte(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`))
		}
		return
	}
	_ = json.Unmarshal(m.Params, &params) // invalid params name no request
	p.fake.ledger.add("cancelled %s", params.RequestID)
	p.fake.cancelled.Add(1)
	p.mu.Lock()
	cancel := p.running[string(params.RequestID)]
	p.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// answered passes the client's answer to the call that asked.
func (p *peer) answered(m message) {
	p.mu.Lock()
	waiting := p.asked[string(m.ID)]
	delete(p.asked, string(m.ID))
	p.mu.Unlock()
	if waiting != nil {
		waiting <- m
	}
}
