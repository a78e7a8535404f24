package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/bench/internal/hosts"
)

// Each attack comes from its own address. If there are tokens, it has that of one user,
// except for bad connections, which have none.
const (
	badAddress    = "127.0.9.1"
	greedyAddress = "127.0.9.2" // begins sessions
	unreadAddress = "127.0.9.3"
	floodAddress  = "127.0.9.4"
	dialPause     = time.Millisecond / 2 // between bad connections of one kind
)

// attack makes all attacks at once and returns when they are over.
func (g *gathering) attack() error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var held sync.WaitGroup // attacks that last until the others are over
	defer held.Wait()
	defer cancel()
	at, err := url.Parse(g.url)
	if err != nil {
		return err
	}
	head := "POST /mcp HTTP/1.1\r\nHost: " + at.Host + "\r\n"
	half := head + "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: 1000000\r\n\r\n" + strings.Repeat(" ", 1000)
	for _, begins := range []string{"", head + "X-", half} {
		held.Go(func() { g.holdConnections(ctx, at.Host, begins, g.size.connections/2) })
	}
	held.Go(func() {
		for ctx.Err() == nil {
			g.peak, g.mostBad = max(g.peak, g.status("VmRSS:")>>10), max(g.mostBad, g.bad.Load())
			if bytes, err := g.metric("dynmcp_held_bytes"); err == nil { // otherwise the request was turned away as a newcomer
				g.mostHeld = max(g.mostHeld, int(bytes)>>20)
			}
			time.Sleep(20 * time.Millisecond)
		}
	})
	within(5*time.Second, func() bool { return g.bad.Load() >= int64(g.size.connections*3/4) })
	least := time.NewTimer(g.size.phase)
	var work sync.WaitGroup
	errs := make([]error, 2)
	work.Go(g.manyHandshakes)
	work.Go(func() { errs[0] = g.leaveUnread(ctx, at.Host) })
	work.Go(func() { errs[1] = g.flood() })
	work.Wait()
	<-least.C
	return errors.Join(errs...)
}

// holdConnections keeps count connections open that have sent the beginning of a request,
// and makes a new one for each that is closed. The three kinds together are more than needed,
// since some are refused at once and dynmcp must get more than it can hold.
func (g *gathering) holdConnections(ctx context.Context, address, begins string, count int) {
	var held sync.WaitGroup
	defer held.Wait()
	places := make(chan struct{}, count)
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(badAddress)}, Timeout: 5 * time.Second}
	for {
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
			return
		}
		time.Sleep(dialPause)
		held.Go(func() {
			defer func() { <-places }()
			c, err := dialer.DialContext(ctx, "tcp", address)
			if err != nil {
				return
			}
			defer c.Close()
			g.bad.Add(1)
			defer g.bad.Add(-1)
			stop := context.AfterFunc(ctx, func() { c.Close() })
			defer stop()
			_, _ = io.WriteString(c, begins)
			_, _ = io.Copy(io.Discard, c) // until either side closes it
		})
	}
}

// manyHandshakes begins sessions that nobody ends. Some may be refused.
func (g *gathering) manyHandshakes() {
	const atOnce = 8
	var work sync.WaitGroup
	for range atOnce {
		work.Go(func() {
			h, closeIdle := g.as("greedy", greedyAddress)
			defer closeIdle()
			for range g.size.handshakes / atOnce {
				_ = h.Handshake(context.Background())
			}
		})
	}
	work.Wait()
}

// leaveUnread sends calls with answers of 9 MB and does not read these. The connections
// stay open until ctx ends.
func (g *gathering) leaveUnread(ctx context.Context, address string) error {
	token := ""
	if g.users != nil {
		token = "Authorization: Bearer " + g.users.Token("greedy") + "\r\n"
	}
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}},"name":"use_tool","arguments":` +
		use("large/big", `{"bytes":9000000}`) + `}}`
	request := "POST /mcp HTTP/1.1\r\nHost: " + address + "\r\n" + token + "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n" +
		"Mcp-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: use_tool\r\n" + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body)
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(unreadAddress)}}
	for range g.size.unread {
		c, err := dialer.DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		_ = c.(*net.TCPConn).SetReadBuffer(4096)
		context.AfterFunc(ctx, func() { c.Close() })
		if _, err := io.WriteString(c, request); err != nil {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
	return nil
}

// floodKinds are the notifications that a server may send.
var floodKinds = []struct{ method, params string }{
	{"notifications/message", `{"level":"error","data":"flood"}`},
	{"notifications/progress", `{"progressToken":1,"progress":1}`},
	{"notifications/tools/list_changed", `{}`},
	{"notifications/prompts/list_changed", `{}`},
	{"notifications/resources/list_changed", `{}`},
	{"notifications/resources/updated", `{"uri":"fake://a"}`},
	{"notifications/tasks/status", `{"taskId":"1","status":"working"}`},
	{"notifications/elicitation/complete", `{"elicitationId":"1"}`},
	{"notifications/cancelled", `{"requestId":"nobody's"}`},
	{"notifications/unknown", `{}`},
}

// flood makes a server send each kind of notification many times.
func (g *gathering) flood() error {
	h, closeIdle := g.as("floods", floodAddress)
	defer closeIdle()
	err := h.Handshake(context.Background())
	for tries := 1; err != nil && tries < 5; tries++ { // a newcomer may be turned away
		err = h.Handshake(context.Background())
	}
	if err != nil {
		return err
	}
	for i, kind := range floodKinds {
		ctx, cancel := context.WithTimeout(context.Background(), hosts.Silence)
		began := time.Now()
		_, err := h.Call(ctx, fmt.Sprint(i), "use_tool", use("floods/notify", fmt.Sprintf(`{"method":%q,"params":%s,"times":%d}`, kind.method, kind.params, g.size.floods)))
		cancel()
		if took := time.Since(began); took > time.Second {
			fmt.Printf("  %d of %s took %v\n", g.size.floods, kind.method, rounded(took))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", kind.method, err)
		}
	}
	return h.End(context.Background())
}
