package verify

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/aggregator"
	"github.com/dynmcp/dynmcp/internal/certs"
	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/login"
	"github.com/dynmcp/dynmcp/internal/cli/selfhost"
	"github.com/dynmcp/dynmcp/internal/rule"
	"github.com/dynmcp/dynmcp/internal/selfloop"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/modules/verify/probe"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
)

// A connection connects a host to a server, directly or through dynmcp. The host is one of
// package probe.
type connection struct {
	peer  *probe.Peer
	info  probe.Info
	close func()
	notes *notes
	wait  time.Duration // for each answer
	lost  error         // why the first answer that did not come is missing; who ended
	pipe  bool          // the server sends everything on one ordered stream

	behind  bool                // the other end is dynmcp
	version string              // that the server speaks
	hears   func() (heard bool) // waits until the server was told of a cancellation; nil if that cannot be seen
}

// hostName is the name of the host on both sides.
const hostName = "dynmcp verify"

// extensions are the capabilities of the second host: what servers show to hosts with extensions of MCP, and
// with one that dynmcp does not know.
const extensions = `{"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]},"io.modelcontextprotocol/skills":{},"com.example/unknown":{"n":9007199254740993}}}`

// declare sets what a host declares.
func (v *verifier) declare(p *probe.Peer) {
	if v.extended {
		p.Capabilities = json.RawMessage(extensions)
	}
}

// connectDirectly connects to a server as its host.
func (v *verifier) connectDirectly(ctx context.Context, s schema.Server, era transports.Era) (*connection, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.LoadTimeout, stopped(fmt.Sprintf("no answer within its load_timeout of %v", s.LoadTimeout)))
	defer cancel()
	n := newNotes()
	log := cmp.Or(v.Log, slog.New(slog.DiscardHandler))
	var p *probe.Peer
	logins := login.Of(login.Store, v.Log)
	s, err := logins.Entries("")(s)
	if err != nil {
		return nil, err
	}
	if s.Transport == schema.Stdio {
		// dynmcp sets this variable for its servers. With a random value, answers that show it are
		// known to vary.
		p, err = probe.Command(s, []string{selfloop.Variable + "=" + rand.Text()}, &cli.Secrets, log, hostName, cli.Version, n)
	} else {
		plain := http.DefaultTransport.(*http.Transport).Clone()
		if plain.TLSClientConfig, err = certs.Config(s.TLS); err != nil {
			return nil, fmt.Errorf("start it directly: %w", err)
		}
		transport := http.RoundTripper(plain)
		if authorize := logins.For(s, "").Transport; authorize != nil {
			transport = authorize(transport)
		}
		p, err = probe.Web(ctx, s, transport, hostName, cli.Version, n)
	}
	if err != nil {
		return nil, fmt.Errorf("start it directly: %w", err)
	}
	v.declare(p)
	info, err := p.Open(ctx, era)
	if err != nil {
		p.Close()
		return nil, fmt.Errorf("start it directly: %w", err)
	}
	c := &connection{peer: p, info: info, close: p.Close, notes: n, wait: v.wait, pipe: s.Transport == schema.Stdio, version: info.ProtocolVersion}
	if canHear(s) {
		c.hears = func() bool { return true }
	}
	return c, nil
}

// connectBehind connects to a server through dynmcp with one surface.
func (v *verifier) connectBehind(ctx context.Context, s schema.Server, surface string, era transports.Era) (*connection, error) {
	options := aggregator.Options{Logger: v.Log}
	var e ear
	if surface == schema.ExposeDirect && canHear(s) {
		var err error
		if s, err = e.between(s, era, &options, v.Log); err != nil {
			return nil, err
		}
	}
	if v.between != nil {
		s = v.between(s)
	}
	cfg := *rule.Without(v.Cfg)
	cfg.Expose, cfg.Servers, cfg.Tree = []string{surface}, []schema.Server{s}, nil
	cfg.SingleWrap = surface == schema.ExposeDirect
	h, near, err := selfhost.Serve(module.Shown(ctx), &cfg, options)
	if err != nil {
		return nil, errors.Join(err, e.remove())
	}
	n := newNotes()
	p := probe.Stream(near, hostName, cli.Version, n)
	end := func() {
		p.Close()
		h.Close()
		if err := e.remove(); err != nil {
			v.ErrOut.Printf("%v\n", err)
		}
	}
	v.declare(p)
	info, err := p.Open(ctx, era)
	if err == nil {
		err = h.LoadOne(ctx, s.Name)
	} else {
		err = h.StartError(ctx, err)
	}
	if err != nil {
		end()
		return nil, err
	}
	c := &connection{peer: p, info: info, close: end, behind: true, notes: n, wait: v.wait, pipe: s.Transport == schema.Stdio, version: h.Status().Upstreams()[0].Protocol}
	if e.heard != nil {
		c.hears = func() bool { return e.wait(v.wait / cancelTries) }
	}
	return c, nil
}

// notes record the notifications and requests of a server, in order.
type notes struct {
	mu      sync.Mutex
	all     [][]byte
	size    int             // of all, in bytes
	changed map[string]bool // announced changes of lists, by method
	more    chan struct{}   // signals a new entry of changed; has a buffer of one
}

// maxNotes limits the recorded bytes.
const maxNotes = 4 << 20

func newNotes() *notes { return &notes{changed: map[string]bool{}, more: make(chan struct{}, 1)} }

// Notify implements probe.Observer.
func (n *notes) Notify(method string, params json.RawMessage) {
	if len(params) == 0 {
		params = json.RawMessage(`null`)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if strings.HasSuffix(method, "/list_changed") {
		n.changed[method] = true
		select {
		case n.more <- struct{}{}:
		default:
		}
		return
	}
	if n.size += len(params) + len(method); n.size <= maxNotes {
		n.all = append(n.all, fmt.Appendf(nil, `{"method":%s,"params":%s}`, wire.Quote(method), wire.Delete(params, "progressToken")))
	}
}

// markAnswered records that a request was answered.
func (n *notes) markAnswered(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, fmt.Appendf(nil, `{"answered":%s}`, wire.Quote(name)))
}

// changes waits until all expected changes of lists were announced, or ctx ends, and returns
// the announced ones. dynmcp announces many changes at once, after it has fetched the lists.
func (n *notes) changes(ctx context.Context, expected []string) []string {
	for {
		n.mu.Lock()
		all := slices.Sorted(maps.Keys(n.changed))
		n.mu.Unlock()
		if !slices.ContainsFunc(expected, func(one string) bool { return !slices.Contains(all, one) }) {
			return all
		}
		select {
		case <-n.more:
		case <-ctx.Done():
			return all
		}
	}
}

// take returns the recorded messages as a JSON array, and clears them.
func (n *notes) take() []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := n.all
	n.all, n.size = nil, 0
	return joined('[', all, ']')
}

// ask sends a request and returns its answer: the result as received, or an object with the
// error. Progress of the request goes to steps, which may be nil.
func (c *connection) ask(ctx context.Context, method string, params []byte, steps *callNotes) []byte {
	ctx, cancel := c.timeout(ctx)
	defer cancel()
	var failure error
	answered := make(chan []byte, 1)
	call := &probe.Call{Method: method, Params: params, Done: func(result json.RawMessage, err error) {
		if steps != nil && steps.answered != "" {
			steps.all.markAnswered(steps.answered) // on the reading goroutine, before it reads on
		}
		failure = err
		answered <- answer(result, err)
	}}
	if steps != nil {
		call.Progress = steps
	}
	c.peer.Start(call)
	select {
	case a := <-answered:
		c.lose(failure)
		return a
	case <-ctx.Done():
		if c.peer.Cancel(call) {
			c.lose(context.Cause(ctx))
			return []byte(unanswered)
		}
		return <-answered
	}
}

// timeout limits ctx to the wait for an answer.
func (c *connection) timeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, c.wait, stopped(fmt.Sprintf("no answer within the %v of --timeout", c.wait)))
}

// lose keeps the first error that is due to the end of a connection or a timeout, and says who ended it.
func (c *connection) lose(err error) {
	var rpc *wire.Error
	switch {
	case c.lost != nil || err == nil || errors.Is(err, context.Canceled): // verify cancels calls itself
	case errors.As(err, new(stopped)):
		c.lost = err
	case errors.As(err, &rpc):
		if string(answer(nil, err)) == gone {
			c.lost = fmt.Errorf("dynmcp says: %w", err)
		}
	case c.behind:
		c.lost = fmt.Errorf("dynmcp ended the connection: %w", err)
	default:
		c.lost = fmt.Errorf("no answer from the server: %w", err)
	}
}

// unanswered stands for the answer of a call that was cancelled in time.
const unanswered = `{"failed":"no answer"}`

// gone replaces the answer of a server that was not reached or ended.
const gone = `{"failed":"the server was not reached or ended"}`

// answer returns an answer as an object. All failures to reach the server become gone, because
// dynmcp describes them in more detail than a direct connection.
func answer(result []byte, err error) []byte {
	var rpc *wire.Error
	switch {
	case err == nil:
		return result
	case !errors.As(err, &rpc) || wire.EqualString(wire.Get(rpc.Data, "source"), "dynmcp"):
		return []byte(gone)
	}
	return fmt.Appendf(nil, `{"error":%s}`, rpc.JSON())
}

// callNotes record the progress of a call.
type callNotes struct {
	notes
	all      *notes
	answered string // the name under which all records the answer; "" records none
}
