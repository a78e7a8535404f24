package gateway

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// crowd returns a test gateway with a token and a limit of connections.
func crowd(t *testing.T, most int) *testGateway {
	tg := newTestGateway(t, GatewayOptions{Token: "good"}, nil)
	tg.ln.conns.limit(most, max(most/8, 1))
	return tg
}

func (t *conns) limit(most, reserved int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.most, t.reserved = most, reserved
}

// counts returns the numbers of unauthenticated and of authenticated connections.
func (t *conns) counts() (unauthenticated, authenticated int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.unauthenticated.Len(), t.authenticated
}

// Connections without a valid token do not keep out hosts that have one, whether they are idle
// or send half a header or half a body.
func TestConnectionsWithoutATokenGoFirst(t *testing.T) {
	t.Parallel()
	const most = 64
	tg := crowd(t, most)
	for i := range 3 * most {
		tg.dial([]string{
			"",
			"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
			"POST /mcp HTTP/1.1\r\nHost: localhost\r\n",
			"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
		}[i%4])
		if i%most == 0 {
			if a := tg.do("POST", "/mcp", initialize, "Authorization", "Bearer good"); a.status != 200 {
				t.Errorf("with a token: %+v", a)
			}
		}
	}
	if unauthenticated, authenticated := tg.ln.conns.counts(); unauthenticated+authenticated > most || authenticated != 1 {
		t.Errorf("%d connections are unauthenticated, %d authenticated", unauthenticated, authenticated)
	}
}

// A request with a wrong token is answered before its body arrives. Its connection is closed.
func TestWrongTokenIsDeniedBeforeTheBody(t *testing.T) {
	t.Parallel()
	tg := crowd(t, 64)
	conn := tg.dial("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n{")
	_ = conn.SetReadDeadline(time.Now().Add(bodyTimeout / 2)) // shorter than the timeout for the body
	got, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 401 ") || !strings.Contains(string(got), "Connection: close") {
		t.Errorf("got %q, %v", got, err)
	}
}

// The account with the most connections makes room: with an idle connection, or with a busy
// one for another account. If a new connection is for the account with the most, and none is
// idle, the new one is denied.
func TestAccountWithTheMostMakesRoom(t *testing.T) {
	t.Parallel()
	table := newConns(16) // 14 authenticated
	open := func(account string) *conn {
		near, far := net.Pipe()
		t.Cleanup(func() { near.Close(); far.Close() })
		c := table.add(near)
		if !c.authenticate(account) {
			c.Close()
			return nil
		}
		return c
	}
	var anns []*conn
	for i := range 14 {
		c := open("ann")
		if c == nil {
			t.Fatalf("connection %d was denied", i)
		}
		anns = append(anns, c)
	}
	if open("ann") != nil {
		t.Error("a busy connection was closed for another one of the same account")
	}
	changed(anns[5], http.StateIdle)
	gone := func(c *conn) bool {
		table.mu.Lock()
		defer table.mu.Unlock()
		return c.at == nil
	}
	if open("ann") == nil || !gone(anns[5]) {
		t.Error("the idle connection was not closed")
	}
	for i := range 6 {
		if open(fmt.Sprint("user", i)) == nil || !gone(anns[[]int{0, 1, 2, 3, 4, 6}[i]]) {
			t.Errorf("user %d: the longest busy connection was not closed", i)
		}
	}
	if _, authenticated := table.counts(); authenticated != 14 {
		t.Errorf("%d connections are open", authenticated)
	}
	for range 3 { // ann has eight, user0 has one
		if open("user0") == nil {
			t.Error("no connection of the account with the most was closed")
		}
	}
	if open("user0") != nil {
		t.Error("an account got a connection of another one with as many")
	}
	for range 5 {
		near, far := net.Pipe()
		t.Cleanup(func() { near.Close(); far.Close() })
		table.add(near)
	}
	if unauthenticated, authenticated := table.counts(); unauthenticated != 2 || authenticated != 14 {
		t.Errorf("%d connections are unauthenticated, %d authenticated, want 2 and 14", unauthenticated, authenticated)
	}
}

// Without a token in the config, too, connections without a request are closed for others.
func TestConnectionsWithoutARequestGoFirst(t *testing.T) {
	t.Parallel()
	tg := newTestGateway(t, GatewayOptions{}, nil)
	tg.ln.conns.limit(8, 1)
	id := tg.begin("/mcp")
	for range 40 {
		tg.dial("")
	}
	if a := tg.do("POST", "/mcp", call(1, "x"), "Mcp-Session-Id", id); a.status != 200 {
		t.Errorf("got %+v", a)
	}
	mcptest.Soon(t, "the rest are closed", func() bool {
		unauthenticated, authenticated := tg.ln.conns.counts()
		return unauthenticated+authenticated <= 8
	})
}

// Of the unauthenticated connections, the longest unchanged is closed first. If it were the
// newest, an attacker could keep out new hosts.
func TestLongestUnchangedConnectionGoesFirst(t *testing.T) {
	t.Parallel()
	table := newConns(4)
	var all []*conn
	add := func() {
		near, far := net.Pipe()
		t.Cleanup(func() { near.Close(); far.Close() })
		all = append(all, table.add(near))
	}
	open := func() (numbers []int) {
		table.mu.Lock()
		defer table.mu.Unlock()
		for i, c := range all {
			if c.at != nil {
				numbers = append(numbers, i)
			}
		}
		return numbers
	}
	for range 4 {
		add()
	}
	changed(all[0], http.StateActive)
	for _, want := range []string{"[0 2 3 4]", "[0 3 4 5]", "[0 4 5 6]", "[4 5 6 7]"} {
		add()
		if got := fmt.Sprint(open()); got != want {
			t.Errorf("open are %s, want %s", got, want)
		}
	}
}
