//go:build linux

package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"slices"
	"testing"
	"time"
)

// target sends its name on each connection, then echoes until the other side closes it.
func target(t *testing.T, name string) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return // it is closed
			}
			go func() {
				defer conn.Close()
				fmt.Fprintln(conn, name)
				_, _ = io.Copy(conn, conn) // until it ends
			}()
		}
	}()
	return ln
}

// reach connects to the balancer and returns the name of the target that answers.
func reach(t *testing.T, b *balancer) (net.Conn, *bufio.Reader, string) {
	t.Helper()
	conn, err := net.Dial("tcp", b.ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(conn)
	name, err := in.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return conn, in, name[:len(name)-1]
}

func TestABalancerTakesTargetsInTurnAndPassesOverThoseThatRefuse(t *testing.T) {
	a, gone, c := target(t, "a"), target(t, "gone"), target(t, "c")
	b, err := balance([]string{a.Addr().String(), gone.Addr().String(), c.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.close)
	gone.Close()
	var got []string
	for range 6 {
		conn, _, name := reach(t, b)
		got = append(got, name)
		if route := b.route(conn.LocalAddr().String()); []string{"a", "gone", "c"}[route.target] != name {
			t.Errorf("the route to %s leads to %d", name, route)
		}
	}
	if want := []string{"a", "c", "c", "a", "c", "c"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestABalancerPassesOnBothDirectionsAndTheirEnds(t *testing.T) {
	a := target(t, "a")
	b, err := balance([]string{a.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.close)
	conn, in, _ := reach(t, b)
	if _, err := io.WriteString(conn, "hello"); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(in); err != nil || string(got) != "hello" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestABalancerWithoutTargetsHangsUp(t *testing.T) {
	gone := target(t, "gone")
	gone.Close()
	b, err := balance([]string{gone.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.close)
	conn, err := net.Dial("tcp", b.ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if n, err := conn.Read(make([]byte, 1)); err == nil || n > 0 {
		t.Errorf("got %d bytes, %v", n, err)
	}
}
