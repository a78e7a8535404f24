package lines

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

// serve serves requests until the test ends, and returns a connection to the server.
func serve(t *testing.T, handler http.HandlerFunc) net.Conn {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func TestConnectionBecomesAStream(t *testing.T) {
	const server = "a/b ü%2F"
	conn := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Name", r.URL.Path)
		stream, err := Accept(w, r)
		if err != nil {
			t.Error(err)
			return
		}
		defer stream.Close()
		line, _ := bufio.NewReader(stream).ReadString('\n')
		_, _ = io.WriteString(stream, line)
	})
	resp, err := Exchange(t.Context(), conn, NewRequest(server))
	if err != nil {
		t.Fatal(err)
	}
	if name := resp.Header.Get("Name"); resp.StatusCode != http.StatusSwitchingProtocols || name != Path+"/"+server {
		t.Errorf("got %s for %s", resp.Status, name)
	}
	stream := resp.Body.(net.Conn)
	if _, err := io.WriteString(stream, "back\n"); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(stream); err != nil || string(got) != "back\n" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestRequestIsNotForLines(t *testing.T) {
	accepted := make(chan error, 1)
	accept := func(w http.ResponseWriter, r *http.Request) {
		stream, err := Accept(w, r)
		if err == nil {
			stream.Close()
		}
		accepted <- err
	}
	r := NewRequest("")
	r.Header.Del("Upgrade")
	resp, err := Exchange(t.Context(), serve(t, accept), r)
	if err != nil || resp.StatusCode != http.StatusUpgradeRequired || <-accepted == nil {
		t.Errorf("got %v, %v", resp, err)
	}
}

// Either side may be another program, which does not wait for the other.
func TestLineBeforeTheAnswer(t *testing.T) {
	accepted := make(chan error, 1)
	conn := serve(t, func(w http.ResponseWriter, r *http.Request) {
		stream, err := Accept(w, r)
		if err == nil {
			stream.Close()
		}
		accepted <- err
	})
	if _, err := io.WriteString(conn, "GET /mcp HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: mcp-lines\r\n\r\nearly\n"); err != nil {
		t.Fatal(err)
	}
	if err := <-accepted; !errors.Is(err, errEarly) {
		t.Errorf("the server: got %v", err)
	}
	conn = serve(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\n\r\nearly\n")
		conn.Close()
	})
	if _, err := Exchange(t.Context(), conn, NewRequest("")); !errors.Is(err, errEarly) {
		t.Errorf("the other: got %v", err)
	}
}

func TestExchangeEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	conn := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel(errors.New("enough"))
		<-r.Context().Done()
	})
	if _, err := Exchange(ctx, conn, NewRequest("")); err == nil || err.Error() != "enough" {
		t.Errorf("got %v", err)
	}
	conn.Close()
}
