package main

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/dynmcp/dynmcp/bench/internal/web"
)

// besides is how many hosts call beside one that reads nothing.
const besides = 16

// slowReader measures the calls of hosts over HTTP without and with a host beside them
// that reads neither the stream of its session nor its answers, of 1 MB, in turn and in
// one run.
func slowReader(bin binaries, rounds int) error {
	config, err := bin.write("slow.json", `{"mcp": {"upstream": {"command": %q}}, "gateway": {"max_request_bytes": 8388608}}`, bin.upstream)
	if err != nil {
		return err
	}
	p, url, err := startServer(serve(bin.dynmcp, config))
	if err != nil {
		return err
	}
	defer p.terminate()
	s := scenario{name: "10 KB", size: 10 << 10, content: text, inFlight: besides, calls: 8000}
	c := &crowd{tool: "upstream/echo", scenario: s, next: firstID}
	defer c.leave()
	if err := c.join(url, besides, false); err != nil {
		return err
	}
	if _, err := c.drive(s.calls / 4); err != nil {
		return err
	}
	var without, with []sample
	for range rounds {
		got, err := c.drive(s.calls)
		if err != nil {
			return err
		}
		without = append(without, got)
		release, err := stallOne(url)
		if err != nil {
			return err
		}
		got, err = c.drive(s.calls)
		release()
		if err != nil {
			return err
		}
		with = append(with, got)
	}
	fmt.Printf("\n%d hosts over HTTP, %s both ways, without and with one that reads nothing: p99 µs (least–greatest)\n  %s without, %s with, %.2f of that without\n",
		besides, s.name, spread(values(without, p99)), spread(values(with, p99)), ratio(with, without, p99))
	return nil
}

// stallOne begins a session that reads no more: its stream is open, and eight answers
// wait for it.
func stallOne(url string) (release func(), err error) {
	client := web.NewClient()
	defer client.CloseIdleConnections()
	h := web.NewHost(url, client)
	if err := h.Handshake(context.Background()); err != nil {
		return nil, err
	}
	address, _, _ := strings.Cut(strings.TrimPrefix(url, "http://"), "/")
	var open []net.Conn
	release = func() {
		for _, conn := range open {
			conn.Close()
		}
	}
	send := func(method, body string) error {
		conn, err := net.DialTimeout("tcp", address, 10*time.Second)
		if err != nil {
			return err
		}
		open = append(open, conn)
		_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10) // what the system takes for us is not read either
		_, err = fmt.Fprintf(conn, "%s /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: application/json, text/event-stream\r\nContent-Type: application/json\r\nMcp-Session-Id: %s\r\nContent-Length: %d\r\n\r\n%s",
			method, h.Session(), len(body), body)
		return err
	}
	if err := send("GET", ""); err != nil {
		release()
		return nil, err
	}
	calls := newCalls("upstream/echo", "", scenario{size: 1 << 20, content: text})
	for i := range 8 {
		if err := send("POST", string(calls.number(firstID+i))); err != nil {
			release()
			return nil, err
		}
	}
	return release, nil
}
