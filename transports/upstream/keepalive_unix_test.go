//go:build unix

package upstream

import (
	"net"
	"net/http"
	"syscall"
	"testing"
)

// TCP keep-alive detects a vanished peer while a call waits without a timeout.
func TestHTTPKeepsAlive(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client := newHTTPClient(t.Context(), ConnOptions{})
	conn, err := client.Transport.(*http.Transport).DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	raw, err := conn.(*socket).Conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	err = raw.Control(func(fd uintptr) {
		if on, err := syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_KEEPALIVE); err != nil || on == 0 {
			t.Errorf("got SO_KEEPALIVE %d, %v", on, err)
		}
	})
	if err != nil {
		t.Error(err)
	}
}
