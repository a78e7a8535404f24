package verify

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/aggregator"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/login"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/selfhost"
	"github.com/dynmcp/dynmcp/internal/selfloop"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// A connection connects a host to a server, directly or through dynmcp.
type connection struct {
	conn  *upstream.Conn
	close func()
	notes *notes
	wait  time.Duration // for each answer
	pipe  bool          // the server sends everything on one ordered stream

	version string // that the server speaks
}

// errEra means that a server does not speak an era.
var errEra = errors.New("it does not speak that era")

// connectDirectly connects to a server as its host.
func (v *verifier) connectDirectly(ctx context.Context, s schema.Server, era transports.Era) (*connection, error) {
	n := newNotes()
	options := v.asHost(n, era)
	options.Redact, options.Logger = &cli.Secrets, v.Log
	// dynmcp sets this variable for its servers. With a random value, answers that show it are
	// known to vary.
	options.Env = []string{selfloop.Variable + "=" + rand.Text()}
	if s.Transport != schema.Stdio {
		options.Login = login.Of(login.Store, v.Log)(s)
	}
	conn, err := upstream.Open(s, options)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.LoadTimeout)
	defer cancel()
	if err := conn.Handshake(ctx, nil); err != nil {
		conn.Close()
		return nil, conn.StartFailure("start it directly", err)
	}
	return v.inEra(&connection{conn, conn.Close, n, v.wait, s.Transport == schema.Stdio, conn.ServerInfo().ProtocolVersion}, era)
}

// connectBehind connects to a server through dynmcp with one surface.
func (v *verifier) connectBehind(ctx context.Context, s schema.Server, surface string, era transports.Era) (*connection, error) {
	cfg := *v.Cfg
	cfg.Expose, cfg.Servers, cfg.Activity, cfg.Policy, cfg.Tree = []string{surface}, []schema.Server{s}, nil, nil, nil
	cfg.SingleWrap = surface == schema.ExposeDirect
	n := newNotes()
	h, err := selfhost.StartAs(ctx, &cfg, aggregator.Options{Logger: v.Log}, v.asHost(n, era))
	if err != nil {
		return nil, err
	}
	if err := h.LoadOne(ctx, s.Name); err != nil {
		h.Close()
		return nil, err
	}
	return v.inEra(&connection{h.Conn, h.Close, n, v.wait, s.Transport == schema.Stdio, h.Status().Upstreams()[0].Protocol}, era)
}

// asHost returns the options of the host, which are the same for both connections.
func (v *verifier) asHost(n *notes, era transports.Era) upstream.ConnOptions {
	return upstream.ConnOptions{Info: upstream.Info{Name: "dynmcp verify", Version: cli.Version}, Peer: n, HandshakeOnly: era == transports.Handshake}
}

func (v *verifier) inEra(s *connection, era transports.Era) (*connection, error) {
	if s.conn.Era() != era {
		s.close()
		return nil, errEra
	}
	return s, nil
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

// Notify implements transports.Peer.
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

// Request implements transports.Peer.
func (n *notes) Request(ctx context.Context, method string, params json.RawMessage) func() (json.RawMessage, error) {
	n.Notify(method, params)
	return selfhost.NotifyFunc(nil).Request(ctx, method, params)
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
// error. Notifications of the request go to peer.
func (c *connection) ask(ctx context.Context, method string, params []byte, peer transports.Peer) []byte {
	ctx, cancel := context.WithTimeout(ctx, c.wait)
	defer cancel()
	answered := make(chan []byte, 1)
	call := &upstream.Call{Method: method, Params: params, Peer: peer, Done: func(result json.RawMessage, err error) {
		if n, ok := peer.(*callNotes); ok && n.answered != "" {
			n.all.markAnswered(n.answered) // on the reading goroutine, before it reads on
		}
		answered <- answer(bytes.Clone(result), err)
	}}
	c.conn.Start(call)
	select {
	case a := <-answered:
		return a
	case <-ctx.Done():
		if c.conn.Cancel(call, nil) {
			return []byte(`{"failed":"no answer"}`)
		}
		return <-answered
	}
}

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

// callNotes record the progress of a call, and pass other messages to all.
type callNotes struct {
	notes
	all      *notes
	answered string // the name under which all records the answer; "" records none
}

// Notify implements transports.Peer.
func (n *callNotes) Notify(method string, params json.RawMessage) {
	if method == "notifications/progress" {
		n.notes.Notify(method, params)
		return
	}
	n.all.Notify(method, params)
}
