package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"dynmcp/aggregator"
	"dynmcp/schema"
	"dynmcp/transports"
	"dynmcp/transports/upstream"
)

// An inside is dynmcp as a host has it, with a host of our own in front of it,
// all in memory: what a verb shows is what any host would get.
type inside struct {
	agg    *aggregator.Aggregator
	toHost *io.PipeReader // what dynmcp writes
	toUs   *io.PipeWriter // what dynmcp reads
	served chan error     // the end of Serve
	ended  chan struct{}  // closed when dynmcp writes no more
	cfg    *schema.Config
	hello  json.RawMessage // the answer to initialize
	notice func(method string, params json.RawMessage)

	mu      sync.Mutex
	lastID  int
	waiting map[int]chan message
	over    bool
	watcher func(params json.RawMessage) // of progress
}

// A message is what matters to us of a line of JSON-RPC, as it came.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *rpcError       `json:"error"`
}

// An rpcError is an upstream's refusal, or dynmcp's.
type rpcError struct {
	Code    int64           `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`
}

func (e *rpcError) Error() string { return fmt.Sprintf("%s (code %d)", e.Message, e.Code) }

// insideOptions are what verbs choose.
type insideOptions struct {
	log    *slog.Logger // nil is silent
	notice func(method string, params json.RawMessage)
}

// enter starts dynmcp on cfg and shakes hands with it. close must be called.
// In single-wrap mode the upstream is there then; in config mode nothing was
// started that is lazy.
func enter(ctx context.Context, cfg *schema.Config, opts insideOptions) (*inside, error) {
	if cfg.SingleWrap {
		if err := checkCommand(cfg.Servers[0]); err != nil {
			return nil, err
		}
	}
	agg, err := aggregator.New(cfg, aggregator.Options{Version: version, Logger: opts.log, Redact: &secrets})
	if err != nil {
		return nil, err
	}
	in, toUs := io.Pipe()
	toHost, out := io.Pipe()
	i := &inside{
		agg: agg, toHost: toHost, toUs: toUs,
		served: make(chan error, 1), ended: make(chan struct{}),
		cfg: cfg, notice: opts.notice, waiting: map[int]chan message{},
	}
	go func() {
		err := agg.Serve(context.WithoutCancel(ctx), in, out)
		out.Close()
		i.served <- err
	}()
	go i.read()
	if err := i.greet(ctx); err != nil {
		i.close()
		return nil, err
	}
	return i, nil
}

// greet shakes hands. An upstream that the run cannot do without ends Serve
// with more to say than the answer has.
func (i *inside) greet(ctx context.Context) error {
	hello, err := i.call(ctx, "initialize", fmt.Appendf(nil,
		`{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"dynmcp","title":"dynmcp command line","version":%q}}`, version))
	i.hello = hello
	if err == nil {
		i.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		return nil
	}
	if ctx.Err() != nil {
		return interrupted(ctx.Err())
	}
	var fatal *aggregator.FatalError
	select {
	case served := <-i.served:
		i.served <- served
		if errors.As(served, &fatal) {
			return i.advised(i.cfg.Servers[0], fatal.Err)
		}
	case <-time.After(5 * time.Second):
	}
	return err
}

// close ends dynmcp and all it has started.
func (i *inside) close() {
	i.toUs.Close()
	i.agg.Close()
	<-i.ended
	<-i.served
}

func (i *inside) send(line string) { _, _ = io.WriteString(i.toUs, line+"\n") }

// call sends a request and waits for the answer. Where ctx ends first the
// request is cancelled, as hosts do it.
func (i *inside) call(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	id, answered := i.expect()
	i.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, oneLineJSON(params)))
	select {
	case m, ok := <-answered:
		switch {
		case !ok:
			return nil, errors.New("dynmcp ended without an answer")
		case m.Error != nil:
			return nil, m.Error
		}
		return m.Result, nil
	case <-ctx.Done():
		i.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, id))
		return nil, interrupted(ctx.Err())
	}
}

func (i *inside) expect() (id int, answered chan message) {
	answered = make(chan message, 1)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.lastID++
	if i.over {
		close(answered)
	} else {
		i.waiting[i.lastID] = answered
	}
	return i.lastID, answered
}

// read hands out what dynmcp says until it says no more.
func (i *inside) read() {
	defer close(i.ended)
	lines := bufio.NewReader(i.toHost)
	for {
		line, err := lines.ReadBytes('\n')
		var m message
		if err == nil && json.Unmarshal(line, &m) == nil {
			i.take(m)
		}
		if err != nil {
			i.hangUp()
			return
		}
	}
}

func (i *inside) take(m message) {
	switch {
	case m.Method == "":
		i.answered(m)
	case m.ID != nil: // we declared nothing that could be asked for
		go i.send( // not to stop reading while dynmcp does not read
			fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"the command line answers no questions"}}`, m.ID))
	case m.Method == "notifications/progress":
		i.progress(m.Params)
	case i.notice != nil:
		i.notice(m.Method, m.Params)
	}
}

// watch has f called, on the goroutine that reads, with the params of every
// notification of progress.
func (i *inside) watch(f func(params json.RawMessage)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.watcher = f
}

func (i *inside) progress(params json.RawMessage) {
	i.mu.Lock()
	f := i.watcher
	i.mu.Unlock()
	if f != nil {
		f(params)
	}
}

func (i *inside) answered(m message) {
	var id int
	if json.Unmarshal(m.ID, &id) != nil {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if answered := i.waiting[id]; answered != nil {
		delete(i.waiting, id)
		answered <- m
	}
}

func (i *inside) hangUp() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.over = true
	for id, answered := range i.waiting {
		delete(i.waiting, id)
		close(answered)
	}
}

// load starts servers, all at once, and returns why those failed that did.
func (i *inside) load(ctx context.Context, servers ...string) map[string]error {
	failed := map[string]error{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, name := range servers {
		wg.Go(func() {
			if err := i.loadOne(ctx, name); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed[name] = err
			}
		})
	}
	wg.Wait()
	return failed
}

func (i *inside) loadOne(ctx context.Context, name string) error {
	s, err := serverOf(i.cfg, name)
	if err != nil {
		return err
	}
	if err := checkCommand(s); err != nil {
		return err
	}
	return i.advised(s, interrupted(i.agg.Load(ctx, name)))
}

// advised adds what to do to a failure that does not say so itself.
func (i *inside) advised(s schema.Server, err error) error {
	var failure *transports.Failure
	switch {
	case !errors.As(err, &failure) || failure.Hint != "":
		return err
	case failure.Code == transports.CodeTimeout:
		return hinted(err, "if it only needs longer, set load_timeout in its entry")
	case s.Transport == schema.Stdio:
		return hinted(err, "run its command in a shell to see more: %s", endpoint(s))
	}
	return hinted(err, "check its url in the config, the network, and whether the server runs")
}

// checkCommand says better than a start what is wrong with a command that is
// not there.
func checkCommand(s schema.Server) error {
	if s.Transport != schema.Stdio {
		return nil
	}
	return upstream.CheckCommand(s)
}

// errInterrupted is what is said when the user had enough.
var errInterrupted = errors.New("interrupted")

func interrupted(err error) error {
	if errors.Is(err, context.Canceled) {
		return errInterrupted
	}
	return err
}

// oneLineJSON keeps a message on its line. White space between tokens is the
// only place where valid JSON has line breaks.
func oneLineJSON(raw json.RawMessage) json.RawMessage {
	if !bytes.ContainsAny(raw, "\r\n") {
		return raw
	}
	return bytes.Map(func(r rune) rune {
		if r == '\n' || r == '\r' {
			return ' '
		}
		return r
	}, raw)
}
