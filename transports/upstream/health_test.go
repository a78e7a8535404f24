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

// timeOut makes calls at the same time that nobody answers.
func timeOut(t *testing.T, c *Conn, calls int) {
	t.Helper()
	failed := make(chan error, calls)
	for range calls {
		go func() {
			_, err := c.Call(t.Context(), "x", nil)
			failed <- err
		}()
	}
	for range calls {
		wantFailure(t, <-failed, transports.CodeTimeout, transports.Unknown)
	}
}

// An upstream that is silent to a call and to three pings is lost, however many
// calls have timed out.
func TestSilentUpstreamIsLost(t *testing.T) {
	t.Parallel()
	for _, era := range []struct {
		stateless bool
		ping      string
	}{{false, "ping"}, {true, methodDiscover}} {
		synctest.Test(t, func(t *testing.T) {
			c, p := inMemory(t, schema.Server{Timeout: time.Minute}, Options{}, silent)
			c.stateless.Store(era.stateless)
			began := time.Now()
			timeOut(t, c, 5)
			time.Sleep(20 * time.Second)
			late := make(chan error, 1)
			go func() {
				_, err := c.Call(t.Context(), "late", nil)
				late <- err
			}()
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

// A ping that is refused at once has its time all the same: what is being
// restarted may be there a moment later.
func TestRefusedPingHasItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := inMemory(t, schema.Server{Timeout: time.Minute}, Options{}, silent)
		c.link = &unreachable{c.link}
		began := time.Now()
		timeOut(t, c, 1)
		<-c.Done()
		if took := time.Since(began); took != time.Minute+pingTries*pingWait {
			t.Errorf("it took %v", took)
		}
	})
}

// unreachable is a link that refuses pings.
type unreachable struct{ link }

func (l *unreachable) sendRequest(call *Call, id int64) error {
	if call.Method == "ping" {
		return &transports.Failure{Code: transports.CodeUnreachable, Outcome: transports.NotSent, Cause: errors.New("refused")}
	}
	return l.link.sendRequest(call, id)
}

// Whatever comes shows that an upstream lives.
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
				c, _ := inMemory(t, schema.Server{Timeout: time.Minute}, Options{}, func(p *puppet, m wire.Message) {
					if m.Method == "ping" {
						if pings.Add(1)%pingTries == 0 { // after two that went unheard
							p.say(strings.TrimSuffix(strings.Replace(sign, "ID", string(m.ID), 1), "\n"))
						}
					}
				})
				for range 3 {
					timeOut(t, c, 1)
					time.Sleep(2 * pingTries * pingWait)
				}
				if got := pings.Load(); c.Err() != nil || got != 3*pingTries {
					t.Errorf("got %v after %d pings, want it to live and %d", c.Err(), got, 3*pingTries)
				}
			})
		})
	}
}

// Only a timeout of the config is a reason to ask: not that a call takes long,
// nor that a host gives it up.
func TestNoPingWithoutTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, p := inMemory(t, schema.Server{}, Options{}, silent)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if _, err := c.Call(ctx, "x", nil); err != context.DeadlineExceeded {
			t.Errorf("got %v", err)
		}
		time.Sleep(time.Hour)
		if got := p.lines(); len(got) != 2 || c.Err() != nil {
			t.Errorf("got %q, %v; want the call, its cancel and no end", got, c.Err())
		}
	})
}

// Before the handshake is over there is nothing to ask.
func TestNoPingDuringHandshake(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, p := inMemory(t, schema.Server{Timeout: time.Second}, Options{}, silent)
		if err := c.Handshake(t.Context(), nil); err == nil {
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
		c, p := inMemory(t, schema.Server{Timeout: time.Minute}, Options{}, silent)
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

// unkillable is a link that only close may end.
type unkillable struct {
	link
	t *testing.T
}

func (l *unkillable) kill() { l.t.Error("killed, not closed") }

// hanging is an HTTP upstream whose calls hang, all of them after meanwhile.
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

// checked waits until it is known that an upstream lives.
func checked(t *testing.T, c *Conn) {
	t.Helper()
	for end := time.Now().Add(patience); c.health.checking.Load(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the check does not end")
		}
	}
	if c.Err() != nil {
		t.Errorf("it was lost: %v", c.Err())
	}
}

// Over HTTP any response to a ping will do: the scripted upstream has no answer
// to it.
func TestHTTPPingIsHeard(t *testing.T) {
	t.Parallel()
	s := &scripted{}
	c := dial(t, hanging(t, s, func() {}), Options{})
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
	}), Options{timing: timing{ping: 50 * time.Millisecond}})
	setTimeout(c, 2*time.Second) // the call must be there before: a ping that is sent earlier is answered
	_, err := tool(t, c, "pid", "{}")
	wantFailure(t, err, transports.CodeTimeout, transports.Unknown)
	waitFor(t, "the end", c.Done())
	if c.Err() != errSilent || slices.ContainsFunc(s.requests(), func(r string) bool { return strings.HasPrefix(r, "POST ping") }) {
		t.Errorf("got %v after %q", c.Err(), s.requests())
	}
}

// What comes on another stream will do too, a comment that keeps it alive as well.
func TestHTTPStreamIsHeard(t *testing.T) {
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
	c := dial(t, hanging(t, s, func() { stuck.Store(true) }), Options{timing: timing{ping: time.Second, bestEffort: 100 * time.Millisecond}})
	setTimeout(c, 100*time.Millisecond)
	_, err := tool(t, c, "pid", "{}")
	wantFailure(t, err, transports.CodeTimeout, transports.Unknown)
	s.wait(t, "POST ping")
	checked(t, c)
}

// A child that only lets a call hang answers the ping, and stays.
func TestStdioPingIsHeard(t *testing.T) {
	t.Parallel()
	c := dial(t, fake(t, "-fault", "hang-call", "-fault-tool", "pid"), Options{})
	setTimeout(c, 100*time.Millisecond)
	_, err := tool(t, c, "pid", "{}")
	wantFailure(t, err, transports.CodeTimeout, transports.Unknown)
	mustEcho(t, c)
	checked(t, c)
}
