//go:build linux

package main

import (
	"io"
	"net"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/bench/internal/ledger"
)

// A balancer passes TCP connections on to its targets in turn, without reading them. It skips a
// target that refuses a connection, or does not accept it within a second.
type balancer struct {
	ln      net.Listener
	targets []string
	ended   chan struct{}
	work    sync.WaitGroup

	mu     sync.Mutex
	next   int
	conns  map[net.Conn]bool
	routes map[string]route // of the last connection from an address
}

// balance starts a balancer on a free port.
func balance(targets []string) (*balancer, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	b := &balancer{ln: ln, targets: targets, ended: make(chan struct{}), conns: map[net.Conn]bool{}, routes: map[string]route{}}
	b.work.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return // it is closed
			}
			b.work.Go(func() { b.pass(conn) })
		}
	})
	return b, nil
}

// close ends all connections.
func (b *balancer) close() {
	close(b.ended)
	b.ln.Close()
	b.mu.Lock()
	for conn := range b.conns {
		conn.Close()
	}
	b.mu.Unlock()
	b.work.Wait()
}

// A route is the target of a connection.
type route struct {
	target int   // -1 is none
	since  int64 // as of ledger.Now
}

// route returns the route of the last connection from an address.
func (b *balancer) route(from string) route {
	b.mu.Lock()
	defer b.mu.Unlock()
	if to, ok := b.routes[from]; ok {
		return to
	}
	return route{target: -1}
}

// keep records a connection, or closes it if the balancer is closed.
func (b *balancer) keep(conn net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-b.ended:
		conn.Close()
	default:
		b.conns[conn] = true
	}
}

func (b *balancer) drop(conn net.Conn) {
	conn.Close()
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.conns, conn)
}

func (b *balancer) pass(near net.Conn) {
	b.keep(near)
	defer b.drop(near)
	from := near.RemoteAddr().String()
	b.mu.Lock()
	delete(b.routes, from)
	first := b.next
	b.next++
	b.mu.Unlock()
	for i := range b.targets {
		target := (first + i) % len(b.targets)
		far, err := net.DialTimeout("tcp", b.targets[target], time.Second)
		if err != nil {
			continue
		}
		b.keep(far)
		defer b.drop(far)
		b.mu.Lock()
		b.routes[from] = route{target, ledger.Now()}
		b.mu.Unlock()
		var back sync.WaitGroup
		back.Go(func() { splice(near, far) })
		splice(far, near)
		back.Wait()
		return
	}
}

// splice copies one direction until it ends. A reset is passed on as a reset.
func splice(to, from net.Conn) {
	if _, err := io.Copy(to, from); err != nil {
		if tcp, ok := to.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // it may be closed
		}
		to.Close()
		from.Close()
		return
	}
	if tcp, ok := to.(*net.TCPConn); ok {
		_ = tcp.CloseWrite() // the other side may be gone
	}
}
