//go:build e2e && unix

package sharing

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynmcp/dynmcp/internal/wire"
)

// After the host has closed its stream, the end of the connection is not a lost run, however
// fast the run closes it.
func TestRelayEndsWithItsHost(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	const hosts = 500
	served := make(chan error, 1)
	go func() {
		var failed error
		for range hosts {
			conn, err := listener.Accept()
			if err == nil {
				_, err = io.WriteString(conn, `{"jsonrpc":"2.0","method":"`+ready+`"}`+"\n")
				_, _ = io.Copy(io.Discard, conn)
				conn.Close()
			}
			failed = errors.Join(failed, err)
		}
		served <- failed
	}()
	for range hosts {
		r := relay{log: slog.New(slog.DiscardHandler), dial: func(ctx context.Context) (*link, error) { return dialSocket(ctx, path) }}
		if err := r.run(context.Background(), strings.NewReader(""), io.Discard); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// A run may answer initialize before the write of the request has returned. The next run is
// still sent initialize, once.
func TestHandshakeAnsweredAtOnce(t *testing.T) {
	t.Parallel()
	message := func(text string) wire.Message {
		m, err := wire.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	greeting := message(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`)
	s := newSession()
	s.sending(greeting.Raw, greeting)
	if again := s.replay(append(greeting.Raw, '\n')); len(again) > 0 {
		t.Errorf("what is not sent yet is sent twice: %s", again)
	}
	if _, err := s.received(message(`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25"}}`), nil); err != nil {
		t.Fatal(err)
	}
	s.sent(greeting)
	s.lost(nil)
	if lines := string(s.replay(nil)); strings.Count(lines, `"initialize"`) != 1 {
		t.Errorf("the next run is sent %q", lines)
	}
}

// A run that served only one host has a shorter idle timeout.
func TestRunOfOneHostEndsSoon(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	synctest.Test(t, func(t *testing.T) {
		for _, test := range []struct {
			hosts int
			idle  time.Duration
			ends  time.Duration
		}{{1, 10 * time.Minute, time.Minute}, {2, 10 * time.Minute, 10 * time.Minute}, {1, time.Second, time.Second}} {
			s, err := Listen(path, SocketOptions{Idle: test.idle, Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			for range test.hosts {
				s.enter()
				s.leave()
			}
			time.Sleep(test.ends - 1)
			if s.unused() {
				t.Errorf("%+v: it has ended before", test)
			}
			time.Sleep(time.Nanosecond)
			if !s.unused() {
				t.Errorf("%+v: it has not ended", test)
			}
			s.Close()
		}
	})
}
