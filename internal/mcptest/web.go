package mcptest

import (
	"regexp"
	"strings"
	"testing"
)

// A Server is a process that serves HTTP.
type Server struct {
	*Process
	URL string
}

var serverURL = regexp.MustCompile(`https?://[^\s"]+`)

// Serve starts a server and waits until it prints its URL on standard error: the first URL on a line
// with the word "listening". The end of the test terminates it.
func Serve(t testing.TB, opts HostOptions) *Server {
	t.Helper()
	s := &Server{Process: Run(t, opts)}
	t.Cleanup(s.terminate)
	for line := range strings.Lines(s.WaitStderr("listening")) {
		if s.URL = serverURL.FindString(line); s.URL != "" && strings.Contains(line, "listening") {
			return s
		}
	}
	t.Fatalf("the server named no URL\n%s", s.report())
	return nil
}

// ServeFake starts fakemcp on a free port of the loopback interface.
func ServeFake(t testing.TB, args ...string) *Server {
	t.Helper()
	return Serve(t, HostOptions{Args: append([]string{Fake(t), "-http", "127.0.0.1:0"}, args...)})
}
