package gateway

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/internal/seal"
	"github.com/dynmcp/dynmcp/modules/cluster/internode"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
)

// A testReplica is one of several gateways, with the listener for the others.
type testReplica struct {
	*testGateway
	id      string
	address string
	client  *internode.Client
	leaves  chan time.Duration // receives DrainDelay; the delay ends when it is received
	gone    func()             // ends the listener, after the gateway has ended
}

// testReplicas are the replicas of one cluster.
type testReplicas struct {
	t    *testing.T
	keys *seal.Keys
	mu   sync.Mutex
	all  map[string]*testReplica // by ID
}

func (rs *testReplicas) get(fits func(*testReplica) bool) *testReplica {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for _, r := range rs.all {
		if fits(r) {
			return r
		}
	}
	return nil
}

func (rs *testReplicas) add(id string, handle func(*host.Request)) *testReplica {
	rs.t.Helper()
	identity, err := internode.Keyed(rs.keys)
	if err != nil {
		rs.t.Fatal(err)
	}
	r := &testReplica{id: id, client: internode.NewClient(identity), leaves: make(chan time.Duration)}
	to := func(other *testReplica, principal string) (http.RoundTripper, bool) {
		if other == nil {
			return nil, false
		}
		return r.client.Request(other.address, principal), true
	}
	r.testGateway = newTestGateway(rs.t, GatewayOptions{Replicas: &Replicas{
		ID: id, Name: "replica-" + id, Keys: rs.keys, DrainDelay: time.Hour,
		Pass: func(owner, principal string) (http.RoundTripper, bool) {
			return to(rs.get(func(other *testReplica) bool { return other.id == owner }), principal)
		},
		Other: func(principal string) (http.RoundTripper, bool) {
			return to(rs.get(func(other *testReplica) bool {
				select {
				case <-other.g.leaving:
					return false
				default:
					return other.id != id
				}
			}), principal)
		},
		Degraded: func() bool { return false },
	}}, handle, func(g *Gateway) {
		g.sleep = func(d time.Duration) { r.leaves <- d }
		g.drainTimeout = patience // a session of a busy host has nothing in flight only now and then
	})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		rs.t.Fatal(err)
	}
	r.address = ln.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := internode.NewServer(identity, internode.Routes{Requests: r.g.ServePassed}).Serve(ctx, ln); err != nil {
			rs.t.Error(err)
		}
	}()
	r.gone = func() {
		rs.mu.Lock()
		delete(rs.all, id)
		rs.mu.Unlock()
		cancel()
		<-served
		r.client.Close()
	}
	rs.t.Cleanup(func() {
		r.stop()
		select {
		case <-r.leaves:
		case <-r.ended:
		}
		<-r.ended
		r.gone()
	})
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.all[id] = r
	return r
}

func newTestReplicas(t *testing.T) *testReplicas {
	return &testReplicas{t: t, keys: seal.Random(), all: map[string]*testReplica{}}
}

// When one of several replicas shuts down, it finishes requests in progress, other replicas take
// new sessions, and each session ends when it has nothing in flight.
func TestDrainBesideOtherReplicas(t *testing.T) {
	t.Parallel()
	rs := newTestReplicas(t)
	calls := make(chan *host.Request, 2)
	a := rs.add("a", func(r *host.Request) { calls <- r })
	b := rs.add("b", nil)
	if got := a.do("GET", "/health", ""); got.status != 200 || got.body != `{"status":"ok","replica":"replica-a"}`+"\n" {
		t.Errorf("before: %+v", got)
	}
	busy, quiet := a.begin("/mcp"), a.begin("/mcp")
	listening := a.open("GET", "/mcp", "", "Mcp-Session-Id", quiet, "Accept", "text/event-stream")
	defer listening.Body.Close()
	others := b.begin("/mcp")
	passed := a.open("GET", "/mcp", "", "Mcp-Session-Id", others, "Accept", "text/event-stream")
	defer passed.Body.Close()
	running := make(chan answer, 1)
	go func() { running <- a.do("POST", "/mcp", call(1, "x"), "Mcp-Session-Id", busy) }()
	first := <-calls

	a.stop()
	<-a.g.leaving
	if got := a.do("GET", "/health", ""); got.status != 503 || got.body != `{"status":"draining","replica":"replica-a"}`+"\n" {
		t.Errorf("during the delay: %+v", got)
	}
	begun := a.do("POST", "/mcp", initialize)
	if owner := a.g.forwarder.ownerOf(begun.header.Get("Mcp-Session-Id")); begun.status != 200 || owner != "b" || !begun.last {
		t.Errorf("a new session: %+v, of %s", begun, owner)
	}
	body, headers := modern(1, "tools/call", `"name":"x","arguments":{},`)
	if got := a.do("POST", "/mcp", body, headers...); got.status != 200 || !got.last {
		t.Errorf("a stateless request: %+v", got)
	}
	if got := a.do("POST", "/mcp/git/message", call(1, "x")); got.status != 202 {
		t.Errorf("a request without a handshake: %+v", got)
	}
	if opened := b.opened.Load(); opened != 4 {
		t.Errorf("b has opened %d sessions, want 4", opened)
	}
	if got := a.do("POST", "/mcp", `{"jsonrpc":"2.0","id":2,"method":"ping"}`, "Mcp-Session-Id", quiet); got.status != 200 {
		t.Errorf("a session of a: %+v", got)
	}

	if d := <-a.leaves; d != time.Hour {
		t.Errorf("the delay is %s", d)
	}
	for what, stream := range map[string]*http.Response{"the session's": listening, "one of b": passed} {
		if _, err := io.Copy(io.Discard, stream.Body); err != nil {
			t.Errorf("%s stream does not end regularly: %v", what, err)
		}
	}
	mcptest.Eventually(t, "the quiet session ends", func() bool {
		return b.do("POST", "/mcp", `{"jsonrpc":"2.0","id":3,"method":"ping"}`, "Mcp-Session-Id", quiet).status == 404
	})
	if got := b.do("POST", "/mcp", `{"jsonrpc":"2.0","id":3,"method":"ping"}`, "Mcp-Session-Id", busy); got.status != 200 {
		t.Errorf("the busy session, through another replica: %+v", got)
	}
	first.Reply([]byte(`{"content":[]}`), nil)
	if got := <-running; got.status != 200 || !strings.Contains(got.body, `"result"`) {
		t.Errorf("the request in progress: %+v", got)
	}
	<-a.ended
	if got := b.do("POST", "/mcp", call(4, "x"), "Mcp-Session-Id", busy); got.status != 404 {
		t.Errorf("after the end: %+v", got)
	}
}

// The last replica accepts new sessions during the delay.
func TestDrainOfTheLastReplica(t *testing.T) {
	t.Parallel()
	a := newTestReplicas(t).add("a", nil)
	a.stop()
	<-a.g.leaving
	id := a.begin("/mcp")
	if got := a.do("POST", "/mcp", call(1, "x"), "Mcp-Session-Id", id); got.status != 200 {
		t.Errorf("got %+v", got)
	}
}

// No call fails while replicas are replaced one after the other behind a TCP load balancer, and
// hosts of both eras, which keep their connections, call all the time.
func TestARollingRestartFailsNoCall(t *testing.T) {
	t.Parallel()
	rs := newTestReplicas(t)
	var backends sync.Map // keys are the addresses of the backends
	start := func(id string) *testReplica {
		r := rs.add(id, nil)
		backends.Store(strings.TrimPrefix(r.url, "http://"), nil)
		return r
	}
	old := []*testReplica{start("a1"), start("b1"), start("c1")}
	balancer := newTestBalancer(t, &backends)

	const hosts = 4
	var calls [hosts]atomic.Int64
	stop := make(chan struct{})
	var work sync.WaitGroup
	for i := range hosts {
		work.Go(func() {
			client := &http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			if err := callAll(client, balancer, i%2 == 0, stop, &calls[i]); err != nil {
				t.Errorf("host %d: %v", i, err)
				calls[i].Add(1 << 40) // so that answered does not wait for it
			}
		})
	}
	// answered waits until each host has had two answers, and so no connection from before.
	answered := func() {
		var before [hosts]int64
		for i := range hosts {
			before[i] = calls[i].Load()
		}
		mcptest.Eventually(t, "all hosts go on", func() bool {
			for i := range hosts {
				if calls[i].Load() < before[i]+2 {
					return false
				}
			}
			return true
		})
	}
	for i, r := range old {
		answered()
		start(string(rune('a'+i)) + "2")
		r.stop()
		<-r.g.leaving
		answered() // the load balancer still has the backend
		backends.Delete(strings.TrimPrefix(r.url, "http://"))
		answered()
		<-r.leaves
		<-r.ended
		r.gone()
	}
	answered()
	close(stop)
	work.Wait()
}

// callAll makes calls until stop is closed, in a session, which it reopens if it has ended, or
// without one. It returns the error of a failed call.
func callAll(client *http.Client, url string, sessions bool, stop <-chan struct{}, calls *atomic.Int64) error {
	id := ""
	for n := 1; ; n++ {
		select {
		case <-stop:
			return nil
		default:
		}
		body, headers := modern(1, "tools/call", `"name":"x","arguments":{},`)
		if sessions {
			body, headers = call(n, "x"), []string{"Mcp-Session-Id", id}
			if id == "" {
				body, headers = initialize, nil
			}
		}
		r, err := http.NewRequest(http.MethodPost, url+"/mcp", strings.NewReader(body))
		if err != nil {
			return err
		}
		r.GetBody = nil // no retry
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		resp, err := client.Do(r)
		if err != nil {
			return err
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		switch {
		case err != nil:
			return err
		case sessions && id != "" && resp.StatusCode == 404:
			id = ""
		case resp.StatusCode != 200 || !strings.Contains(string(text), `"result"`):
			return fmt.Errorf("%s: %s", resp.Status, text)
		case sessions && id == "":
			id = resp.Header.Get("Mcp-Session-Id")
		default:
			calls.Add(1)
			time.Sleep(time.Millisecond) // a closed connection occupies its port for a minute
		}
	}
}

// newTestBalancer returns the URL of a load balancer, which gives each connection to the next
// backend that accepts it.
func newTestBalancer(t *testing.T, backends *sync.Map) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	t.Cleanup(func() {
		ln.Close()
		work.Wait()
	})
	work.Go(func() {
		for turn := 0; ; turn++ {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			work.Go(func() {
				defer conn.Close()
				var all []string
				for address := range backends.Range {
					all = append(all, address.(string))
				}
				var last error
				for i := range all {
					backend, err := net.Dial("tcp", all[(turn+i)%len(all)])
					if err != nil {
						last = err
						continue
					}
					defer backend.Close()
					var answers sync.WaitGroup
					answers.Go(func() {
						_, _ = io.Copy(conn, backend)
						_ = conn.(*net.TCPConn).CloseWrite()
					})
					_, _ = io.Copy(backend, conn)
					_ = backend.(*net.TCPConn).CloseWrite()
					answers.Wait()
					return
				}
				t.Errorf("no backend of %q accepts a connection: %v", all, last)
			})
		}
	})
	return "http://" + ln.Addr().String()
}

// A lostConnection is a transport whose connections end after a request was sent and before the
// other replica has taken it.
type lostConnection struct {
	t    *testing.T
	sent chan string // receives the body of each attempt
}

func (l lostConnection) RoundTrip(r *http.Request) (*http.Response, error) {
	body := r.Body
	for range 2 {
		text, err := io.ReadAll(body)
		if err != nil {
			l.t.Error(err)
		}
		l.sent <- string(text)
		if body, err = r.GetBody(); err != nil {
			l.t.Error(err)
		}
	}
	return nil, &transports.Failure{Outcome: transports.NotSent, Cause: io.ErrUnexpectedEOF}
}

// A request that another replica did not take is sent again. If that fails, it is served here.
func TestRequestNotTakenByAReplicaIsServed(t *testing.T) {
	t.Parallel()
	lost := lostConnection{t, make(chan string, 2)}
	keys := seal.Random()
	begins := func(string) (http.RoundTripper, bool) { return lost, true }
	leaves := make(chan struct{})
	gw := newTestGateway(t, GatewayOptions{Replicas: &Replicas{
		ID: "a", Keys: keys, DrainDelay: time.Hour, Other: begins, Degraded: func() bool { return false },
		Pass: func(_, principal string) (http.RoundTripper, bool) { return lost, true },
	}}, nil, func(g *Gateway) { g.sleep = func(time.Duration) { <-leaves } })
	of := keys.SealText(purposeSession, append(make([]byte, sessionRandom), "gone"...))
	if got := gw.do("POST", "/mcp", call(1, "x"), "Mcp-Session-Id", of); got.status != 404 || !strings.Contains(got.body, `"id":1`) {
		t.Errorf("a request of a session: %+v", got)
	}
	if first, second := <-lost.sent, <-lost.sent; first != call(1, "x") || second != first {
		t.Errorf("it was sent as %q and %q", first, second)
	}
	gw.stop()
	defer close(leaves)
	<-gw.g.leaving
	body, headers := modern(2, "tools/call", `"name":"x","arguments":{},`)
	if got := gw.do("POST", "/mcp", body, headers...); got.status != 200 || !strings.Contains(got.body, `"id":2`) {
		t.Errorf("a stateless request during the shutdown: %+v", got)
	}
	if first, second := <-lost.sent, <-lost.sent; first != body || second != first {
		t.Errorf("it was sent as %q and %q", first, second)
	}
}

// An event stream from another replica ends with the shutdown. A stream of a session ends
// without an error, so that its host resumes it. Any other ends with an error.
func TestAPassedStreamIsCutOffAtTheEnd(t *testing.T) {
	t.Parallel()
	for _, session := range []bool{true, false} {
		p := newStatusProbe(t)
		p.passing = roundTrip(func(r *http.Request) (*http.Response, error) {
			events, w := io.Pipe()
			go func() {
				_, _ = io.WriteString(w, ": \n\n") // the other side reads until the end
				p.g.forwarder.endFinishing()
				<-r.Context().Done()
				w.CloseWithError(r.Context().Err())
			}()
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: events, Request: r}, nil
		})
		var got answer
		if session {
			p.elsewhere(p.passing)
			got = p.call("x")
		} else {
			close(p.g.leaving)
			got = p.modern("tools/call", `"name":"x",`)
			p.g.leaving = make(chan struct{})
		}
		want := ": \n\n"
		if !session {
			want += "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":5111,\"message\":\"dynmcp is shutting down (outcome unknown: the call may have run)\",\"data\":{\"source\":\"dynmcp\",\"outcome\":\"unknown\"}}}\n\n"
		}
		if got.status != 200 || got.body != want {
			t.Errorf("of a session: %t: got %+v, want %s", session, got, want)
		}
	}
}
