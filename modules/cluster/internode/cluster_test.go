package internode

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/internal/seal"
	"github.com/dynmcp/dynmcp/transports/gateway"
	"github.com/dynmcp/dynmcp/transports/host"
)

func TestMain(m *testing.M) { mcptest.Main(m) }

// patience is how long a test waits for an event that must come.
const patience = 2 * time.Minute

// A testCluster is a set of gateways in this process that reach each other over their internode
// listeners. Functions of the test take the place of the aggregator and of the membership.
type testCluster struct {
	t      testing.TB
	hosts  *http.Client
	handle func(at *node, r *host.Request)

	mu    sync.Mutex
	nodes map[string]*node // by ID
	other *node            // begins the sessions that a draining node refuses

	clients []*Client // of all nodes
}

// A node is one replica.
type node struct {
	cluster *testCluster
	id      string
	url     string // for hosts
	address string // for replicas
	keys    *seal.Keys
	client  *Client
	peers   *connections
	leave   func()        // shuts the gateway down as SIGTERM does
	left    chan struct{} // closed when the gateway has ended
	opened  atomic.Int64  // sessions
	calls   atomic.Int64  // requests that reached handle
}

func secret(b byte) []byte { return bytes.Repeat([]byte{b}, seal.MinSecret) }

func keys(t testing.TB, secrets ...[]byte) *seal.Keys {
	t.Helper()
	k, err := seal.New(secrets...)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func keyed(t testing.TB, k *seal.Keys) *Identity {
	t.Helper()
	id, err := Keyed(k)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func newTestCluster(t testing.TB, handle func(at *node, r *host.Request)) *testCluster {
	c := &testCluster{t: t, handle: handle, nodes: map[string]*node{}, hosts: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
	t.Cleanup(c.hosts.CloseIdleConnections)
	return c
}

// add starts a replica, which runs until the test ends.
func (c *testCluster) add(id string, k *seal.Keys, tune ...func(*gateway.GatewayOptions)) *node {
	c.t.Helper()
	n := &node{cluster: c, id: id, keys: k, left: make(chan struct{})}
	identity := keyed(c.t, k)
	n.client = NewClient(identity)
	c.clients = append(c.clients, n.client)
	to := func(other *node, principal string) (http.RoundTripper, bool) {
		if other == nil {
			return nil, false
		}
		return n.client.Request(other.address, principal), true
	}
	opts := gateway.GatewayOptions{
		Open: n.open,
		Health: func(name string) (gateway.Health, bool) {
			return gateway.Health{Status: "running", PID: 7}, name == "git"
		},
		AllowedHosts:     []string{"127.0.0.1"},
		MaxRequestBytes:  16 << 20,
		MaxResponseBytes: 16 << 20,
		MaxConnections:   1024,
		Replicas: &gateway.Replicas{
			ID: id, Name: "replica-" + id, Keys: k,
			Pass: func(owner, principal string) (http.RoundTripper, bool) { return to(c.node(owner), principal) },
			Other: func(principal string) (http.RoundTripper, bool) {
				c.mu.Lock()
				other := c.other
				c.mu.Unlock()
				return to(other, principal)
			},
			OwnerOf: func(state string) (string, bool) {
				owner, ok := strings.CutPrefix(state, "of ")
				return owner, ok
			},
			Degraded: func() bool { return false },
		},
	}
	for _, f := range tune {
		f(&opts)
	}
	g := gateway.New(opts)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		c.t.Fatal(err)
	}
	peers, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		c.t.Fatal(err)
	}
	n.url, n.address, n.peers = "http://"+ln.Addr().String(), peers.Addr().String(), &connections{Listener: peers}
	ctx, leave := context.WithCancel(context.Background())
	n.leave = leave
	go func() {
		defer close(n.left)
		if err := g.Serve(ctx, ln); err != nil {
			c.t.Error(err)
		}
	}()
	serving, stop := context.WithCancel(context.Background())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		_ = NewServer(identity, Routes{Requests: g.ServePassed}).Serve(serving, n.peers) // a test may have closed it
	}()
	c.t.Cleanup(func() {
		leave()
		<-n.left
		for _, client := range c.clients {
			client.Close()
		}
		stop()
		<-stopped
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes[id] = n
	return n
}

func (c *testCluster) node(id string) *node {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nodes[id]
}

// open takes the place of the aggregator.
func (n *node) open(edge gateway.Edge, principal, namespace string, lasts bool) (*host.Session, func(context.Context)) {
	control := mcp.NewServer(&mcp.Implementation{Name: n.id, Version: "1"}, &mcp.ServerOptions{
		Logger:       slog.New(slog.DiscardHandler),
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}},
	})
	s := host.NewSession(fmt.Sprint(n.id, n.opened.Add(1)), edge, host.SessionOptions{
		Control: control,
		HandleRequest: func(r *host.Request) {
			n.calls.Add(1)
			n.cluster.handle(n, r)
		},
		HandleNotification: func(string, json.RawMessage) {},
	})
	return s, s.End
}

// kill closes the listener and all connections of other replicas, as the death of the replica
// would.
func (n *node) kill() {
	n.peers.Close()
	n.peers.cut()
}

// connections is a listener that remembers the connections that it accepted.
type connections struct {
	net.Listener
	mu  sync.Mutex
	all []net.Conn
}

func (c *connections) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.mu.Lock()
		c.all = append(c.all, conn)
		c.mu.Unlock()
	}
	return conn, err
}

func (c *connections) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.all {
		conn.Close()
	}
}

// count returns how many connections were accepted.
func (c *connections) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.all)
}

// An answer is an HTTP response with its whole body.
type answer struct {
	status int
	header http.Header
	body   string
}

// request returns a request; headers are name, value, name, value.
func (n *node) request(ctx context.Context, method, path, body string, headers ...string) *http.Request {
	n.cluster.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, n.url+path, strings.NewReader(body))
	if err != nil {
		n.cluster.t.Fatal(err)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

// stream sends a request and returns the response with an unread body.
func (n *node) stream(method, path, body string, headers ...string) *http.Response {
	n.cluster.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	n.cluster.t.Cleanup(cancel)
	resp, err := n.cluster.hosts.Do(n.request(ctx, method, path, body, headers...))
	if err != nil {
		n.cluster.t.Fatal(err)
	}
	return resp
}

func (n *node) do(method, path, body string, headers ...string) answer {
	n.cluster.t.Helper()
	resp := n.stream(method, path, body, headers...)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		n.cluster.t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(text)}
}

const initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

// begin makes the handshake, and returns the session's id.
func (n *node) begin() string {
	n.cluster.t.Helper()
	a := n.do("POST", "/mcp", initialize)
	id := a.header.Get("Mcp-Session-Id")
	if a.status != 200 || id == "" {
		n.cluster.t.Fatalf("initialize: %+v", a)
	}
	return id
}

func call(id int, text string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"x","arguments":{"text":%q}}}`, id, text)
}

// modern returns a call of the stateless era that continues another, and its headers.
func modern(id int, state string) (string, []string) {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"x","arguments":{},"requestState":%q,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`, id, state),
		[]string{"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "x"}
}

// An events reads the events of a response.
type events struct {
	t  testing.TB
	in *bufio.Reader
}

func eventsOf(t testing.TB, resp *http.Response) *events {
	t.Helper()
	if kind := resp.Header.Get("Content-Type"); resp.StatusCode != 200 || kind != "text/event-stream" {
		t.Fatalf("got %s, %s", resp.Status, kind)
	}
	return &events{t, bufio.NewReader(resp.Body)}
}

// next returns the id and the data of the next event; more is false at the end.
func (e *events) next() (id, data string, more bool) {
	for {
		line, err := e.in.ReadString('\n')
		if err == io.EOF {
			return id, data, false
		}
		if err != nil {
			e.t.Fatal(err)
		}
		switch name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": "); name {
		case "id":
			id = value
		case "data":
			data = value
		case "":
			if data != "" {
				return id, data, true
			}
		}
	}
}

// want returns the id of the next event that has text in it.
func (e *events) want(text string) string {
	e.t.Helper()
	for {
		id, data, more := e.next()
		if !more {
			e.t.Fatalf("the stream ended without %s", text)
		}
		if strings.Contains(data, text) {
			return id
		}
	}
}
