package gateway

import (
	"context"
	"encoding/json"
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
	"github.com/dynmcp/dynmcp/internal/membudget"
	"github.com/dynmcp/dynmcp/transports/host"
)

// Incomplete bodies count toward the memory budget: the next request is denied before its body
// is read, also if its length is unknown. Once the first requests are gone there is room again.
func TestBodiesAreDeniedBeforeTheyAreRead(t *testing.T) {
	t.Parallel()
	const size = 64 << 10
	tg := newTestGateway(t, GatewayOptions{Memory: membudget.New(16*size, nil)}, nil, func(g *Gateway) { g.bodyTimeout = 10 * time.Second })
	var begun []net.Conn
	for range 8 {
		begun = append(begun, tg.dial(fmt.Sprintf("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n{", size)))
	}
	mcptest.Soon(t, "all requests are read", func() bool { return tg.g.memory.Total() == 8*size })
	for _, length := range []string{fmt.Sprintf("Content-Length: %d\r\n\r\n", size), fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", size, strings.Repeat(" ", size))} {
		got := tg.raw("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n" + length)
		if !strings.HasPrefix(got, "HTTP/1.1 503 ") || !strings.Contains(got, "Retry-After: 5") || !strings.Contains(got, `"outcome":"not_sent"`) || !strings.Contains(got, "max_held_bytes") {
			t.Errorf("%.60q: got %q", length, got)
		}
	}
	if a := tg.do("GET", "/health", ""); a.status != 200 {
		t.Errorf("without a body: %+v", a)
	}
	for _, conn := range begun {
		conn.Close()
	}
	mcptest.Soon(t, "nothing is held", func() bool { return tg.g.memory.Total() == 0 })
	tg.begin("/mcp")
}

// Unread answers count toward the memory budget, with and without a session, as JSON and as
// events: connections of hosts that do not read are closed, and the others get their answers.
func TestUnreadAnswersAreBounded(t *testing.T) {
	t.Parallel()
	const size, most = 8 << 20, 32 << 20 // the system buffers up to 4 MB of each
	var answered atomic.Int64
	large := json.RawMessage(fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, strings.Repeat("x", size-1000)))
	tg := newTestGateway(t, GatewayOptions{Memory: membudget.New(most, nil), MaxResponseBytes: 2 * size}, func(r *host.Request) {
		r.Reply(large, nil)
		answered.Add(1)
	})
	var unread []net.Conn
	for i := range 12 {
		headers, line := "Accept: application/json\r\n", call(i, "x")
		if i%2 == 0 {
			headers = "Accept: text/event-stream\r\n"
		}
		if i%4 < 2 {
			headers += "Mcp-Session-Id: " + tg.begin("/mcp") + "\r\n"
		} else {
			headers += "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: x\r\n"
			line = strings.Replace(line, `"params":{`, `"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}},`, 1)
		}
		unread = append(unread, tg.dial(fmt.Sprintf("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s", headers, len(line), line)))
	}
	var peak int64
	mcptest.Soon(t, "half of the budget is in use", func() bool {
		peak = max(peak, tg.g.memory.Total())
		return answered.Load() == 12 && tg.g.memory.Total()/(size-1000) == most/2/size
	})
	if peak > most {
		t.Errorf("%d bytes were held, more than %d", peak, most)
	}
	cut := 0
	var reading sync.WaitGroup
	var mu sync.Mutex
	for _, conn := range unread {
		reading.Go(func() {
			_ = conn.SetReadDeadline(time.Now().Add(patience))
			n, _ := io.Copy(io.Discard, io.LimitReader(conn, size-1000))
			mu.Lock()
			defer mu.Unlock()
			if n < size-1000 {
				cut++
			}
		})
	}
	reading.Wait()
	if cut != 12-most/2/size {
		t.Errorf("%d of 12 connections were closed", cut)
	}
	mcptest.Soon(t, "nothing is held", func() bool { return tg.g.memory.Total() == 0 })
	if a := tg.do("POST", "/mcp", call(1, "x"), "Mcp-Session-Id", tg.begin("/mcp")); a.status != http.StatusOK || len(a.body) < size-1000 {
		t.Errorf("a host that reads: %d %.100s", a.status, a.body)
	}
}

// A call continues after its host has lost the connection, and its memory stays charged.
func TestCallWithoutItsHostStaysCharged(t *testing.T) {
	t.Parallel()
	const size = 100 << 10
	asked := make(chan *host.Request, 1)
	tg := newTestGateway(t, GatewayOptions{}, func(r *host.Request) { asked <- r })
	for _, answered := range []bool{true, false} {
		session := tg.begin("/mcp")
		line := call(1, strings.Repeat("x", size))
		conn := tg.dial(fmt.Sprintf("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: text/event-stream\r\n"+
			"Mcp-Session-Id: %s\r\nContent-Length: %d\r\n\r\n%s", session, len(line), line))
		r := <-asked
		conn.Close()
		none, cancel := context.WithTimeout(t.Context(), patience)
		tg.g.running.wait(none)
		cancel()
		if got := tg.g.memory.Total(); got < size {
			t.Errorf("%d bytes are held for a call of %d", got, len(line))
		}
		if answered {
			r.Reply(json.RawMessage(`{}`), nil)
			mcptest.Soon(t, "the memory of an answered call is freed", func() bool { return tg.g.memory.Total() < size })
		}
		tg.do("DELETE", "/mcp", "", "Mcp-Session-Id", session)
		mcptest.Soon(t, "nothing is held", func() bool { return tg.g.memory.Total() == 0 })
	}
}

// An account is an IPv4 address, an IPv6 network of one machine, or an identity provider's user.
func TestAccountsByAddress(t *testing.T) {
	for _, row := range []struct{ address, principal, want string }{
		{"192.0.2.1:5000", anybody, "192.0.2.1"},
		{"192.0.2.2:5000", bearer, "192.0.2.2"},
		{"192.0.2.1:5000", "ann", "ann"},
		{"[2001:db8:1:2::1]:5000", anybody, "2001:db8:1:2::/64"},
		{"[2001:db8:1:2:ffff::2]:6000", bearer, "2001:db8:1:2::/64"},
		{"[2001:db8:1:3::1]:5000", anybody, "2001:db8:1:3::/64"},
		{"[::ffff:192.0.2.1]:5000", anybody, "::ffff:192.0.2.1"},
		{"@", anybody, ""}, // a socket without an address
	} {
		if got := accountOf(&http.Request{RemoteAddr: row.address}, row.principal); got != row.want {
			t.Errorf("%s of %s: got %q, want %q", row.address, row.principal, got, row.want)
		}
	}
}
