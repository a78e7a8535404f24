package upstream

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
)

// A connection waits for an upstream that is busy and reads nothing, for any time.
func TestBusyUpstreamIsWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		near, far := mcptest.Pipe()
		defer far.Close()
		busy := newBusy(near)
		c := OpenStream(schema.Server{Name: "up"}, busy, ConnOptions{})
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
		c := OpenStream(schema.Server{Name: "up", Timeout: time.Minute}, busy, ConnOptions{})
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
		c := OpenStream(schema.Server{Name: "up", MaxMessageBytes: maxQueued}, newBusy(near), ConnOptions{})
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
			c := OpenStream(schema.Server{Name: "up"}, near, ConnOptions{})
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
func TestCallToALeavingReplicaIsNotSent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stream := &leaving{failed: make(chan struct{}), said: strings.NewReader(`{"jsonrpc":"2.0","method":"notifications/dynmcp/ended","dynmcp":{"last":0}}` + "\n")}
		c := OpenReplica(schema.Server{Name: "up"}, stream, ConnOptions{})
		defer c.Close()
		f := wantFailure(t, <-start(c, &Call{Method: "x"}), transports.CodeUnreachable, transports.NotSent)
		if !errors.Is(f, ErrMoved) {
			t.Errorf("got %v, want %v", f, ErrMoved)
		}
	})
}

// A mute is a stream whose writes fail and whose reads block.
type mute struct{ closed chan struct{} }

func (m *mute) Write([]byte) (int, error) { return 0, errors.New("it is full") }

func (m *mute) Read([]byte) (int, error) {
	<-m.closed
	return 0, errors.New("closed")
}

func (m *mute) Close() error {
	select {
	case <-m.closed:
	default:
		close(m.closed)
	}
	return nil
}

// A stream that refuses writes ends the connection, even if it can still be read.
func TestStreamThatRefusesWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := OpenStream(schema.Server{Name: "up"}, &mute{make(chan struct{})}, ConnOptions{})
		defer c.Close()
		began := time.Now()
		_, err := c.Call(t.Context(), "x", nil)
		wantFailure(t, err, transports.CodeUnreachable, transports.Unknown)
		<-c.Done()
		if took := time.Since(began); took != exitGrace || !strings.Contains(c.Err().Error(), "it is full") {
			t.Errorf("after %v: got %v", took, c.Err())
		}
	})
}
