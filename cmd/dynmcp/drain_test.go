package main_test

import (
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// Drain: what is in flight when dynmcp is told to end is answered.

// Calls that end in time are answered by their server, the others are cut off.
func TestSIGTERMAnswersWhatIsInFlight(t *testing.T) {
	t.Parallel()
	gate := mcptest.NewGate(t)
	alpha, beta := fake(t, "alpha"), fake(t, "beta")
	host := serve(t, alpha, beta, deferred(t, "late", "Late", "-fault", "hang-init"))
	late := host.Go("tools/call", useParams("late/echo", `{}`))
	var ending, endless []*mcptest.Pending
	for range 50 {
		ending = append(ending, host.Go("tools/call", useParams("alpha/sleep", map[string]string{"until": gate.Path})))
		endless = append(endless, host.Go("tools/call", useParams("beta/sleep", nil)))
	}
	alpha.WaitFor("call sleep", len(ending))
	beta.WaitFor("call sleep", len(endless))
	host.Signal(syscall.SIGTERM)
	for host.Call("ping", nil).Error == nil { // until nothing more is taken
	}
	gate.Open()
	leaves(t, host)
	answered := 0
	for _, call := range ending {
		if m := call.Wait(); m.Text() == "slept" {
			answered++
		} else { // there was not even time for this
			contains(t, m.Raw, "shutting down", `"isError":true`, "outcome unknown: ")
		}
	}
	if answered == 0 {
		t.Error("no call was given the time to end")
	}
	for _, call := range endless {
		contains(t, call.Wait().Raw, "shutting down", `"isError":true`, "outcome unknown: ")
	}
	contains(t, late.Wait().Raw, "shutting down", `"isError":true`, "outcome not_sent: ")
}

// A call that is cut off is answered in its own form, with its server and whether it may have
// run.
func TestEndSaysWhatBecameOfEachCall(t *testing.T) {
	t.Parallel()
	for name, end := range ends {
		if name == "EOF" {
			continue // after EOF alone the server may start and answer
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			book := fake(t, "book", "-fault", "hang-call", "-fault-on", "resources/read")
			slow := deferred(t, "slow", "Slow", "-fault", "hang-init")
			host := serve(t, book, slow)
			used := host.Go("tools/call", useParams("book/sleep", nil))
			read := host.Go("resources/read", `{"uri":"fake://book/text"}`)
			load := host.Go("tools/call", mcptest.ToolParams("load_mcp", loadArguments("slow")))
			early := host.Go("tools/call", useParams("slow/echo", nil))
			host.Call("ping", nil) // all four were read
			book.WaitFor("call sleep", 1)
			book.WaitFor("fault hang-call", 1)
			slow.WaitFor("initialize", 1)
			end(host)
			for what, want := range map[*mcptest.Pending]string{
				used:  `{"content":[{"type":"text","text":"book: dynmcp is shutting down (outcome unknown: the call may have run)\nhint: check whether it took effect before retrying"}],"isError":true}`,
				load:  `{"content":[{"type":"text","text":"slow: dynmcp is shutting down (outcome not_sent: the call did not run)\nhint: call again when dynmcp runs again"}],"isError":true}`,
				early: `{"content":[{"type":"text","text":"slow: dynmcp is shutting down (outcome not_sent: the call did not run)\nhint: call again when dynmcp runs again"}],"isError":true}`,
			} {
				if got := string(what.Wait().Result); got != want {
					t.Errorf("got %s\nwant %s", got, want)
				}
			}
			const want = `{"code":5111,"message":"book: dynmcp is shutting down (outcome unknown: the call may have run); check whether it took effect before retrying","data":{"source":"dynmcp","server":"book","outcome":"unknown","hint":"check whether it took effect before retrying"}}`
			if got := string(read.Wait().Error); got != want {
				t.Errorf("got %s\nwant %s", got, want)
			}
			leaves(t, host)
			book.WaitFor("cancelled", 2)
		})
	}
}

// After EOF dynmcp waits for a server that starts, until a signal ends that.
func TestSIGTERMBehindEOF(t *testing.T) {
	t.Parallel()
	slow := deferred(t, "slow", "Slow", "-fault", "hang-init")
	host := serve(t, slow)
	call := host.Go("tools/call", useParams("slow/echo", nil))
	slow.WaitFor("initialize", 1)
	if err := host.Write("cut off"); err != nil {
		t.Fatal(err)
	}
	host.CloseStdin()
	host.WaitStderr("a line that is no message") // so the end of its input has been seen
	host.Signal(syscall.SIGTERM)
	contains(t, call.Wait().Raw, "slow: dynmcp is shutting down", "outcome not_sent")
	leaves(t, host)
}

func TestTheSecondSignalEndsAtOnce(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is no guard here")
	}
	t.Parallel()
	deaf := fake(t, "deaf", "-fault", "double-fork,ignore-eof,ignore-term")
	host := serve(t, deaf)
	deaf.WaitFor("child", 5)
	call := host.Go("tools/call", useParams("deaf/sleep", `{"ms":0}`))
	deaf.WaitFor("call sleep", 1)
	for left := false; !left; { // two that come at once are one
		host.Signal(syscall.SIGTERM)
		select {
		case <-host.Exited():
			left = true
		case <-time.After(10 * time.Millisecond):
		}
	}
	// An orderly end would answer the call and have an exit status.
	if code := host.Wait(); code != -1 || call.Done() {
		t.Errorf("got exit status %d, want none; answered: %t", code, call.Done())
	}
	mcptest.WaitVanished(t, host.Marker())
}

func TestSIGTERMWhileNothingHappens(t *testing.T) {
	t.Parallel()
	alpha, never := fake(t, "alpha"), deferred(t, "never", "Never")
	host := serve(t, alpha, never)
	host.Signal(syscall.SIGTERM)
	leaves(t, host)
	if alpha.Count("exit") != 1 {
		t.Errorf("got %q", alpha.Events())
	}
	nothingStarted(t, never)
}
