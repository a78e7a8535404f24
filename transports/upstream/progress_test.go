package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
)

// The progress of a call that was answered with a task is forwarded after the answer, under the
// host's token. The progress of a call in flight goes to that call.
func TestProgressOfATask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ids := make(chan string, 2)
		c, p := inMemory(t, schema.Server{}, Options{}, func(p *puppet, m wire.Message) { ids <- string(m.ID) })
		peer := &recorder{}
		var ofTask []string
		answered := make(chan struct{})
		begin := func(done func(call *Call)) (id string) {
			call := &Call{Method: "tools/call", Params: []byte(`{"_meta":{"progressToken":"host"}}`), Peer: peer}
			call.Done = func(json.RawMessage, error) { done(call) }
			c.Start(call)
			return <-ids
		}
		progress := func(id string) {
			p.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + id + `,"progress":1}}`)
			synctest.Wait()
		}
		task := begin(func(call *Call) {
			c.ForwardTaskProgress(call, func(params json.RawMessage) { ofTask = append(ofTask, string(params)) })
			close(answered)
		})
		running := begin(func(*Call) {})
		progress(running)
		p.say(`{"jsonrpc":"2.0","id":` + task + `,"result":{}}`)
		<-answered
		if progress("99"); len(ofTask) != 0 {
			t.Errorf("progress of another call: got %q", ofTask)
		}
		progress(task)
		const want = `{"progressToken":"host","progress":1}`
		if got := strings.Join(ofTask, ","); got != want {
			t.Errorf("progress of the task: got %s, want %s", got, want)
		}
		if got := strings.Join(peer.all(), ","); got != "notifications/progress "+want {
			t.Errorf("progress of the call: got %s", got)
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
		_, p := inMemory(t, schema.Server{}, Options{Peer: peer}, silent)
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
		c, _ := inMemory(t, schema.Server{MaxMessageBytes: most}, Options{}, answerAll)
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
		c, _ := inMemory(t, schema.Server{Timeout: time.Minute}, Options{}, func(p *puppet, m wire.Message) {
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
		c := OpenStream(schema.Server{Name: "up"}, &mute{make(chan struct{})}, Options{})
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
