//go:build unix

package main_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// kill kills the shared run.
func (s *sharing) kill() {
	s.t.Helper()
	if err := syscall.Kill(s.pid(), syscall.SIGKILL); err != nil {
		s.t.Fatal(err)
	}
}

// killAmidCalls kills the run in the middle of 25 calls, 20 of which end by themselves, and
// checks what they were answered.
func (s *sharing) killAmidCalls(host *mcptest.Host, e entry, params func(tool, input string, more ...string) json.RawMessage) {
	s.t.Helper()
	var calls []*mcptest.Pending
	for i := range 5 {
		calls = append(calls, host.Go("tools/call", params("alpha/sleep", fmt.Sprintf(`{"ms":600000,"nonce":"asleep-%d"}`, i))))
	}
	e.WaitFor("call sleep", 5)
	pid := s.pid()
	for i := range 20 {
		if i == 10 {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				s.t.Fatal(err)
			}
		}
		calls = append(calls, host.Go("tools/call", params("alpha/echo", fmt.Sprintf(`{"nonce":"echo-%d"}`, i))))
	}
	for i, call := range calls {
		switch m := call.Wait(); {
		case m.Error != nil:
			contains(s.t, m.Raw, "the dynmcp that ran it is gone", `"outcome":"unknown"`)
		case i < 5:
			s.t.Errorf("got %s", m.Raw)
		default:
			contains(s.t, m.Text(), fmt.Sprintf("echo-%d", i-5))
		}
	}
	mcptest.WaitGone(s.t, pid)
}

// The run is killed while it works: each call is answered once, no call runs twice, and the
// next run gets the host's settings.
func TestRunThatIsKilledUnderItsHosts(t *testing.T) {
	t.Parallel()
	for era, params := range map[string]func(tool, input string, more ...string) json.RawMessage{
		"handshake": func(tool, input string, more ...string) json.RawMessage { return useParams(tool, input, more...) },
		"stateless": modernUse,
	} {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			e := fake(t, "alpha", "-fault", "double-fork")
			shared := newSharing(t, e)
			host := shared.start(nil)
			var listen *mcptest.Pending
			if era == "handshake" {
				host.Initialize(handshake, nil)
				host.Call("logging/setLevel", `{"level":"debug"}`)
				host.Call("resources/subscribe", `{"uri":"fake://alpha/text"}`)
			} else {
				listen = host.Go("subscriptions/listen", modern(`"notifications":{"toolsListChanged":true,"resourceSubscriptions":["fake://alpha/text"]}`))
				host.WaitMethod("notifications/subscriptions/acknowledged", 1)
			}
			shared.killAmidCalls(host, e, params)
			host.WaitMethod("notifications/resources/updated", 1) // of what the host may have missed
			host.Call("tools/call", params("alpha/touch", `{"uri":"fake://alpha/text"}`))
			host.WaitMethod("notifications/resources/updated", 2)
			answers := map[string]int{}
			for _, m := range host.Messages() {
				if m.Method == "" {
					answers[string(m.ID)]++
				}
			}
			for id, n := range answers {
				if n != 1 {
					t.Errorf("request %s has %d answers", id, n)
				}
			}
			if listen != nil && (listen.Done() || host.Count("notifications/subscriptions/acknowledged") != 1) {
				t.Error("the host's subscription has ended or begun again")
			}
			for i := range 20 {
				if got := e.Count(fmt.Sprintf("call echo echo-%d", i)); got > 1 {
					t.Errorf("call %d ran %d times", i, got)
				}
			}
			if got := e.Count("call sleep"); got != 5 {
				t.Errorf("5 calls ran %d times", got)
			}
			if era == "handshake" && e.Count("logging/setLevel debug") != 2 {
				t.Errorf("the next run was not told the log level: %q", e.Events())
			}
		})
	}
}

// A run that ends answers a host's subscription. The host gets none of that, because the next
// run continues the subscription.
func TestSubscriptionOfARunThatEnds(t *testing.T) {
	t.Parallel()
	e := fake(t, "alpha")
	shared := newSharing(t, e)
	host := shared.start(nil)
	listen := host.Go("subscriptions/listen", modern(`"notifications":{"resourceSubscriptions":["fake://alpha/text"]}`))
	host.WaitMethod("notifications/subscriptions/acknowledged", 1)
	pid := shared.pid()
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	mcptest.WaitGone(t, pid)
	host.WaitMethod("notifications/resources/updated", 1) // of what the host may have missed
	host.Call("tools/call", modernUse("alpha/touch", `{"uri":"fake://alpha/text"}`))
	host.WaitMethod("notifications/resources/updated", 2)
	if listen.Done() {
		t.Errorf("the host's subscription has ended: %s", listen.Wait().Raw)
	}
}

// A question of a killed run is withdrawn. Its late answer must not count as an answer to the
// next run, which numbers its questions alike.
func TestQuestionOfARunThatIsKilled(t *testing.T) {
	t.Parallel()
	e := fake(t, "alpha")
	shared := newSharing(t, e)
	late := make(chan struct{})
	answer := sync.OnceFunc(func() { close(late) })
	on := mcptest.Handlers{"elicitation/create": func(params json.RawMessage) (any, error) {
		if strings.Contains(string(params), "first") {
			<-late
		}
		return fmt.Sprintf(`{"action":"accept","content":%s}`, params), nil
	}}
	host := mcptest.Start(t, mcptest.HostOptions{
		Args: []string{mcptest.Dynmcp(t), "connect", "-c", shared.config, "--idle", "20m"}, OnRequest: on, Lingers: true,
		Env: []string{"XDG_RUNTIME_DIR=" + shared.dir, "TMPDIR=" + shared.dir, "HOME=" + shared.home},
	})
	t.Cleanup(answer) // before the host ends, which waits for it
	host.Initialize(handshake, everything)
	first := host.Go("tools/call", useParams("alpha/ask", ask("elicitation/create", `{"message":"first"}`)))
	question := host.WaitMethod("elicitation/create", 1)
	shared.kill()
	contains(t, first.Wait().Raw, `"outcome":"unknown"`)
	if got := string(host.WaitMethod("notifications/cancelled", 1).Member("requestId")); got != string(question.ID) {
		t.Errorf("question %s was taken back, want %s", got, question.ID)
	}
	second := host.Go("tools/call", useParams("alpha/ask", ask("elicitation/create", `{"message":"second"}`)))
	host.WaitMethod("elicitation/create", 2)
	answer()
	contains(t, second.Wait().Text(), `"message":"second"`)
	contains(t, host.Call("tools/call", useParams("alpha/ask", ask("elicitation/create", `{"message":"third"}`))).Text(), "third")
}

// While no run can be started, the host is told why with each request. Later ones start a run.
func TestRunThatCannotBeStartedAgain(t *testing.T) {
	t.Parallel()
	e := fake(t, "alpha")
	shared := newSharing(t, e)
	host := shared.greet(nil)
	call := host.Go("tools/call", useParams("alpha/sleep", `{"ms":600000}`))
	e.WaitFor("call sleep", 1)
	pid := shared.pid()
	good := readFile(t, shared.config)
	writeFile(t, filepath.Dir(shared.config), filepath.Base(shared.config), `{"mcpServers":`)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	contains(t, call.Wait().Raw, "the dynmcp that ran it is gone", `"outcome":"unknown"`)
	contains(t, host.Go("tools/call", useParams("alpha/echo", `{}`)).Wait().Raw, filepath.Base(shared.config), `"outcome":"not_sent"`)
	writeFile(t, filepath.Dir(shared.config), filepath.Base(shared.config), good)
	checkEcho(t, host, "alpha/echo", `{"n":1}`)
}
