package upstream

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
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
)

// A puppet is an upstream in memory that sends what a test tells it to.
type puppet struct {
	say    func(line string)
	hangUp func()

	mu  sync.Mutex
	got []string // all received messages
}

// lines returns what the upstream has received.
func (p *puppet) lines() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.got...)
}

// inMemory connects to a puppet that handles received messages with on. There is no handshake.
func inMemory(t *testing.T, server schema.Server, opts ConnOptions, on func(p *puppet, m wire.Message)) (*Conn, *puppet) {
	t.Helper()
	return inMemoryBy(t, OpenStream, server, opts, on)
}

// inMemoryBy is inMemory for a connection that open returns.
func inMemoryBy(t *testing.T, open func(schema.Server, io.ReadWriteCloser, ConnOptions) *Conn, server schema.Server, opts ConnOptions, on func(p *puppet, m wire.Message)) (*Conn, *puppet) {
	t.Helper()
	near, far := mcptest.Pipe()
	p := &puppet{say: func(line string) { _, _ = far.Write([]byte(line + "\n")) }, hangUp: func() { far.Close() }}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for r := wire.NewReader(far, 1<<20); ; {
			m, err := r.Next()
			if err != nil {
				return
			}
			p.mu.Lock()
			p.got = append(p.got, string(m.Raw))
			p.mu.Unlock()
			on(p, m.Clone())
		}
	}()
	server.Name = "up"
	c := open(server, near, opts)
	t.Cleanup(func() {
		c.Close()
		far.Close()
		<-done
	})
	return c, p
}

func silent(*puppet, wire.Message) {}

func answerAll(p *puppet, m wire.Message) {
	if m.IsRequest() {
		p.say(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{}}`)
	}
}

// Every call ends exactly once, even if its answer, its timeout, its cancellation and the end of
// the connection race.
func TestCallEndsOnce(t *testing.T) {
	t.Parallel()
	const calls = 2000
	c, _ := inMemory(t, schema.Server{Timeout: 2 * time.Millisecond}, ConnOptions{}, func(p *puppet, m wire.Message) {
		if m.IsRequest() && rand.N(3) > 0 {
			time.Sleep(rand.N(100 * time.Microsecond))
			answerAll(p, m)
		}
	})
	var ends [calls]atomic.Int32
	var callers sync.WaitGroup
	for worker := range 4 {
		callers.Go(func() {
			for n := worker; n < calls; n += 4 {
				call := &Call{Method: "x", Done: func(json.RawMessage, error) { ends[n].Add(1) }}
				if n%3 == 0 {
					callers.Go(func() {
						time.Sleep(rand.N(time.Millisecond))
						if c.Cancel(call, nil) {
							ends[n].Add(1)
						}
					})
				}
				c.Start(call)
			}
		})
	}
	time.Sleep(20 * time.Millisecond)
	callers.Wait()
	c.Close()
	for n := range ends {
		if got := ends[n].Load(); got != 1 {
			t.Errorf("call %d ended %d times", n, got)
		}
	}
}

// A cancellation that comes while the request is being sent must not reach the upstream before
// the request, which would then run for nobody.
func TestCallCancelDoesNotOvertake(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, p := inMemory(t, schema.Server{}, ConnOptions{}, silent)
		call := &Call{Method: "x", Done: func(json.RawMessage, error) { t.Error("a cancelled call ended") }}
		c.link = &beforeSending{c.link, func() {
			if !c.Cancel(call, json.RawMessage(`"why"`)) {
				t.Error("Cancel did not find the call")
			}
		}}
		c.Start(call)
		synctest.Wait()
		got := p.lines()
		if len(got) != 2 || !strings.Contains(got[0], `"method":"x"`) || !strings.Contains(got[1], `"notifications/cancelled","params":{"requestId":1,"reason":"why"}`) {
			t.Errorf("got %q", got)
		}
	})
}

// beforeSending is a link that calls do before each request.
type beforeSending struct {
	link
	do func()
}

func (l *beforeSending) sendRequest(call *Call, id int64) error {
	l.do()
	return l.link.sendRequest(call, id)
}

func TestCallCancel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, p := inMemory(t, schema.Server{}, ConnOptions{}, silent)
		call := &Call{Method: "x", Done: func(json.RawMessage, error) { t.Error("a cancelled call ended") }}
		if c.Cancel(call, nil) {
			t.Error("a call that was not started was cancelled")
		}
		c.Start(call)
		if !c.Cancel(call, nil) || c.Cancel(call, nil) {
			t.Error("the call was not cancelled exactly once")
		}
		p.say(`{"jsonrpc":"2.0","id":1,"result":{}}`)
		synctest.Wait()
		if got := p.lines(); len(got) != 2 {
			t.Errorf("got %q", got)
		}
	})
}

// The upstream is not told that initialize was cancelled: MCP forbids that.
func TestCallCancelOfInitialize(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, p := inMemory(t, schema.Server{}, ConnOptions{}, silent)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Call(ctx, "initialize", nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		synctest.Wait()
		if got := p.lines(); len(got) != 1 {
			t.Errorf("got %q", got)
		}
	})
}

func TestCallTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, p := inMemory(t, schema.Server{Timeout: time.Minute}, ConnOptions{}, silent)
		began := time.Now()
		_, err := c.Call(t.Context(), "x", nil)
		wantFailure(t, err, transports.CodeTimeout, transports.Unknown)
		if took := time.Since(began); took != time.Minute {
			t.Errorf("it took %v", took)
		}
		synctest.Wait()
		if got := p.lines(); len(got) != 3 || !strings.Contains(got[1], `"reason":"timeout"`) || !strings.Contains(got[2], `"method":"ping"`) {
			t.Errorf("got %q", got)
		}
	})
}

func TestCallProgressRestartsTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		peer := &recorder{}
		c, p := inMemory(t, schema.Server{Timeout: time.Minute}, ConnOptions{}, silent)
		began := time.Now()
		failed := start(c, &Call{Method: "x", Params: []byte(`{"_meta":{"progressToken":"t"}}`), Peer: peer})
		for range 3 {
			time.Sleep(50 * time.Second)
			p.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1.0}}`)
			p.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":99}}`) // of no call
		}
		wantFailure(t, <-failed, transports.CodeTimeout, transports.Unknown)
		if took := time.Since(began); took != 3*50*time.Second+time.Minute {
			t.Errorf("it took %v", took)
		}
		p.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1}}`)
		synctest.Wait()
		if got := peer.all(); len(got) != 3 || got[0] != `notifications/progress {"progressToken":"t","progress":1.0}` {
			t.Errorf("got %q", got)
		}
	})
}

// The host's progress token is replaced in place, every other byte is unchanged.
func TestCallKeepsParams(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, p := inMemory(t, schema.Server{}, ConnOptions{}, answerAll)
		for params, want := range map[string]string{
			`{"_meta" : {"a":1.0, "progressToken" : "tok" ,"b":[]},"n":9007199254740993}`: `{"_meta" : {"a":1.0, "progressToken" : ID ,"b":[]},"n":9007199254740993}`,
			`{"progressToken":"x"}`: `{"progressToken":"x"}`,
			`[1.0]`:                 `[1.0]`,
		} {
			call := &Call{Method: "x", Params: []byte(params), Peer: &recorder{}}
			<-start(c, call)
			lines := p.lines()
			want := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"x","params":%s}`, call.id, strings.Replace(want, "ID", fmt.Sprint(call.id), 1))
			if got := lines[len(lines)-1]; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
	})
}

// The requests of an upstream that wait for hosts are limited.
func TestTooManyServerRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		answers := make(chan struct{})
		peer := &recorder{onRequest: func(ctx context.Context, _ string, _ json.RawMessage) (json.RawMessage, error) {
			asked.Add(1)
			<-answers
			return json.RawMessage(`{}`), nil
		}}
		_, p := inMemory(t, schema.Server{}, ConnOptions{Peer: peer}, silent)
		for n := range maxServerRequests + 10 {
			p.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"roots/list"}`, n))
		}
		p.say(`{"jsonrpc":"2.0","id":"p","method":"ping"}`)
		synctest.Wait()
		if got := asked.Load(); got != maxServerRequests {
			t.Errorf("%d requests reached the host, want %d", got, maxServerRequests)
		}
		if got := strings.Join(p.lines(), "\n"); strings.Count(got, `"code":-32600`) != 10 || !strings.Contains(got, `{"jsonrpc":"2.0","id":"p","result":{}}`) {
			t.Errorf("got %s", got)
		}
		close(answers)
		synctest.Wait()
		if got := strings.Count(strings.Join(p.lines(), "\n"), `"result":{}`); got != maxServerRequests+1 {
			t.Errorf("got %d answers", got)
		}
	})
}

func TestUpstreamAsksTwiceUnderOneID(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		answers := make(chan struct{})
		peer := &recorder{onRequest: func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
			<-answers
			return json.RawMessage(`{}`), nil
		}}
		_, p := inMemory(t, schema.Server{}, ConnOptions{Peer: peer}, silent)
		p.say(`{"jsonrpc":"2.0","id":1,"method":"roots/list"}`)
		p.say(`{"jsonrpc":"2.0","id":1,"method":"roots/list"}`)
		synctest.Wait()
		close(answers)
		synctest.Wait()
		if got := p.lines(); len(got) != 2 || !strings.Contains(got[0], "-32600") || !strings.Contains(got[1], "result") {
			t.Errorf("got %q", got)
		}
	})
}

func TestUpstreamWithoutHost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, p := inMemory(t, schema.Server{}, ConnOptions{}, silent)
		p.say(`{"jsonrpc":"2.0","id":1,"method":"roots/list"}`)
		p.say(`{"jsonrpc":"2.0","method":"notifications/x"}`)
		synctest.Wait()
		if got := p.lines(); len(got) != 1 || !strings.Contains(got[0], "5113") {
			t.Errorf("got %q", got)
		}
	})
}

// The log has few lines about an upstream that prints many lines that are not messages.
func TestJunkIsCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		_, p := inMemory(t, schema.Server{}, ConnOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))}, silent)
		p.say(strings.TrimSuffix(strings.Repeat("junk \x1b[31m\n", 1234), "\n"))
		synctest.Wait()
		if got := strings.Count(log.String(), "\n"); got != 4 || !strings.Contains(log.String(), "count=1000") {
			t.Errorf("got %s", log.String())
		}
		if strings.Contains(log.String(), "\x1b") {
			t.Error("a control character is in the log")
		}
	})
}

// A panic in a call's Done ends the connection, not the process.
func TestPanicEndsConnection(t *testing.T) {
	t.Parallel()
	for name, timeout := range map[string]time.Duration{"in the reader": 0, "in the timer": time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				on := answerAll
				if timeout > 0 {
					on = silent
				}
				c, _ := inMemory(t, schema.Server{Timeout: timeout}, ConnOptions{}, on)
				c.Start(&Call{Method: "x", Done: func(json.RawMessage, error) { panic("boom") }})
				err := <-start(c, &Call{Method: "x", unlimited: true})
				if wantFailure(t, err, transports.CodeUnreachable, transports.Unknown); !strings.Contains(err.Error(), "boom") {
					t.Errorf("got %v", err)
				}
				<-c.Done()
			})
		})
	}
}

// When a connection is closed, a panic in the Done of one call does not keep others from ending.
func TestPanicAtTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const calls = 10
		c, _ := inMemory(t, schema.Server{}, ConnOptions{}, silent)
		ended := 0
		for range calls {
			c.Start(&Call{Method: "x", Done: func(json.RawMessage, error) {
				ended++
				panic("boom")
			}})
		}
		c.Close()
		if ended != calls {
			t.Errorf("%d calls ended, want %d", ended, calls)
		}
	})
}

// The requests in a batch keep their ids while later messages overwrite the read buffer.
func TestRequestsInABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := make(chan struct{})
		peer := &recorder{onRequest: func(_ context.Context, _ string, params json.RawMessage) (json.RawMessage, error) {
			<-answers
			return params, nil
		}}
		_, p := inMemory(t, schema.Server{}, ConnOptions{Peer: peer}, silent)
		p.say(`[{"jsonrpc":"2.0","id":"first","method":"x","params":{"n":1}},{"jsonrpc":"2.0","id":"second","method":"x","params":{"n":2}}]`)
		p.say(`{"jsonrpc":"2.0","method":"notifications/x","params":{"text":"` + strings.Repeat("x", 64<<10) + `"}}`)
		synctest.Wait()
		close(answers)
		synctest.Wait()
		got := strings.Join(p.lines(), "\n")
		for _, want := range []string{`{"jsonrpc":"2.0","id":"first","result":{"n":1}}`, `{"jsonrpc":"2.0","id":"second","result":{"n":2}}`} {
			if !strings.Contains(got, want) {
				t.Errorf("got %s, want %s", got, want)
			}
		}
	})
}

// The params of a request may have at most max_message_bytes.
func TestRequestOfTheLargestSize(t *testing.T) {
	const most = 100
	synctest.Test(t, func(t *testing.T) {
		c, _ := inMemory(t, schema.Server{MaxMessageBytes: most}, ConnOptions{}, answerAll)
		params := func(size int) json.RawMessage { return json.RawMessage(`"` + strings.Repeat("x", size-2) + `"`) }
		if _, err := c.Call(t.Context(), "x", params(most)); err != nil {
			t.Errorf("got %v", err)
		}
		_, err := c.Call(t.Context(), "x", params(most+1))
		wantFailure(t, err, transports.CodeTooLarge, transports.NotSent)
	})
}

// The timeout of a call takes precedence over that of the server. The hint says where it is set.
func TestTimeoutOfACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := inMemory(t, schema.Server{Timeout: time.Minute}, ConnOptions{}, func(p *puppet, m wire.Message) {
			if m.Method == "ping" {
				answerAll(p, m)
			}
		})
		own := time.Second
		for _, limit := range []*time.Duration{&own, nil} {
			began := time.Now()
			f := wantFailure(t, <-start(c, &Call{Method: "x", Timeout: limit}), transports.CodeTimeout, transports.Unknown)
			if took := time.Since(began); (took == own) != (limit != nil) || strings.Contains(f.Hint, "tool_overrides") != (limit != nil) {
				t.Errorf("after %v: got the hint %q", took, f.Hint)
			}
		}
	})
}
