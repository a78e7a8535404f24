package upstream

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
)

// hurried are options with short timeouts for upstreams that stall.
var hurried = ConnOptions{HandshakeOnly: true, timing: timing{http: httpTimeouts{header: hurriedPatience, body: hurriedPatience, ping: time.Hour}}}

const hurriedPatience = time.Second

// hijacked returns the connection of a request.
func hijacked(t *testing.T, w http.ResponseWriter) net.Conn {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		t.Error(err)
		panic(http.ErrAbortHandler)
	}
	return conn
}

// awaitEnd returns when the other side has closed a connection.
func awaitEnd(conn net.Conn) {
	_, _ = io.Copy(io.Discard, conn)
	conn.Close()
}

// partly begins an answer and stalls until the client has closed the connection.
func partly(w http.ResponseWriter, r *http.Request, text string) {
	plain(w, text)
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

// wantStalled fails the test unless err is the failure of a stalled answer.
func wantStalled(t *testing.T, err error, outcome transports.Outcome) *transports.Failure {
	t.Helper()
	f := wantFailure(t, err, transports.CodeUnreachable, outcome)
	if !errors.Is(f, errStalled) {
		t.Errorf("got %v, want %v", f, errStalled)
	}
	return f
}

// stalls are the ways to stop in the middle of an answer. Each returns when the
// connection is closed.
var stalls = []struct {
	name, says string
	answer     func(t *testing.T, w http.ResponseWriter, r *http.Request, id string)
}{
	{"a header that stops", "header", func(t *testing.T, w http.ResponseWriter, _ *http.Request, _ string) {
		conn := hijacked(t, w)
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-T")
		awaitEnd(conn)
	}},
	{"a header line by line", "header", func(t *testing.T, w http.ResponseWriter, _ *http.Request, _ string) {
		conn := hijacked(t, w)
		defer conn.Close()
		_, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\n")
		for ; err == nil; time.Sleep(5 * time.Millisecond) {
			_, err = io.WriteString(conn, "X-A: b\r\n")
		}
	}},
	{"JSON that has not begun", "nothing more", func(_ *testing.T, w http.ResponseWriter, r *http.Request, _ string) { partly(w, r, "") }},
	{"half of the JSON", "nothing more", func(_ *testing.T, w http.ResponseWriter, r *http.Request, id string) {
		partly(w, r, `{"jsonrpc":"2.0","id":`+id+`,"result":{`)
	}},
	{"half a line of an event", "nothing more", func(_ *testing.T, w http.ResponseWriter, r *http.Request, id string) {
		events(w, ": hi\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":"+id)
		<-r.Context().Done()
	}},
	{"a field's name", "nothing more", func(_ *testing.T, w http.ResponseWriter, r *http.Request, _ string) {
		events(w, "da")
		<-r.Context().Done()
	}},
	{"an event without its end", "nothing more", func(_ *testing.T, w http.ResponseWriter, r *http.Request, id string) {
		events(w, "data: {\"jsonrpc\":\"2.0\",\"id\":"+id+",\"result\":{}}\n")
		<-r.Context().Done()
	}},
	{"an event that is only named", "nothing more", func(_ *testing.T, w http.ResponseWriter, r *http.Request, _ string) {
		events(w, "event: message\n: comment\n")
		<-r.Context().Done()
	}},
}

// An answer that stalls fails its call and closes its HTTP connection. Other calls and the session
// continue.
func TestHTTPStalls(t *testing.T) {
	t.Parallel()
	for _, test := range stalls {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int32
			ended, goOn := make(chan struct{}), make(chan struct{})
			s := &scripted{call: func(w http.ResponseWriter, r *http.Request, id string) {
				switch calls.Add(1) {
				case 1: // sends nothing until the other call has failed
					<-goOn
				case 2:
					test.answer(t, w, r, id)
					close(ended)
					return
				}
				fine(w, id)
			}}
			c := dial(t, script(t, s), hurried)
			other := start(c, toolCall(`{}`))
			s.wait(t, "POST tools/call")
			_, err := tool(t, c, "x", "{}")
			if f := wantStalled(t, err, transports.Unknown); !strings.Contains(f.Error(), test.says) || !strings.Contains(f.Error(), hurriedPatience.String()) {
				t.Errorf("got %v, want what stalled and for how long", f)
			}
			waitFor(t, "the end of the HTTP connection", ended)
			close(goOn)
			if err := <-other; err != nil {
				t.Errorf("the other call: %v", err)
			}
			if _, err := tool(t, c, "x", "{}"); err != nil {
				t.Errorf("the next call: %v", err)
			}
			if n := calls.Load(); n != 3 || c.Err() != nil {
				t.Errorf("%d calls arrived, want 3; the connection ended: %v", n, c.Err())
			}
		})
	}
}

// A call's stream that stalls after an event with an id is resumed there.
func TestHTTPStalledStreamIsResumed(t *testing.T) {
	t.Parallel()
	var asked atomic.Pointer[string]
	s := &scripted{
		call: func(w http.ResponseWriter, r *http.Request, id string) {
			asked.Store(&id)
			events(w, "id: e1\nretry: 5\ndata: \n\nid: e2\ndata: {")
			<-r.Context().Done()
		},
		get: func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Last-Event-ID") == "e1" {
				events(w, "id: e2\ndata: {\"jsonrpc\":\"2.0\",\"id\":"+*asked.Load()+",\"result\":{\"late\":1}}\n\n")
				return
			}
			w.WriteHeader(http.StatusMethodNotAllowed)
		},
	}
	c := dial(t, script(t, s), hurried)
	if result, err := tool(t, c, "x", "{}"); err != nil || string(result) != `{"late":1}` {
		t.Errorf("got %s, %v", result, err)
	}
}

// A stall on the one stream of the older transport ends the connection.
func TestSSEStalls(t *testing.T) {
	t.Parallel()
	s := &sse{endpoint: "event: endpoint\ndata: /m\n\n", post: func(w http.ResponseWriter, m wire.Message, say func(string)) {
		w.WriteHeader(http.StatusAccepted)
		say("data: {\"jsonrpc\":\"2.0\",\"id\":" + string(m.ID))
	}}
	c := dial(t, s.serve(t), hurried)
	_, err := tool(t, c, "x", "{}")
	wantStalled(t, err, transports.Unknown)
	waitFor(t, "the end", c.Done())
}

// A POST of the older transport that stalls fails only its call.
func TestSSEPostStalls(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	s := &sse{endpoint: "event: endpoint\ndata: /m\n\n", post: func(w http.ResponseWriter, m wire.Message, say func(string)) {
		if calls.Add(1) == 1 {
			stalls[0].answer(t, w, nil, "")
			return
		}
		w.WriteHeader(http.StatusAccepted)
		say("data: {\"jsonrpc\":\"2.0\",\"id\":" + string(m.ID) + ",\"result\":{}}\n\n")
	}}
	c := dial(t, s.serve(t), hurried)
	_, err := tool(t, c, "x", "{}")
	wantStalled(t, err, transports.Unknown)
	if _, err := tool(t, c, "x", "{}"); err != nil {
		t.Error(err)
	}
}

// The failure for a body that is not MCP shows its beginning, even if the body never ends.
func TestHTTPEndlessPage(t *testing.T) {
	t.Parallel()
	s := &scripted{call: func(w http.ResponseWriter, r *http.Request, _ string) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<p>Log in")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}}
	c := dial(t, script(t, s), ConnOptions{HandshakeOnly: true})
	_, err := tool(t, c, "x", "{}")
	if f := wantFailure(t, err, transports.CodeProtocol, transports.Unknown); !strings.Contains(f.Error(), "<p>Log in") {
		t.Errorf("got %v", f)
	}
}

// An answer that exceeds what MayRead allows ends its call. Its memory is released, like that of a
// complete answer.
func TestAnswersBeyondMayRead(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(http.ResponseWriter, string){
		"JSON": plain, "events": func(w http.ResponseWriter, text string) { events(w, "data: "+text+"\n\n") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := dial(t, script(t, &scripted{call: func(w http.ResponseWriter, _ *http.Request, id string) {
				write(w, `{"jsonrpc":"2.0","id":`+id+`,"result":{"x":"`+strings.Repeat("x", 10*countedFrom)+`"}}`)
			}}), ConnOptions{HandshakeOnly: true})
			for _, most := range []int{5 * countedFrom, 20 * countedFrom} {
				var sizes []int
				released := make(chan struct{})
				call := toolCall(`{"name":"x"}`)
				call.MayRead = func(size int) bool {
					if sizes = append(sizes, size); size == 0 && len(sizes) > 1 && sizes[len(sizes)-2] > 0 {
						close(released)
					}
					return size <= most
				}
				err := <-start(c, call)
				waitFor(t, "the release of the memory", released)
				if most > 10*countedFrom && err != nil {
					t.Errorf("an answer within the limit: %v", err)
				} else if most < 10*countedFrom {
					wantFailure(t, err, transports.CodeOverloaded, transports.Unknown)
				}
			}
		})
	}
}
