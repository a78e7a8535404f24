//go:build linux || darwin

package box

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// knock connects to a proxy, and sends a line of a request.
func knock(t *testing.T, p *proxy, format string, args ...any) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("tcp", p.address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	_, _ = fmt.Fprintf(conn, format, args...)
	return conn, bufio.NewReader(conn)
}

// tunnel asks for a tunnel, and returns the status of the answer.
func tunnel(t *testing.T, p *proxy, to string) (net.Conn, int) {
	t.Helper()
	auth := &http.Request{Header: http.Header{}}
	auth.SetBasicAuth("dynmcp", p.password)
	conn, answer := knock(t, p, "CONNECT %s HTTP/1.1\r\nHost: x\r\nProxy-Authorization: %s\r\n\r\n", to, auth.Header.Get("Authorization"))
	resp, err := http.ReadResponse(answer, nil)
	if err != nil {
		t.Fatal(err)
	}
	return conn, resp.StatusCode
}

func atEnd(conn io.Reader) error {
	if _, err := io.ReadFull(conn, make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("it is open: %v", err)
	}
	return nil
}

// Connections without the password take no places from those with it: the oldest has to leave.
func TestStrangers(t *testing.T) {
	there := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer there.Close()
	p, _ := open(t, there.Listener.Addr().String())
	var all []net.Conn
	for range 3 * maxStrangers {
		conn, _ := knock(t, p, "C")
		all = append(all, conn)
	}
	if resp, err := through(t, p).Get(there.URL); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("got %v, %v", resp, err)
	}
	for _, conn := range all[:2*maxStrangers] {
		if err := atEnd(conn); err != nil {
			t.Error(err)
		}
	}
	p.door.mu.Lock()
	defer p.door.mu.Unlock()
	if len(p.door.strangers) > maxStrangers || p.door.known != 1 {
		t.Errorf("there are %d strangers, and %d others", len(p.door.strangers), p.door.known)
	}
}

// A refusal ends the connection, and so does a header that is too long.
func TestStrangersLeave(t *testing.T) {
	p, _ := open(t, "127.0.0.1:1")
	for name, c := range map[string]struct {
		request string
		want    int
	}{
		"no password":   {"GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n", http.StatusProxyAuthRequired},
		"a long header": {"GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nX: " + strings.Repeat("x", 2*maxHeader) + "\r\n\r\n", http.StatusRequestHeaderFieldsTooLarge},
	} {
		_, answer := knock(t, p, "%s", c.request)
		resp, err := http.ReadResponse(answer, nil)
		if err != nil || resp.StatusCode != c.want {
			t.Fatalf("%s: got %v, %v", name, resp, err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		if err := atEnd(answer); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A server has a number of connections, which become free.
func TestMaxConnections(t *testing.T) {
	there, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer there.Close()
	p, refused := open(t, there.Addr().String())
	var all []net.Conn
	for range maxConnections {
		conn, status := tunnel(t, p, there.Addr().String())
		if status != http.StatusOK {
			t.Fatalf("connection %d: got %d", len(all)+1, status)
		}
		all = append(all, conn)
	}
	if _, status := tunnel(t, p, there.Addr().String()); status != http.StatusServiceUnavailable {
		t.Errorf("one connection too many: got %d", status)
	}
	if why := <-refused; !strings.Contains(why, "more than 64 connections") {
		t.Errorf("got %q", why)
	}
	first, err := there.Accept()
	if err != nil {
		t.Fatal(err)
	}
	first.Close()
	all[0].Close()
	for began := time.Now(); ; { // its place becomes free when both ends are closed
		if _, status := tunnel(t, p, there.Addr().String()); status == http.StatusOK {
			return
		}
		<-refused
		if time.Since(began) > patience {
			t.Fatal("no place becomes free")
		}
	}
}

// An end is one end of a connection that can be closed in one direction.
type end struct {
	net.Conn
	in  *io.PipeReader
	out *io.PipeWriter
}

func ends() (end, end) {
	firstIn, secondOut := io.Pipe()
	secondIn, firstOut := io.Pipe()
	return end{nil, firstIn, firstOut}, end{nil, secondIn, secondOut}
}

func (e end) Read(p []byte) (int, error)  { return e.in.Read(p) }
func (e end) Write(p []byte) (int, error) { return e.out.Write(p) }
func (e end) CloseWrite() error           { return e.out.Close() }
func (e end) Close() error                { return errors.Join(e.in.Close(), e.out.Close()) }

// A tunnel ends with both directions, or when one has ended and nothing passes in the other.
func TestRelay(t *testing.T) {
	for name, c := range map[string]struct {
		far  func(far end) // after the client has closed its side
		want time.Duration // until the tunnel ends
	}{
		"both end":               {func(far end) { speak(far, 0, 0); far.Close() }, 0},
		"the far end is silent":  {func(far end) { speak(far, 0, 0) }, halfOpen},
		"the far end goes on":    {func(far end) { speak(far, 5, halfOpen-time.Second); far.Close() }, 5 * (halfOpen - time.Second)},
		"the far end gets stuck": {func(far end) { speak(far, 5, halfOpen-time.Second) }, 5 * halfOpen},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, here := ends()
				there, far := ends()
				var bytes atomic.Int64
				began, ended := time.Now(), make(chan time.Duration, 1)
				go func() {
					(&proxy{halfOpen: halfOpen}).relay(here, here, &countedConn{Conn: there, bytes: &bytes})
					ended <- time.Since(began)
				}()
				go func() { _, _ = io.Copy(io.Discard, client) }()
				go c.far(far)
				_, _ = io.WriteString(client, "words")
				_ = client.CloseWrite()
				if got := <-ended; got < c.want || got > c.want+halfOpen {
					t.Errorf("it ended after %v", got)
				}
				client.Close()
				far.Close()
			})
		})
	}
}

// speak reads to the end, and then sends a word after each pause.
func speak(far end, words int, pause time.Duration) {
	_, _ = io.Copy(io.Discard, far)
	for range words {
		time.Sleep(pause)
		_, _ = io.WriteString(far, "word")
	}
}

// Descriptors are kept for other work.
func TestScarce(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if scarce(conn) {
		t.Errorf("of %d descriptors few are left", limit.Cur)
	}
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	low := limit
	_ = raw.Control(func(fd uintptr) { low.Cur = uint64(fd) + 1 })
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &low); err != nil {
		t.Fatal(err)
	}
	few := scarce(conn)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if !few {
		t.Error("after the last descriptor enough are left")
	}
}

func TestIsElsewhere(t *testing.T) {
	machine := []netip.Prefix{netip.MustParsePrefix("127.0.0.1/8"), netip.MustParsePrefix("8.8.4.4/32"), netip.MustParsePrefix("2606:4700::1/128")}
	for address, want := range map[string]bool{
		"8.8.8.8": true, "8.8.4.4": false, "::ffff:8.8.4.4": true, "2606:4700::1": false, "2606:4700::2": true, "127.0.0.9": false, "10.0.0.1": false,
	} {
		if got := isElsewhere(netip.MustParseAddr(address), machine); got != want {
			t.Errorf("%s: got %t", address, got)
		}
	}
	ours, err := machineHas(netip.MustParseAddr("127.0.0.2"))
	if err != nil || !ours {
		t.Errorf("127.0.0.2: got %t, %v", ours, err)
	}
}

// machineHas reports whether an address is this machine's.
func machineHas(ip netip.Addr) (bool, error) {
	all, err := machine()
	for _, network := range all {
		if network.Contains(ip) {
			return true, err
		}
	}
	return false, err
}
