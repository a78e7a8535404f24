package localhttp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// named returns a path for a server. Paths of t.TempDir are too long for sockets of some systems.
func named(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "dynmcp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for _, variable := range []string{"XDG_RUNTIME_DIR", "TMPDIR", "LOCALAPPDATA"} {
		t.Setenv(variable, dir)
	}
	return filepath.Join(dir, "s")
}

var options = Options{Version: "1.2.3", Log: slog.New(slog.DiscardHandler)}

// echoLine answers a line of a host with itself.
func echoLine(_ context.Context, conn net.Conn) error {
	defer conn.Close()
	line, err := bufio.NewReader(conn).ReadString('\n')
	_, err2 := io.WriteString(conn, line)
	return errors.Join(err, err2)
}

// A run is reached by its name and by its process id, and both are gone at its end.
func TestRunIsReached(t *testing.T) {
	path := named(t)
	s, err := Listen(path, options)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := Listen(path, options); err == nil || !strings.Contains(err.Error(), "is served by a dynmcp that runs") {
		t.Errorf("a second server: %v", err)
	}
	s.Start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.URL.Path) }))
	own := filepath.Join(Dirs()[0], fmt.Sprintf("%d%s", os.Getpid(), Suffix))
	for _, path := range []string{path, own} {
		body, err := Open(t.Context(), path, http.MethodGet, "/run")
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(body); err != nil || string(text) != "/run" {
			t.Errorf("%s: %q %v", path, text, err)
		}
		body.Close()
	}
	if _, _, err := Connect(t.Context(), path); !errors.Is(err, ErrAbsent) {
		t.Errorf("a host before Serve: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	served := make(chan struct{})
	go func() {
		defer close(served)
		s.Serve(ctx, echoLine)
	}()
	conn, version, err := Connect(t.Context(), path)
	for errors.Is(err, ErrAbsent) { // Serve has not begun
		conn, version, err = Connect(t.Context(), path)
	}
	if err != nil || version != options.Version {
		t.Fatalf("version %q, %v", version, err)
	}
	fmt.Fprintln(conn, "hello")
	if line, err := bufio.NewReader(conn).ReadString('\n'); line != "hello\n" {
		t.Errorf("got %q, %v", line, err)
	}
	conn.Close()
	cancel()
	<-served
	for _, path := range []string{path, own} {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is still there", path)
		}
	}
	if _, _, err := Connect(t.Context(), path); !errors.Is(err, ErrAbsent) || !IsLeftOver(err) {
		t.Errorf("a host after the end: %v", err)
	}
	if again, err := Listen(path, options); err != nil {
		t.Error(err)
	} else {
		again.Close()
	}
}

// Without the secret a program is refused, and without it no program is taken for the run.
func TestProofOfTheSecret(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		theirs, ours secret
		want         string
	}{
		{"", "", "mine"},
		{"s", "s", "mine"},
		{"s", "t", "another program"},
		{"s", "", "needs the secret"},
	} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s := &Server{secret: test.theirs}
		reached := false
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.admit(w, r, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { reached = true; fmt.Fprint(w, "mine") }))
		})}
		go func() { _ = server.Serve(listener) }()
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if resp, err := exchange(t.Context(), conn, test.ours, httptest.NewRequest(http.MethodGet, "/", nil)); err != nil {
			got = err.Error()
		} else {
			text, _ := io.ReadAll(resp.Body)
			got = string(text)
		}
		conn.Close()
		server.Close()
		if !strings.Contains(got, test.want) || reached != (test.want == "mine") {
			t.Errorf("%+v: %q, served %t", test, got, reached)
		}
	}
}

// A run that served only one host has a shorter idle timeout.
func TestRunOfOneHostEndsSoon(t *testing.T) {
	for _, test := range []struct {
		hosts int
		idle  time.Duration
		ends  time.Duration
	}{{1, 10 * time.Minute, time.Minute}, {2, 10 * time.Minute, 10 * time.Minute}, {1, time.Second, time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			listener, _ := net.Pipe()
			s := &Server{Options: Options{Idle: test.idle}, listener: pipeListener{listener}, since: time.Now(), serve: echoLine}
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
		})
	}
}

// A pipeListener accepts nothing.
type pipeListener struct{ net.Conn }

func (pipeListener) Accept() (net.Conn, error) { return nil, net.ErrClosed }
func (pipeListener) Addr() net.Addr            { return nil }
