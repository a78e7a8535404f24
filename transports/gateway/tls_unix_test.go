//go:build unix

package gateway

import (
	"crypto/tls"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Hosts get the last certificate that was read, even if a named pipe has replaced its file.
func TestACertificateThatBecomesAPipe(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writeCertificate(t, cert, key, 7)
	var logged strings.Builder
	c := &certificate{cert: cert, key: key, log: slog.New(slog.NewTextHandler(&logged, nil))}
	at := time.Now()
	ln, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		return c.get(hello.Context(), at), nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	for range 2 {
		accepted := make(chan error, 1)
		go func() {
			conn, err := ln.Accept()
			if err == nil {
				err = conn.(*tls.Conn).HandshakeContext(t.Context())
				conn.Close()
			}
			accepted <- err
		}()
		dialer := &tls.Dialer{NetDialer: &net.Dialer{Timeout: time.Minute}, Config: &tls.Config{InsecureSkipVerify: true}}
		conn, err := dialer.DialContext(t.Context(), "tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if got := conn.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.Int64(); got != 7 {
			t.Errorf("got certificate %d, want the last one that was read", got)
		}
		conn.Close()
		if err := <-accepted; err != nil {
			t.Error(err)
		}
		if err := os.Remove(cert); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(cert, 0o600); err != nil {
			t.Fatal(err)
		}
		at = at.Add(checkEvery)
	}
	if !strings.Contains(logged.String(), cert+" is not a regular file") {
		t.Errorf("the log does not name the file:\n%s", logged.String())
	}
}
