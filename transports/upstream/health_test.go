package upstream

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
)

// sent counts the messages with this method that a puppet has received.
func (p *puppet) sent(method string) int {
	n := 0
	for _, line := range p.lines() {
		if strings.Contains(line, `"method":"`+method+`"`) {
			n++
		}
	}
	return n
}

// timeOut makes concurrent calls, which must time out.
func timeOut(t *testing.T, c *Conn, calls int) {
	t.Helper()
	var failed []<-chan error
	for range calls {
		failed = append(failed, start(c, &Call{Method: "x"}))
	}
	for _, f := range failed {
		wantFailure(t, <-f, transports.CodeTimeout, transports.Unknown)
	}
}

// An upstream that answers neither a call nor three pings is lost, however many calls have timed
// out.
func TestSilentUpstreamIsLost(t *testing.T) {
	t.Parallel()
	for _, era := range []struct {
		stateless bool
		ping      string
	}{{false, "ping"}, {true, methodDiscover}} {
		synctest.Test(t, func(t *testing.T) {
			c, p := inMemory(t, schema.Server{Timeout: time.Minute}, ConnOptions{}, silent)
			c.stateless.Store(era.stateless)
			began := time.Now()
			timeOut(t, c, 5)
			time.Sleep(20 * time.Second)
			late := start(c, &Call{Method: "late"})
			<-c.Done()
			if took := time.Since(began); took != time.Minute+pingTries*pingWait {
				t.Errorf("it took %v", took)
			}
			if got := p.sent(era.ping); got != pingTries || c.Err() != errSilent {
				t.Errorf("got %d pings and %v", got, c.Err())
			}
			wantFailure(t, <-late, transports.CodeUnreachable, transports.Unknown)
		})
	}
}

// The time of a ping passes even if the ping fails at once, because a server that is being
// restarted may be back a moment later.
func TestFailedPingTakesItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := inMemory(t, schema.Server{Timeout: time.Minute}, ConnOptions{}, silent)
		c.link = &unreachable{c.link}
		began := time.Now()
		timeOut(t, c, 1)
		<-c.Done()
		if took := time.Since(began); took != time.Minute+pingTries*pingWait {
			t.Errorf("it took %v", took)
		}
	})
}

// unreachable is a link on which pings fail.
type unreachable struct{ link }

func (l *unreachable) sendRequest(call *Call, id int64) error {
	if call.Method == "ping" {
		return &transports.Failure{Code: transports.CodeUnreachable, Outcome: transports.NotSent, Cause: errors.New("refused")}
	}
	return l.link.sendRequest(call, id)
}

// Anything that an upstream sends shows that it is alive.
func TestSignsOfLife(t *testing.T) {
	t.Parallel()
	for name, sign := range map[string]string{
		"answer":       `{"jsonrpc":"2.0","id":ID,"result":{}}` + "\n",
		"error":        `{"jsonrpc":"2.0","id":ID,"error":{"code":-32601,"message":"no"}}` + "\n",
		"other answer": `{"jsonrpc":"2.0","id":1,"result":{}}` + "\n",
		"notification": `{"jsonrpc":"2.0","method":"notifications/message","params":{}}` + "\n",
		"junk":         "still busy\n",
		"part":         `{"jsonrpc":`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var pings atomic.Int32
				c, _ := inMemory(t, schema.Server{Timeout: time.Minute}, ConnOptions{}, func(p *puppet, m wire.Message) {
					if m.Method == "ping" {
						if pings.Add(1)%pingTries == 0 {
							p.say(strings.TrimSuffix(strings.Replace(sign, "ID", string(m.ID), 1), "\n"))
						}
					}
				})
				for range 3 {
					timeOut(t, c, 1)
					time.Sleep(2 * pingTries * pingWait)
				}
				if got := pings.Load(); c.Err() != nil || got != 3*pingTries {
					t.Errorf("got %v after %d pings, want nil after %d", c.Err(), got, 3*pingTries)
				}
			})
		})
	}
}

// A call that takes long or that a host cancels does not lead to a ping. Only a timeout of the
// config does.
func TestNoPingWithoutTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, p := inMemory(t, schema.Server{}, ConnOptions{}, silent)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if _, err := c.Call(ctx, "x", nil); err != context.DeadlineExceeded {
			t.Errorf("got %v", err)
		}
		time.Sleep(time.Hour)
		if got := p.lines(); len(got) != 2 || c.Err() != nil {
			t.Errorf("got %q, %v; want the call, its cancellation and nil", got, c.Err())
		}
	})
}

// A timeout during the handshake does not lead to a ping.
func TestNoPingDuringHandshake(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, p := inMemory(t, schema.Server{Timeout: time.Second}, ConnOptions{}, silent)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := c.Handshake(ctx, nil); err == nil {
			t.Error("no error")
		}
		time.Sleep(time.Hour)
		if got := p.sent("ping"); got != 0 {
			t.Errorf("got %d pings", got)
		}
	})
}

func TestCloseEndsPings(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, p := inMemory(t, schema.Server{Timeout: time.Minute}, ConnOptions{}, silent)
		c.link = &unkillable{c.link, t}
		timeOut(t, c, 1)
		time.Sleep(15 * time.Second)
		began := time.Now()
		c.Close()
		if took := time.Since(began); took != 0 || p.sent("ping") != 2 {
			t.Errorf("Close took %v after %d pings", took, p.sent("ping"))
		}
	})
}

// unkillable is a link that must not be killed.
type unkillable struct {
	link
	t *testing.T
}

func (l *unkillable) kill() { l.t.Error("the link was killed, not closed") }

// hanging returns an HTTP upstream whose calls run meanwhile and then get no answer.
func hanging(t *testing.T, s *scripted, meanwhile func()) schema.Server {
	t.Helper()
	s.call = func(_ http.ResponseWriter, r *http.Request, _ string) {
		meanwhile()
		<-r.Context().Done()
	}
	server := script(t, s)
	s.Config.SetKeepAlivesEnabled(false)
	return server
}

// checked waits for the end of a health check and fails the test if the upstream was lost.
func checked(t *testing.T, c *Conn) {
	t.Helper()
	for end := time.Now().Add(patience); c.health.checking.Load(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the health check does not end")
		}
	}
	if c.Err() != nil {
		t.Errorf("the upstream was lost: %v", c.Err())
	}
}

// Over HTTP any response to a ping shows that the upstream is alive, such as a 202 without an answer.
func TestHTTPPingIsAnswered(t *testing.T) {
	t.Parallel()
	s := &scripted{}
	c := dial(t, hanging(t, s, func() {}), ConnOptions{})
	setTimeout(c, 100*time.Millisecond)
	for range 2 {
		_, err := tool(t, c, "pid", "{}")
		wantFailure(t, err, transports.CodeTimeout, transports.Unknown)
	}
	s.wait(t, "POST ping")
	checked(t, c)
}

func TestHTTPPingIsRefused(t *testing.T) {
	t.Parallel()
	s := &scripted{}
	var gone atomic.Bool
	c := dial(t, hanging(t, s, func() {
		if !gone.Swap(true) {
			s.Listener.Close()
		}
	}), ConnOptions{timing: timing{ping: 50 * time.Millisecond}})
	setTimeout(c, 2*time.Second) // enough for the call to arrive: a ping that is sent before it would be answered
	_, err := tool(t, c, "pid", "{}")
	wantFailure(t, err, transports.CodeTimeout, transports.Unknown)
	waitFor(t, "the end", c.Done())
	if c.Err() != errSilent || slices.ContainsFunc(s.requests(), func(r string) bool { return strings.HasPrefix(r, "POST ping") }) {
		t.Errorf("got %v after %q", c.Err(), s.requests())
	}
}

// A comment on the GET stream also shows that the upstream is alive.
func TestHTTPCommentIsASignOfLife(t *testing.T) {
	t.Parallel()
	s := &scripted{}
	var stuck atomic.Bool
	s.rest = func(w http.ResponseWriter, r *http.Request) {
		if stuck.Load() {
			<-r.Context().Done()
		}
		w.WriteHeader(http.StatusAccepted)
	}
	s.get = func(w http.ResponseWriter, r *http.Request) {
		events(w, ": hello\n\n")
		for r.Context().Err() == nil {
			events(w, ":\n\n")
			time.Sleep(10 * time.Millisecond)
		}
	}
	c := dial(t, hanging(t, s, func() { stuck.Store(true) }), ConnOptions{timing: timing{ping: time.Second, bestEffort: 100 * time.Millisecond}})
	setTimeout(c, 100*time.Millisecond)
	_, err := tool(t, c, "pid", "{}")
	wantFailure(t, err, transports.CodeTimeout, transports.Unknown)
	s.wait(t, "POST ping")
	checked(t, c)
}

// A child that does not answer a call but answers the ping is not lost.
func TestStdioPingIsAnswered(t *testing.T) {
	t.Parallel()
	c := dial(t, fake(t, "-fault", "hang-call", "-fault-tool", "pid"), ConnOptions{})
	setTimeout(c, 100*time.Millisecond)
	_, err := tool(t, c, "pid", "{}")
	wantFailure(t, err, transports.CodeTimeout, transports.Unknown)
	mustEcho(t, c)
	checked(t, c)
}
