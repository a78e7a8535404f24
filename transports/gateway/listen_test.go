package gateway

import (
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// connect opens count silent connections until the test ends.
func connect(t *testing.T, ln net.Listener, count int) {
	t.Helper()
	for range count {
		conn, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
	}
}

func TestConnectionsAreLimited(t *testing.T) {
	t.Parallel()
	const limit, count = 8, 40
	ln, err := Listen("127.0.0.1:0", false, false, limit)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	connect(t, ln, count)
	for i := range count {
		accepted, err := ln.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer accepted.Close()
		conns := ln.(*listener).conns
		conns.mu.Lock()
		open := conns.unauthenticated.Len()
		conns.mu.Unlock()
		if open != min(i+1, limit) {
			t.Errorf("%d connections are open, want at most %d", open, limit)
		}
	}
}

// Silent connections keep nobody out: they time out, and waiting hosts are served.
func TestSilentConnectionsTimeOut(t *testing.T) {
	t.Parallel()
	ln, err := Listen("127.0.0.1:0", false, false, 8)
	if err != nil {
		t.Fatal(err)
	}
	g := New(GatewayOptions{AllowedHosts: []string{"127.0.0.1"}})
	g.headerTimeout = 50 * time.Millisecond
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- g.Serve(ctx, ln) }()
	connect(t, ln, 40)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	mcptest.Eventually(t, "a request is answered", func() bool {
		resp, err := client.Get("http://" + ln.Addr().String() + "/health")
		if err != nil {
			return false // the request was slow itself
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
