//go:build unix

package main_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
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

// No call of a host reaches another process than its last one, unless that has ended or an
// answer says so, however the calls, questions and changes of several hosts interleave.
func TestCallsOfAHostReachOneProcess(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			files := deferred(t, "files", "Files.")
			socket := socketPath(t)
			serveOn(t, socket, mcptest.Config(t, document([]entry{files})))
			hosts := []*rooted{
				joinWithRoot(t, socket, handshake, "/ra"), joinWithRoot(t, socket, stateless, "/ra"),
				joinWithRoot(t, socket, handshake, "/rb"), joinWithRoot(t, socket, stateless, "/rc"), joinWithout(t, socket),
			}
			var all sync.WaitGroup
			for i, h := range hosts {
				all.Go(func() { h.wander(rand.New(rand.NewPCG(seed, uint64(i)))) })
			}
			all.Wait()
		})
	}
}

// wander makes calls, asks for the roots and changes them, and checks the process of each call.
func (h *rooted) wander(random *rand.Rand) {
	last, told := "", false
	note := func(m mcptest.Message) { told = told || strings.Contains(m.Raw, "ran in another process of files") }
	for range 25 {
		pending := (*mcptest.Pending)(nil)
		switch n := random.IntN(10); {
		case n < 3 && h.era == handshake: // the next call meets the open question
			pending = h.Go("tools/call", useParams("files/ask", `{"method":"roots/list"}`))
			fallthrough
		default:
			m := h.use("files/pid", `{}`)
			note(m)
			if pending != nil {
				note(pending.Wait())
			}
			if h.root.Load() == nil && strings.Contains(m.Text(), "gets no call without them") {
				continue // it reached no process: the one that it would share waits for the roots of another host
			}
			if pid := m.Text(); last != "" && pid != last && !told {
				before, err := strconv.Atoi(last)
				if err != nil {
					h.t.Errorf("a call was answered %q", last)
					return
				}
				mcptest.WaitGone(h.t, before)
			}
			last, told = m.Text(), false
		case n < 4:
			note(h.use("files/ask", `{"method":"roots/list"}`))
		case n == 4 && h.root.Load() != nil && h.era == handshake:
			other := fmt.Sprint("/r", random.IntN(3))
			h.root.Store(&other)
			h.Notify("notifications/roots/list_changed", nil)
		}
	}
}
