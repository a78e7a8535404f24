package upstream

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/transports"
)

// A call's stream may have other events besides the answer.
func TestHTTPStreamOfCall(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, events string }{
		{"an event over several lines", ": hello\n\nid: 1\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\ndata:\"id\":ID,\r\ndata: \"result\":{}}\r\n\r\n"},
		{"an event that is not a message", "data: {\"broken\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{}}\n\n"},
		{"the answer to another call", "data: {\"jsonrpc\":\"2.0\",\"id\":OTHER,\"result\":{\"wrong\":1}}\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{}}\n\n"},
		{"no empty line at the end", "data: {\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{}}"},
		{"a byte order mark", "\ufeffdata: {\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{}}\n\n"},
		{"a batch", "data: [{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"},{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{}}]\n\n"},
		{"the answer twice", "data: {\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{}}\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{\"second\":1}}\n\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var other atomic.Pointer[string]
			hang := make(chan struct{})
			s := &scripted{call: func(w http.ResponseWriter, r *http.Request, id string) {
				if other.CompareAndSwap(nil, &id) {
					select {
					case <-hang:
					case <-r.Context().Done():
					}
					plain(w, `{"jsonrpc":"2.0","id":`+id+`,"result":{"right":1}}`)
					return
				}
				events(w, strings.NewReplacer("ID", id, "OTHER", *other.Load()).Replace(test.events))
			}}
			c := dial(t, script(t, s), ConnOptions{HandshakeOnly: true})
			first := make(chan string, 1)
			c.Start(&Call{Method: "tools/call", Params: []byte(`{}`), Done: func(result json.RawMessage, err error) { first <- fmt.Sprint(string(result), err) }})
			for other.Load() == nil {
				time.Sleep(time.Millisecond)
			}
			if result, err := tool(t, c, "x", "{}"); err != nil || string(result) != "{}" {
				t.Errorf("got %s, %v", result, err)
			}
			close(hang)
			if got := <-first; got != `{"right":1}<nil>` {
				t.Errorf("the other call: got %s", got)
			}
		})
	}
}

// A stream that stays open after the answer is closed.
func TestHTTPStreamStaysOpen(t *testing.T) {
	t.Parallel()
	closed := make(chan struct{})
	s := &scripted{call: func(w http.ResponseWriter, r *http.Request, id string) {
		events(w, "data: {\"jsonrpc\":\"2.0\",\"id\":"+id+",\"result\":{}}\n\n")
		<-r.Context().Done()
		close(closed)
	}}
	c := dial(t, script(t, s), ConnOptions{HandshakeOnly: true, timing: timing{bestEffort: 100 * time.Millisecond}})
	if _, err := tool(t, c, "x", "{}"); err != nil {
		t.Error(err)
	}
	waitFor(t, "the end of the stream", closed)
	if c.Err() != nil {
		t.Errorf("the connection ended: %v", c.Err())
	}
}

// A stream that ends before its answer is resumed after its last event.
func TestHTTPResume(t *testing.T) {
	t.Parallel()
	var asked atomic.Pointer[string]
	s := &scripted{
		call: func(w http.ResponseWriter, _ *http.Request, id string) {
			asked.Store(&id)
			events(w, "id: e1\nretry: 1\ndata: \n\n")
		},
		get: func(w http.ResponseWriter, r *http.Request) {
			switch r.Header.Get("Last-Event-ID") {
			case "e1":
				events(w, "id: e2\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\n")
			case "e2":
				events(w, "id: e3\ndata: {\"jsonrpc\":\"2.0\",\"id\":"+*asked.Load()+",\"result\":{\"late\":1}}\n\n")
			default:
				w.WriteHeader(http.StatusMethodNotAllowed)
			}
		},
	}
	peer := &recorder{}
	c := dial(t, script(t, s), ConnOptions{HandshakeOnly: true, Peer: peer, timing: timing{reopen: time.Millisecond}})
	if result, err := tool(t, c, "x", "{}"); err != nil || string(result) != `{"late":1}` {
		t.Errorf("got %s, %v", result, err)
	}
	if got := peer.all(); len(got) != 1 {
		t.Errorf("got %q", got)
	}
}

// The GET stream is reopened after its last event. After each gap the peer is told that lists may
// have changed.
func TestHTTPListens(t *testing.T) {
	t.Parallel()
	s := &scripted{get: func(w http.ResponseWriter, r *http.Request) {
		switch r.Header.Get("Last-Event-ID") {
		case "":
			events(w, "id: 1\nretry: 1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/a\",\"params\":{\"f\":1.0}}\n\n")
		case "1":
			events(w, "id: 2\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/b\"}\n\n")
		default:
			events(w, ": quiet\n\n")
			<-r.Context().Done()
		}
	}}
	peer := &recorder{}
	dial(t, script(t, s), ConnOptions{HandshakeOnly: true, Peer: peer, timing: timing{reopen: time.Millisecond}})
	got := peer.wait(t, 4)
	want := []string{`notifications/a {"f":1.0}`, "notifications/tools/list_changed ", "notifications/b ", "notifications/tools/list_changed "}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A 404 for a GET stream that was open before means that the session is lost.
func TestHTTPListenFindsSessionLost(t *testing.T) {
	t.Parallel()
	var opened atomic.Bool
	s := &scripted{get: func(w http.ResponseWriter, _ *http.Request) {
		if opened.CompareAndSwap(false, true) {
			events(w, "retry: 1\n\n")
			return
		}
		w.WriteHeader(http.StatusNotFound)
	}}
	c := dial(t, script(t, s), ConnOptions{HandshakeOnly: true, timing: timing{reopen: time.Millisecond}})
	waitFor(t, "the end", c.Done())
	if !errors.Is(c.Err(), ErrSessionLost) {
		t.Errorf("got %v", c.Err())
	}
}

// If a response ends in the middle of the answer, at any byte, the call fails. A complete answer
// counts.
func TestHTTPCutAnywhere(t *testing.T) {
	t.Parallel()
	var cut, abort atomic.Int32
	const stream = ": hi\ndata: {\"jsonrpc\":\"2.0\",\ndata: \"id\":ID,\"result\":{\"x\":1}}\n\n"
	s := &scripted{call: func(w http.ResponseWriter, _ *http.Request, id string) {
		text := strings.Replace(stream, "ID", id, 1)
		events(w, text[:min(int(cut.Load()), len(text))])
		if abort.Load() == 1 {
			panic(http.ErrAbortHandler)
		}
	}}
	c := dial(t, script(t, s), ConnOptions{HandshakeOnly: true})
	for n := range len(stream) + 1 {
		for how := range 2 {
			cut.Store(int32(n))
			abort.Store(int32(how))
			result, err := tool(t, c, "x", "{}")
			if err == nil && string(result) == `{"x":1}` && n >= len(stream)-4 {
				continue
			}
			wantFailure(t, err, transports.CodeExited, transports.Unknown)
		}
	}
	if err := c.Err(); err != nil {
		t.Errorf("the connection ended: %v", err)
	}
}
