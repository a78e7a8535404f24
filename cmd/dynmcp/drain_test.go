package main_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"dynmcp/internal/mcptest"
)

// Drain: what is in flight when dynmcp is told to end is answered.

func TestSIGTERMAnswersWhatIsInFlight(t *testing.T) {
	t.Parallel()
	for range 5 {
		alpha, beta := fake(t, "alpha"), fake(t, "beta")
		host := serve(t, alpha, beta, deferred(t, "late", "Late", "-fault", "hang-init"))
		calls := []*mcptest.Pending{host.Go("tools/call", useParams("late/echo", `{}`))}
		for n := range 100 {
			server := []string{"alpha", "beta"}[n%2]
			calls = append(calls, host.Go("tools/call", useParams(server+"/sleep", fmt.Sprintf(`{"ms":%d}`, 1+rand.IntN(3000)))))
		}
		alpha.WaitFor("call sleep", 50)
		beta.WaitFor("call sleep", 50)
		began := time.Now()
		host.Signal(syscall.SIGTERM)
		if code := host.Wait(); code != 0 {
			t.Errorf("got exit status %d, want 0", code)
		}
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("the end took %v", took)
		}
		late := 0
		for _, call := range calls {
			if !call.Done() {
				t.Errorf("request %s was not answered", call.ID)
				continue
			}
			if m := call.Wait(); strings.Contains(string(m.Raw), "shutting down") {
				late++
				outcome := "outcome unknown: "
				if call == calls[0] {
					outcome = "outcome not_sent: "
				}
				contains(t, m.Raw, `"isError":true`, outcome)
			}
		}
		if late == 0 || late == len(calls) {
			t.Errorf("%d of %d calls were cut off", late, len(calls))
		}
	}
}

// What is cut off says whose call it was and whether it may have run, in the form
// in which it would have been answered.
func TestEndSaysWhatBecameOfEachCall(t *testing.T) {
	t.Parallel()
	for name, end := range ends {
		if name == "EOF" {
			continue // a host that only says no more gets the answers of a server that starts
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
			const want = `{"code":5111,"message":"book: dynmcp is shutting down","data":{"source":"dynmcp","server":"book","outcome":"unknown","hint":"check whether it took effect before retrying"}}`
			if got := string(read.Wait().Error); got != want {
				t.Errorf("got %s\nwant %s", got, want)
			}
			if code := host.Wait(); code != 0 {
				t.Errorf("got exit status %d, want 0", code)
			}
			book.WaitFor("cancelled", 2)
		})
	}
}

// A host that closed its end waits for a server that starts; a signal then ends
// that.
func TestSIGTERMBehindEOF(t *testing.T) {
	t.Parallel()
	slow := deferred(t, "slow", "Slow", "-fault", "hang-init")
	host := serve(t, slow)
	call := host.Go("tools/call", useParams("slow/echo", nil))
	slow.WaitFor("initialize", 1)
	host.CloseStdin()
	time.Sleep(300 * time.Millisecond) // the end of its input has been seen
	host.Signal(syscall.SIGTERM)
	contains(t, call.Wait().Raw, "slow: dynmcp is shutting down", "outcome not_sent")
	if code := host.Wait(); code != 0 {
		t.Errorf("got exit status %d, want 0", code)
	}
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
	host.Signal(syscall.SIGTERM)
	time.Sleep(200 * time.Millisecond) // the first has been taken note of
	began := time.Now()
	host.Signal(syscall.SIGTERM)
	host.Wait()
	if took := time.Since(began); took > time.Second || call.Done() {
		t.Errorf("the end took %v, answered: %t", took, call.Done())
	}
	mustVanish(t, host.Marker())
}

func TestSIGTERMWhileNothingHappens(t *testing.T) {
	t.Parallel()
	host := serve(t, fake(t, "alpha"), deferred(t, "never", "Never"))
	began := time.Now()
	host.Signal(syscall.SIGTERM)
	host.Wait()
	if took := time.Since(began); took > 2*time.Second { // half a second on a machine that does nothing else
		t.Errorf("the end took %v", took)
	}
}
