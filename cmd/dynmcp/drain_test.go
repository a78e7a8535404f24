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
				contains(t, string(m.Raw), `"outcome":"`)
			}
		}
		if late == 0 || late == len(calls) {
			t.Errorf("%d of %d calls were cut off", late, len(calls))
		}
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
