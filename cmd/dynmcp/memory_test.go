//go:build unix

package main_test

import (
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// A server that asks for the roots in a call keeps its process, which remembers earlier calls,
// for the hosts with these roots. Other hosts get others.
func TestProcessThatAsksForRootsKeepsItsMemory(t *testing.T) {
	t.Parallel()
	for name, era := range map[string]string{"handshake": handshake, "stateless": stateless} {
		for _, load := range []string{"eager", "lazy"} {
			t.Run(name+", "+load, func(t *testing.T) {
				t.Parallel()
				files := deferred(t, "files", "Files.").with("load", load)
				socket := socketPath(t)
				serveOn(t, socket, mcptest.Config(t, document([]entry{files})))
				a := joinWithRoot(t, socket, era, "/ra")
				first := a.use("files/pid", `{}`).Text()
				a.use("files/add_tool", `{"name":"grown"}`)
				contains(t, a.use("files/ask", `{"method":"roots/list"}`).Raw, "/ra")
				m := a.use("files/pid", `{}`)
				if m.Text() != first || strings.Contains(m.Raw, "another process") {
					t.Errorf("a host's process was %s: %s", first, m.Raw)
				}
				contains(t, a.use("files/grown", `{"nonce":"kept"}`).Text(), "kept")
				same, other, without := joinWithRoot(t, socket, handshake, "/ra"), joinWithRoot(t, socket, handshake, "/rb"), joinWithout(t, socket)
				if got := same.use("files/pid", `{}`).Text(); got != first {
					t.Errorf("a host of the same roots has the process %s, not %s", got, first)
				}
				pids := map[string]bool{first: true, other.use("files/pid", `{}`).Text(): true, without.use("files/pid", `{}`).Text(): true}
				if len(pids) != 3 {
					t.Errorf("hosts of two sets of roots and of none have the processes %v", pids)
				}
				contains(t, other.use("files/ask", `{"method":"roots/list"}`).Raw, "/rb")
				contains(t, without.use("files/ask", `{"method":"roots/list"}`).Raw, "5113")
				contains(t, a.use("files/pid", `{}`).Text(), first)
			})
		}
	}
}

// joinWithout connects a host without roots.
func joinWithout(t *testing.T, socket string) *rooted {
	h := &rooted{t: t, era: handshake}
	h.Conn, h.leave = joinAs(t, socket, `{}`, nil)
	return h
}
