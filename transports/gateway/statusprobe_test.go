package gateway

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dynmcp/dynmcp/internal/membudget"
	"github.com/dynmcp/dynmcp/internal/seal"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
)

// A statusProbe is a gateway whose servers count their requests.
type statusProbe struct {
	*testGateway
	sent    atomic.Int64
	waiting chan *host.Request // requests for the probe to answer
	session string
	passing http.RoundTripper // the transport to the other replica; nil if there is none
}

func newStatusProbe(t *testing.T, tune ...func(*Gateway)) *statusProbe {
	p := &statusProbe{waiting: make(chan *host.Request, 1)}
	handle := func(r *host.Request) {
		p.sent.Add(1)
		name, _ := wire.Text(wire.Get(r.Params, "name"))
		if name == "meta_call" || name == "meta_tree" {
			name, _ = wire.Text(wire.Get(r.Params, "arguments", "path"))
		}
		failure := &transports.Failure{Upstream: "u", Code: transports.CodeExited, Outcome: transports.Unknown, Cause: errors.New("it ended")}
		switch strings.TrimPrefix(name, "/") {
		case "wait":
			p.sent.Add(-1)
			p.waiting <- r
		case "large":
			r.Reply(wire.Quote(strings.Repeat("x", 4<<10)), nil)
		case "refuses":
			r.Reply(nil, wire.ParseError([]byte(`{"code":-32602,"message":"no"}`)))
		case "unfit":
			p.sent.Add(-1) // the aggregator itself answers that
			r.Reply(nil, transports.OutcomeError(wire.CodeInvalidParams, "no", transports.NotSent))
		case "nothing", "node":
			p.sent.Add(-1)
			r.Reply(json.RawMessage(`{"content":[{"type":"text","text":"no"}],"isError":true}`), nil)
		case "slow":
			failure.Code = transports.CodeTimeout
			fallthrough
		case "lost":
			r.Reply(nil, failure)
		default:
			if r.Method != "tools/call" {
				r.Reply(nil, wire.ParseError([]byte(`{"code":-32601,"message":"no"}`)))
				return
			}
			r.Reply(json.RawMessage(`{"content":[]}`), nil)
		}
	}
	control := mcp.NewServer(&mcp.Implementation{Name: "tree", Version: "1"}, nil)
	p.testGateway = newTestGateway(t, GatewayOptions{
		Token: "secret", MaxConnections: 1,
		OpenTree: func(edge Edge, _ string) (*host.Session, func(context.Context)) {
			s := host.NewSession("tree", edge, host.SessionOptions{Control: control, HandleRequest: handle})
			return s, s.End
		},
		TreeKind: func(_, path string) string {
			return map[string]string{"/unfit": "tool", "/lost": "tool", "/slow": "tool", "/node": "node"}[path]
		},
		Replicas: &Replicas{
			ID: "a", Name: "a", Keys: seal.Random(), Degraded: func() bool { return false },
			Pass:  func(string, string) (http.RoundTripper, bool) { return p.passing, p.passing != nil },
			Other: func(string) (http.RoundTripper, bool) { return p.passing, p.passing != nil },
		},
	}, handle, append(tune, func(g *Gateway) { g.drainTimeout = time.Millisecond })...)
	p.session = p.do("POST", "/mcp", initialize, "Authorization", "Bearer secret").header.Get("Mcp-Session-Id")
	return p
}

// post sends a message with the token and additional headers.
func (p *statusProbe) post(path, body string, headers ...string) answer {
	p.t.Helper()
	return p.do("POST", path, body, append([]string{"Authorization", "Bearer secret"}, headers...)...)
}

// call calls a tool in the session.
func (p *statusProbe) call(tool string, headers ...string) answer {
	p.t.Helper()
	return p.post("/mcp", call(7, tool), append([]string{"Mcp-Session-Id", p.session}, headers...)...)
}

// modern sends a request of the stateless era.
func (p *statusProbe) modern(method, params string, change ...string) answer {
	p.t.Helper()
	body, headers := modern(7, method, params)
	return p.post("/mcp", body, append(headers, change...)...)
}

func (p *statusProbe) get(path string, headers ...string) answer {
	p.t.Helper()
	resp := p.open("GET", path, "", append([]string{"Authorization", "Bearer secret", "Accept", "text/event-stream"}, headers...)...)
	defer resp.Body.Close()
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return answer{status: resp.StatusCode, header: resp.Header}
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(body), false}
}

// bytes sends text that no HTTP client would send, and reads the response.
func (p *statusProbe) bytes(text string) answer {
	p.t.Helper()
	return p.on(p.dial(""), text)
}

// on sends a request on a connection, and reads the response.
func (p *statusProbe) on(conn net.Conn, text string) answer {
	p.t.Helper()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(conn, text); err != nil {
		p.t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body) // an error is expected: unread text resets the connection
	return answer{resp.StatusCode, resp.Header, string(body), false}
}

// ending sends a request during the shutdown, on an earlier connection.
func (p *statusProbe) ending(path, body string, headers ...string) answer {
	p.t.Helper()
	conn := p.dial("")
	if a := p.on(conn, "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"); a.status != 200 {
		p.t.Fatalf("got %+v", a)
	}
	p.g.drainTimeout = patience
	p.g.running.add(1) // a request that ends after this one
	defer p.g.running.add(-1)
	p.stop()
	<-p.g.ending
	return p.on(conn, "POST "+path+" HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer secret\r\nContent-Type: application/json\r\nAccept: */*\r\n"+
		strings.Join(headers, "")+"Content-Length: "+strconv.Itoa(len(body))+"\r\n\r\n"+body)
}

// roundTrip is a transport to another replica.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// gone is a transport whose replica takes the request and is gone then.
var gone = roundTrip(func(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
	}
	return nil, &transports.Failure{Upstream: "b", Code: transports.CodeUnreachable, Outcome: transports.Unknown, Cause: io.ErrUnexpectedEOF}
})

// until returns a transport that calls end before its replica answers.
func until(end func()) roundTrip {
	return func(r *http.Request) (*http.Response, error) {
		if r.Body != nil {
			_, _ = io.Copy(io.Discard, r.Body)
		}
		end()
		<-r.Context().Done()
		return nil, &transports.Failure{Upstream: "b", Code: transports.CodeUnreachable, Outcome: transports.Unknown, Cause: r.Context().Err()}
	}
}

// elsewhere gives the probe a session of another replica.
func (p *statusProbe) elsewhere(passing http.RoundTripper) {
	p.passing = passing
	p.session = p.g.forwarder.Keys.SealText(purposeSession, append(make([]byte, sessionRandom), "b"...))
}

// leave sends a request of the tree during DrainDelay, when other replicas take new requests.
func (p *statusProbe) leave(passing http.RoundTripper) answer {
	close(p.g.leaving)
	defer func() { p.g.leaving = make(chan struct{}) }()
	p.passing = passing
	return p.post("/meta_call", `{"path":"/x"}`)
}

// unlimited sends a body of unknown length that exceeds the memory budget.
func (p *statusProbe) unlimited(path string) answer {
	p.g.memory = membudget.New(100, nil)
	body := call(7, strings.Repeat("x", 200))
	return p.bytes(fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer secret\r\nContent-Type: application/json\r\nAccept: */*\r\nTransfer-Encoding: chunked\r\n\r\n"+
		"%x\r\n%s\r\n%x\r\n%s\r\n", path, 60, body[:60], len(body)-60, body[60:]))
}
