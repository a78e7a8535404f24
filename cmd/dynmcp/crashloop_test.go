package main_test

import (
	"fmt"
	"strings"
	"testing"
)

// A server that crashes in every call is started again after the first crash, and then with
// pauses. A call waits out a short pause, and is refused at once in a long one.
func TestServerThatCrashesInEveryCallIsPaused(t *testing.T) {
	t.Parallel()
	e := deferred(t, "bad", "Bad", "-fault", "crash-call", "-fault-tool", "pid")
	host := serve(t, e, fake(t, "good"))
	const paused = "the next attempt is due in "
	text := ""
	for crashes := 0; !strings.Contains(text, paused); {
		if text = use(host, "bad/pid", nil).Text(); strings.Contains(text, "outcome unknown") {
			crashes++
		}
		if crashes > 10 { // a long pause may be over before the next call, on a slow machine
			t.Fatalf("it was started after each of %d crashes", crashes)
		}
	}
	if got := e.Count("start"); got < 6 { // pauses of 0.2, 0.4, 0.8 and at least 1.28 s
		t.Errorf("the call after %d starts was answered, want short pauses to be waited out", got)
	}
	contains(t, text, "bad: it failed ", " times in a row", "exited with status 3", "outcome not_sent", "fakemcp: panic: as asked")
	if got, want := e.Count("call pid"), e.Count("start"); got != want {
		t.Errorf("%d calls ran in %d processes, want one in each", got, want)
	}
	contains(t, use(host, "good/echo", `{}`).Text(), "{}")
	contains(t, load(host, "bad").Text(), "bad/echo")
	checkEcho(t, host, "bad/echo", `{"again":1}`)
}

// A call whose server does the work and dies before it answers is not made again, and is not
// reported as not sent.
func TestCallsOfAServerThatDiesRunOnce(t *testing.T) {
	t.Parallel()
	e := deferred(t, "dies", "Dies", "-fault", "crash-call")
	host := serve(t, e)
	const calls = 20
	for n := range calls {
		load(host, "dies")
		contains(t, use(host, "dies/echo", fmt.Sprintf(`{"nonce":"n%d"}`, n)).Text(), "outcome unknown")
		if got := e.Count(fmt.Sprintf("call echo n%d", n)); got != 1 {
			t.Errorf("call %d ran %d times", n, got)
		}
	}
	if got := e.Count("start"); got != calls {
		t.Errorf("got %d starts, want one for each call", got)
	}
}

// A server that forgets its sessions does not count as crashing.
func TestForgottenSessionsAreNotPaused(t *testing.T) {
	t.Parallel()
	e := remote(t, "away", "-fault", "h404", "-fault-times", "8")
	host := serve(t, e)
	text := ""
	for range 9 {
		if text = use(host, "away/echo", `{}`).Text(); text == "{}" {
			break
		}
		contains(t, text, "forgot the session")
		lacks(t, text, "next attempt")
	}
	if got := e.Count("fault h404"); text != "{}" || got != 8 {
		t.Errorf("got %s after %d forgotten sessions, want it to work after 8", text, got)
	}
}
