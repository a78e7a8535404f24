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
func inMemory(t *testing.T, server schema.Server, opts Options, on func(p *puppet, m wire.Message)) (*Conn, *puppet) {
	t.Helper()
	return inMemoryBy(t, OpenStream, server, opts, on)
}

// inMemoryBy is inMemory for a connection that open returns.
func inMemoryBy(t *testing.T, open func(schema.Server, io.ReadWriteCloser, Options) *Conn, server schema.Server, opts Options, on func(p *puppet, m wire.Message)) (*Conn, *puppet) {
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
	c, _ := inMemory(t, schema.Server{Timeout: 2 * time.Millisecond}, Options{}, func(p *puppet, m wire.Message) {
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
		c, p := inMemory(t, schema.Server{}, Options{}, silent)
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
		c, p := inMemory(t, schema.Server{}, Options{}, silent)
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
		c, p := inMemory(t, schema.Server{}, Options{}, silent)
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
		c, p := inMemory(t, schema.Server{Timeout: time.Minute}, Options{}, silent)
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
		c, p := inMemory(t, schema.Server{Timeout: time.Minute}, Options{}, silent)
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
		c, p := inMemory(t, schema.Server{}, Options{}, answerAll)
		for params, want := range map[string]string{
			`{"_meta" : {"a":1.0, "progressToken" : "tok" ,"b":[]},"n":9007199254740993}`: `{"_meta" : {"a":1.0, "progressToken" : ID ,"b":[]},"n":9007199254740993}`,
			`{"progressToken":"x"}`: `{"progressToken":"x"}`,
			`[1.0]`:                 `[1.0]`,
		} {
			done := make(chan struct{})
			call := &Call{Method: "x", Params: []byte(params), Peer: &recorder{}, Done: func(json.RawMessage, error) { close(done) }}
			c.Start(call)
			<-done
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
		_, p := inMemory(t, schema.Server{}, Options{Peer: peer}, silent)
		for n := range maxServerRequests + 10 {
			p.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"roots/list"}`, n))
		}
		p.say(`{"jsonrpc":"2.0","id":"p","method":"ping"}`)
		synctest.Wait()
		if got := asked.Load(); got != maxServerRequests {
			t.Errorf("%d questions reached the host, want %d", got, maxServerRequests)
		}
		if got := strings.Join(p.lines(), "\n"); strings.Count(got, `"code":-32600`) != 10 || !strings.Contains(got, `{"jsonrpc":"2.0","id":"p","result":{}}`) {
			t.Errorf("got %s", got)
		}
		close(answers)
		synctest.Wait()
		if got := strings.Count(strings.Join(p.lines(), "\n"), `"result":{}`); got != maxServerRequests+1 {
			t.Errorf("%d answers", got)
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
		_, p := inMemory(t, schema.Server{}, Options{Peer: peer}, silent)
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
		_, p := inMemory(t, schema.Server{}, Options{}, silent)
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
		_, p := inMemory(t, schema.Server{}, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}, silent)
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
				c, _ := inMemory(t, schema.Server{Timeout: timeout}, Options{}, on)
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
		c, _ := inMemory(t, schema.Server{}, Options{}, silent)
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

// A connection waits for an upstream that is busy and reads nothing, for any time.
func TestBusyUpstreamIsWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		near, far := mcptest.Pipe()
		defer far.Close()
		busy := newBusy(near)
		c := OpenStream(schema.Server{Name: "up"}, busy, Options{})
		defer c.Close()
		large := []byte(`"` + strings.Repeat("x", 200<<10) + `"`)
		first, second := start(c, &Call{Method: "x", Params: large}), start(c, &Call{Method: "x", Params: large})
		time.Sleep(time.Hour)
		if ended := len(first) + len(second); c.Err() != nil || ended > 0 {
			t.Fatalf("after an hour: %v, %d calls ended", c.Err(), ended)
		}
		close(busy.done)
		for r := wire.NewReader(far, 1<<20); ; {
			m, err := r.Next()
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(far, `{"jsonrpc":"2.0","id":%s,"result":{}}`+"\n", m.ID)
			if string(m.ID) == "2" {
				break
			}
		}
		if err := errors.Join(<-first, <-second); err != nil {
			t.Error(err)
		}
	})
}

// A call that waits to be written has its timeout. It may be written later and run, so its
// outcome is unknown. The upstream gets the cancellation after the call.
func TestQueuedCallTimesOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		near, far := mcptest.Pipe()
		defer far.Close()
		busy := newBusy(near)
		c := OpenStream(schema.Server{Name: "up", Timeout: time.Minute}, busy, Options{})
		defer c.Close()
		_, err := c.Call(t.Context(), "x", nil)
		wantFailure(t, err, transports.CodeTimeout, transports.Unknown)
		_, err = c.Call(t.Context(), "y", nil) // in flight while pings get no answer
		wantFailure(t, err, transports.CodeUnreachable, transports.Unknown)
		if c.Err() != errSilent {
			t.Errorf("got %v, want %v", c.Err(), errSilent)
		}
		close(busy.done)
		r := wire.NewReader(far, 1<<20)
		for _, want := range []string{`"method":"x"`, `"notifications/cancelled","params":{"requestId":1,"reason":"timeout"}`} {
			if m, err := r.Next(); err != nil || !strings.Contains(string(m.Raw), want) {
				t.Errorf("got %s, %v; want %s", m.Raw, err, want)
			}
		}
	})
}

// A full queue refuses further calls and keeps those that it has.
func TestQueueIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		near, far := mcptest.Pipe()
		defer far.Close()
		c := OpenStream(schema.Server{Name: "up", MaxMessageBytes: maxQueued}, newBusy(near), Options{})
		defer c.Close()
		queued := 0
		big := []byte(`"` + strings.Repeat("x", maxQueuedRequests/2) + `"`)
		for range 2 {
			c.Start(&Call{Method: "x", Params: big, Done: func(json.RawMessage, error) { queued-- }})
			queued++
		}
		_, err := c.Call(t.Context(), "x", nil)
		wantFailure(t, err, transports.CodeOverloaded, transports.NotSent)
		if queued != 2 || c.Err() != nil {
			t.Errorf("%d calls are queued, want 2; the connection ended: %v", queued, c.Err())
		}
		if err := c.Notify("notifications/cancelled", nil); err != nil {
			t.Errorf("the queue has no room for a cancellation: %v", err)
		}
	})
}

// A busy is a stream that blocks writes until done or the stream is closed.
type busy struct {
	io.ReadWriteCloser
	once   sync.Once
	done   chan struct{}
	closed chan struct{}
}

func newBusy(stream io.ReadWriteCloser) *busy {
	return &busy{ReadWriteCloser: stream, done: make(chan struct{}), closed: make(chan struct{})}
}

func (b *busy) Write(p []byte) (int, error) {
	select {
	case <-b.done:
		return b.ReadWriteCloser.Write(p)
	case <-b.closed:
		return 0, io.ErrClosedPipe
	}
}

func (b *busy) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.ReadWriteCloser.Close()
}

// If a stream ends in the middle of an answer, at any byte, the call fails with the outcome
// unknown. A complete answer counts.
func TestStreamCutAnywhere(t *testing.T) {
	t.Parallel()
	answer := `{"result":{"text":"a\"}{é\\"},"jsonrpc":"2.0","id":1}` + "\n"
	for cut := range len(answer) + 1 {
		synctest.Test(t, func(t *testing.T) {
			near, far := mcptest.Pipe()
			c := OpenStream(schema.Server{Name: "up"}, near, Options{})
			defer c.Close()
			type end struct {
				result string
				err    error
			}
			ended := make(chan end, 1)
			c.Start(&Call{Method: "x", Done: func(result json.RawMessage, err error) { ended <- end{string(result), err} }})
			_, _ = far.Write([]byte(answer[:cut]))
			synctest.Wait()
			far.Close()
			got := <-ended
			if cut >= len(answer)-1 {
				if got.err != nil || got.result != `{"text":"a\"}{é\\"}` {
					t.Errorf("cut at %d: got %s, %v", cut, got.result, got.err)
				}
				return
			}
			wantFailure(t, got.err, transports.CodeUnreachable, transports.Unknown)
		})
	}
}

// A leaving is a stream whose other end reads nothing more and has sent a last message, which
// is read only after a write has failed.
type leaving struct {
	said   io.Reader
	failed chan struct{}
	once   sync.Once
}

func (l *leaving) Write([]byte) (int, error) {
	l.once.Do(func() { close(l.failed) })
	return 0, io.ErrClosedPipe
}

func (l *leaving) Read(p []byte) (int, error) {
	<-l.failed
	time.Sleep(time.Millisecond)
	return l.said.Read(p)
}

func (l *leaving) Close() error {
	_, _ = l.Write(nil)
	return nil
}

// The last message of a replica says which calls it did not accept. It counts even if a call
// that is being written fails first.
func TestCallWrittenToAReplicaThatLeavesMayBeSentAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stream := &leaving{failed: make(chan struct{}), said: strings.NewReader(`{"jsonrpc":"2.0","method":"notifications/dynmcp/ended","dynmcp":{"last":0}}` + "\n")}
		c := OpenReplica(schema.Server{Name: "up"}, stream, Options{})
		defer c.Close()
		f := wantFailure(t, <-start(c, &Call{Method: "x"}), transports.CodeUnreachable, transports.NotSent)
		if !errors.Is(f, ErrMoved) {
			t.Errorf("got %v, want %v", f, ErrMoved)
		}
	})
}
