package upstream

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
)

func TestSSEUpstream(t *testing.T) {
	t.Parallel()
	server := remote(t, "-sse")
	server.Transport = schema.SSE
	peer := &recorder{}
	c := dial(t, server, ConnOptions{Peer: peer})
	mustEcho(t, c)
	if _, err := tool(t, c, "notify", `{"method":"notifications/x"}`); err != nil {
		t.Fatal(err)
	}
	peer.wait(t, 1)
	failed := start(c, toolCall(endless))
	c.Close()
	wantFailure(t, <-failed, transports.CodeShuttingDown, transports.Unknown)
	if _, err := c.Call(t.Context(), "ping", nil); err == nil {
		t.Error("after Close: no error")
	}
}

// The end of an upstream ends the connection.
func TestSSEUpstreamEnds(t *testing.T) {
	t.Parallel()
	process := mcptest.ServeFake(t, "-sse")
	c := dial(t, schema.Server{Name: "up", Transport: schema.SSE, URL: process.URL}, ConnOptions{})
	_, err := tool(t, c, "crash", "{}")
	wantFailure(t, err, transports.CodeUnreachable, transports.Unknown)
	waitFor(t, "the end", c.Done())
}

// An sse is an upstream whose endpoint event and answers to POSTs a test writes.
type sse struct {
	endpoint string
	post     func(w http.ResponseWriter, m wire.Message, say func(string))

	mu  sync.Mutex
	say func(string)
}

func (s *sse) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		var writing sync.Mutex
		gone := false
		s.mu.Lock() // a POST may come as soon as the endpoint is known
		s.say = func(text string) {
			writing.Lock()
			defer writing.Unlock()
			if !gone { // w must not be used after ServeHTTP has returned
				events(w, text)
			}
		}
		s.say(s.endpoint)
		s.mu.Unlock()
		<-r.Context().Done()
		writing.Lock()
		gone = true
		writing.Unlock()
		return
	}
	body, _ := io.ReadAll(r.Body)
	m, _ := wire.Parse(body)
	s.mu.Lock()
	say := s.say
	s.mu.Unlock()
	if m.Method == "initialize" {
		say("data: {\"jsonrpc\":\"2.0\",\"id\":" + string(m.ID) + ",\"result\":{\"protocolVersion\":\"2024-11-05\",\"capabilities\":{}}}\n\n")
	}
	if m.Method != "tools/call" {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	s.post(w, m, say)
}

func (s *sse) serve(t *testing.T) schema.Server {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return schema.Server{Name: "up", Transport: schema.SSE, URL: server.URL + "/sse"}
}

// Headers may hold secrets, so the address to post to must have the origin of the config.
func TestSSEEndpoint(t *testing.T) {
	t.Parallel()
	for endpoint, ok := range map[string]bool{
		"event: endpoint\ndata: /messages?id=1\n\n":                                true,
		": hi\n\nevent: ping\ndata: no json\n\nevent: endpoint\r\ndata: m\r\n\r\n": true,
		"event: endpoint\ndata: http://127.0.0.1:1/steal\n\n":                      false,
		"event: endpoint\ndata: //evil.example/x\n\n":                              false,
		"event: endpoint\ndata: http://[::1\n\n":                                   false,
	} {
		s := &sse{endpoint: endpoint}
		_, err := tryDial(t, s.serve(t), ConnOptions{})
		var f *transports.Failure
		if ok != (err == nil) || !ok && (!errors.As(err, &f) || f.Outcome != transports.NotSent) {
			t.Errorf("%q: got %v", endpoint, err)
		}
	}
}

func TestSSERefusedCall(t *testing.T) {
	t.Parallel()
	s := &sse{endpoint: "event: endpoint\ndata: /m\n\n", post: func(w http.ResponseWriter, _ wire.Message, _ func(string)) {
		w.WriteHeader(http.StatusTooManyRequests)
	}}
	c := dial(t, s.serve(t), ConnOptions{})
	_, err := tool(t, c, "x", "{}")
	wantFailure(t, err, transports.CodeRateLimited, transports.NotSent)
}

// The answer counts, whether it comes before the POST is accepted or after.
func TestSSEAnswersBeforeAccepting(t *testing.T) {
	t.Parallel()
	s := &sse{endpoint: "event: endpoint\ndata: /m\n\n", post: func(w http.ResponseWriter, m wire.Message, say func(string)) {
		say("event: message\ndata: {\"jsonrpc\":\"2.0\",\ndata: \"id\":" + string(m.ID) + ",\"result\":{\"n\":1.0}}\n\n")
		w.WriteHeader(http.StatusInternalServerError) // too late to matter
	}}
	c := dial(t, s.serve(t), ConnOptions{})
	result, err := tool(t, c, "x", "{}")
	if err != nil && !strings.Contains(err.Error(), "500") || err == nil && string(result) != `{"n":1.0}` {
		t.Errorf("got %s, %v", result, err)
	}
}
