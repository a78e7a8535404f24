// Package natstest runs nats-server with JetStream for tests. The program is built from module bench,
// whose go.mod has its version.
package natstest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// A Server is a process of nats-server. It keeps its port and its store when it is restarted.
type Server struct {
	URL    string // for clients
	Routes string // for the other servers of a cluster; "" without a cluster

	t    testing.TB
	dir  string
	args []string
	cmd  *exec.Cmd // nil while it does not run

	ended chan struct{} // closed when cmd has
}

// Start runs a server until the test ends. config is additional configuration in the format of
// nats-server, and may be empty.
func Start(t testing.TB, config string) *Server {
	t.Helper()
	s := &Server{t: t, dir: t.TempDir()}
	file := filepath.Join(s.dir, "nats.conf")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	s.args = []string{"-c", file, "-a", "127.0.0.1", "-js", "-sd", filepath.Join(s.dir, "store"), "--ports_file_dir", s.dir}
	t.Cleanup(s.Stop)
	s.run("-p", "-1")
	return s
}

// Restart starts a stopped server again.
func (s *Server) Restart() {
	s.t.Helper()
	s.run("-p", s.URL[strings.LastIndexByte(s.URL, ':')+1:])
}

func (s *Server) run(args ...string) {
	s.t.Helper()
	var said strings.Builder
	s.cmd = exec.Command(mcptest.Binary(s.t, mcptest.NATS), append(args, s.args...)...)
	s.cmd.Stderr = &said
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.ended = make(chan struct{})
	go func(cmd *exec.Cmd, ended chan struct{}) {
		_ = cmd.Wait() // it was killed, or has written the reason
		close(ended)
	}(s.cmd, s.ended)
	ports := filepath.Join(s.dir, fmt.Sprintf("%s_%d.ports", filepath.Base(s.cmd.Path), s.cmd.Process.Pid))
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		select {
		case <-s.ended:
			s.t.Fatalf("nats-server ended:\n%s", &said)
		default:
		}
		text, err := os.ReadFile(ports)
		var listens struct{ Nats, Cluster []string }
		if err == nil && json.Unmarshal(text, &listens) == nil && len(listens.Nats) > 0 {
			s.URL = listens.Nats[0]
			if len(listens.Cluster) > 0 {
				s.Routes = listens.Cluster[0]
			}
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatal("nats-server does not say where it listens")
		}
	}
}

// Stop kills the server, like a machine that fails.
func (s *Server) Stop() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill() // it may have ended
		<-s.ended
		s.cmd = nil
	}
}
