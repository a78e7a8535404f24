package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynmcp/dynmcp/internal/wire"
)

// The requests before the end of the input are answered.
func TestHostAnswersBeforeTheEnd(t *testing.T) {
	for range 50 {
		near, far := halfClosePipe()
		e := testHostOn(t, near, near, far, SessionOptions{HandleRequest: func(r *Request) {
			go func() {
				time.Sleep(rand.N(300 * time.Microsecond))
				r.Reply(json.RawMessage(`{}`), nil)
			}()
		}})
		e.begin("2025-11-25")
		for n := range 50 {
			e.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call"}`, n))
		}
		e.say(`{"jsonrpc":"2.0","id":"list","method":"tools/list"}`)
		far.CloseWrite()
		if err := e.end(); err != nil {
			t.Fatal(err)
		}
		if got := e.wait(52); len(got) != 52 {
			t.Fatalf("got %d messages, want 52", len(got))
		}
		far.Close()
	}
}

// A request that takes too long at the end is answered by its handler, which learns of the end
// through its OnCancel function, or from OnCancel itself.
func TestHandlersAnswerAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := halfClosePipe()
		var asleep *Request
		e := testHostOn(t, near, near, far, SessionOptions{HandleRequest: func(r *Request) {
			answer := func(json.RawMessage) { r.Reply(json.RawMessage(`{"cut":`+string(r.ID)+`}`), nil) }
			if string(r.ID) == "2" {
				asleep = r
				time.AfterFunc(drainTimeout+shutdownGrace/2, func() {
					if !r.OnCancel(answer) {
						answer(nil)
					}
				})
				return
			}
			r.OnCancel(func(reason json.RawMessage) {
				if r.OnCancel(answer) {
					t.Error("the request is live")
				}
				answer(reason)
			})
		}})
		e.begin("2025-11-25")
		e.say(`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, `{"jsonrpc":"2.0","id":2,"method":"tools/call"}`)
		synctest.Wait()
		if !asleep.OnCancel(nil) {
			t.Error("the request is not live")
		}
		far.CloseWrite()
		if err := e.end(); err != nil {
			t.Error(err)
		}
		for n, want := range []string{`{"jsonrpc":"2.0","id":1,"result":{"cut":1}}`, `{"jsonrpc":"2.0","id":2,"result":{"cut":2}}`} {
			if got := e.wait(3)[n+1]; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
	})
}

// A request that nobody answers at the end is withdrawn and answered with an error.
func TestUnansweredRequestsAreWithdrawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := halfClosePipe()
		told := 0
		e := testHostOn(t, near, near, far, SessionOptions{HandleRequest: func(r *Request) { r.OnCancel(func(json.RawMessage) { told++ }) }})
		e.begin("2025-11-25")
		e.say(`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`)
		far.CloseWrite()
		began := time.Now()
		if err := e.end(); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took != drainTimeout+shutdownGrace {
			t.Errorf("it took %v, want %v", took, drainTimeout+shutdownGrace)
		}
		if told == 0 {
			t.Error("the handler was not called")
		}
		got := e.wait(2)[1]
		if !strings.Contains(got, `"id":1,"error":{"code":5111,`) || !strings.Contains(got, `"outcome":"unknown"`) {
			t.Errorf("got %s", got)
		}
	})
}

// Until ctx ends, answers to a host that closed its input wait for an upstream that starts.
func TestHostToldToEndWhileBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := halfClosePipe()
		e := testHostOn(t, near, near, far, SessionOptions{HandleRequest: func(*Request) {}, Busy: func() bool { return true }})
		e.begin("2025-11-25")
		e.say(`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`)
		far.CloseWrite()
		time.Sleep(time.Hour)
		e.stop()
		began := time.Now()
		if err := e.end(); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > drainTimeout+shutdownGrace {
			t.Errorf("it took %v", took)
		}
	})
}

// While an upstream starts, a host that closed its input still gets its answers.
func TestHostWaitsWhileBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := halfClosePipe()
		began := time.Now()
		e := testHostOn(t, near, near, far, SessionOptions{
			HandleRequest: func(r *Request) {
				time.AfterFunc(20*time.Second, func() { r.Reply(json.RawMessage(`{"slow":1}`), nil) })
			},
			Busy: func() bool { return time.Since(began) < time.Minute },
		})
		e.begin("2025-11-25")
		e.say(`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`)
		far.CloseWrite()
		if err := e.end(); err != nil {
			t.Error(err)
		}
		if got := e.wait(2)[1]; got != `{"jsonrpc":"2.0","id":1,"result":{"slow":1}}` {
			t.Errorf("got %s", got)
		}
	})
}

// After ctx ends, requests in flight are answered and new ones are rejected.
func TestHostEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		working := make(chan *Request, 1)
		e := newTestHost(t, func(r *Request) { working <- r })
		e.begin("2025-11-25")
		e.say(`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`)
		r := <-working
		e.stop()
		synctest.Wait()
		e.say(`{"jsonrpc":"2.0","id":2,"method":"tools/call"}`)
		if got := e.wait(2)[1]; !strings.Contains(got, `"id":2,"error":{"code":5111,`) || !strings.Contains(got, "not_sent") {
			t.Errorf("got %s", got)
		}
		r.Reply(json.RawMessage(`{}`), nil)
		if err := e.end(); err != nil {
			t.Error(err)
		}
		if got := e.wait(3)[2]; got != `{"jsonrpc":"2.0","id":1,"result":{}}` {
			t.Errorf("got %s", got)
		}
	})
}

// While a host does not read, its input is not read, and only progress is dropped. After a minute
// it counts as gone, even if its stdout supports no deadlines.
func TestHostThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var taken int
		host := newPipedHost(t.Context(), t, SessionOptions{
			HandleRequest: func(r *Request) {
				taken++
				r.Reply(json.RawMessage(`"`+strings.Repeat("x", 1<<20)+`"`), nil)
			},
			Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		var stops sync.WaitGroup
		stops.Go(func() {
			_, _ = io.WriteString(host.stdin, initialize("2025-11-25")+"\n")
			for n := range 100 {
				if _, err := fmt.Fprintf(host.stdin, `{"jsonrpc":"2.0","id":%d,"method":"tools/call"}`+"\n", n); err != nil {
					return
				}
			}
		})
		if _, err := io.ReadFull(host.stdout, make([]byte, 10)); err != nil { // the host has begun to read
			t.Fatal(err)
		}
		began := time.Now()
		synctest.Wait()
		if taken < 16 || taken > 18 {
			t.Errorf("%d requests were accepted while 16 MiB waited", taken)
		}
		for range 1000 {
			host.Notify("notifications/progress", json.RawMessage(`{}`))
		}
		host.Notify("notifications/tools/list_changed", nil)
		err := <-host.served
		if !errors.Is(err, wire.ErrStalled) {
			t.Errorf("got %v, want %v", err, wire.ErrStalled)
		}
		if took := time.Since(began); took != stdioStall {
			t.Errorf("it took %v, want %v", took, stdioStall)
		}
		if got := log.String(); strings.Count(got, "dropped") != 2 || !strings.Contains(got, "count=1000") {
			t.Errorf("got %s", got)
		}
		host.stdin.Close()
		stops.Wait()
	})
}

// The end does not wait a minute for a host that does not read.
func TestHostThatDoesNotReadAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		host := newPipedHost(ctx, t, SessionOptions{})
		_, _ = io.WriteString(host.stdin, `{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n")
		synctest.Wait()
		began := time.Now()
		cancel()
		if err := <-host.served; !errors.Is(err, wire.ErrStalled) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(began); took > 2*drainTimeout {
			t.Errorf("it took %v", took)
		}
	})
}

// A subscription does not delay the end. Its result says that it ends.
func TestHostListenDoesNotBlockTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := halfClosePipe()
		e := testHostOn(t, near, near, far, SessionOptions{})
		const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
		e.say(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},` + meta + `}}`)
		e.wait(1)
		began := time.Now()
		far.CloseWrite()
		if err := e.end(); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("it took %v", took)
		}
		if got := e.wait(2)[1]; got != `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":1}}}` {
			t.Errorf("got %s", got)
		}
		far.Close()
	})
}
