package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
)

// A listEdge keeps the written messages.
type listEdge struct {
	fail  error // returned for messages about a request
	mu    sync.Mutex
	lines []string
}

func (e *listEdge) Write(about *Request, _ Class, parts ...[]byte) error {
	if about != nil && e.fail != nil {
		return e.fail
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lines = append(e.lines, string(bytes.Join(parts, nil)))
	return nil
}

func (e *listEdge) Drop(*Request)         {}
func (e *listEdge) AwaitRoom()            {}
func (e *listEdge) Gone() <-chan struct{} { return nil }

func (e *listEdge) all() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return strings.Join(e.lines, "\n")
}

func parsed(t *testing.T, line string) wire.Message {
	t.Helper()
	m, err := wire.Parse([]byte(line))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Another replica gets all details of a failure. Only a host's control plane gets initialized.
func TestReplicasGetFailureDetails(t *testing.T) {
	failure := &transports.Failure{Upstream: "git", Code: transports.CodeNoResources, Outcome: transports.NotSent, Cause: errors.New("too many open files")}
	for _, replica := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			edge, notices, initialized := &listEdge{}, []string{}, 0
			var log bytes.Buffer
			opts := SessionOptions{
				HandleRequest:      func(r *Request) { r.Reply(nil, failure) },
				HandleNotification: func(method string, _ json.RawMessage) { notices = append(notices, method) },
				Logger:             slog.New(slog.NewTextHandler(&log, nil)),
			}
			if !replica {
				opts.Control = mcp.NewServer(&mcp.Implementation{Name: "x", Version: "1"}, &mcp.ServerOptions{
					InitializedHandler: func(context.Context, *mcp.InitializedRequest) { initialized++ },
				})
			}
			s := NewSession("h1", edge, opts)
			for _, line := range []string{
				`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
				`{"jsonrpc":"2.0","method":"notifications/x"}`,
				`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
				`{"jsonrpc":"2.0","id":2,"method":"tools/call"}`,
			} {
				s.Receive(parsed(t, line), nil)
				synctest.Wait()
			}
			if got := edge.all(); strings.Contains(got, fmt.Sprintf("%q:{", transports.MemberReplica)) != replica || !strings.Contains(got, `"id":2,"error"`) {
				t.Errorf("replica %t: got %s", replica, got)
			}
			if got := strings.Join(notices, " "); got != "notifications/x notifications/initialized" {
				t.Errorf("replica %t: notified of %s", replica, got)
			}
			if (initialized == 1) == replica || initialized > 1 {
				t.Errorf("replica %t: the control plane got initialized %d times", replica, initialized)
			}
			s.End(t.Context())
			if log.Len() > 0 {
				t.Errorf("replica %t: the log has %s", replica, &log)
			}
		})
	}
}

// A merged notification whose request has been answered is sent about no request.
func TestMergedNotificationOutlivesItsRequest(t *testing.T) {
	for _, test := range []struct {
		name  string
		fail  error
		about *Request
		want  int
		err   error
	}{
		{"the request runs", nil, &Request{}, 1, nil},
		{"the request was answered", errors.New("answered"), &Request{}, 1, nil},
		{"there is no room", wire.ErrFull, &Request{}, 0, wire.ErrFull},
		{"it is about no request", nil, nil, 1, nil},
	} {
		edge := &listEdge{fail: test.fail}
		s := NewSession("h1", edge, SessionOptions{})
		err := s.sendMerged(latestMessage{test.about, "notifications/x", nil}, Latest)
		if len(edge.lines) != test.want || !errors.Is(err, test.err) {
			t.Errorf("%s: %d were sent, %v", test.name, len(edge.lines), err)
		}
	}
}

// An unsent message is logged if the host is gone, and not if it is slow.
func TestUnsentMessagesAreLogged(t *testing.T) {
	for err, want := range map[error]bool{nil: false, wire.ErrFull: false, errHostGone: true} {
		var log bytes.Buffer
		s := NewSession("h1", &listEdge{}, SessionOptions{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
		s.logUnsent(err)
		if got := strings.Contains(log.String(), "not sent to the host"); got != want {
			t.Errorf("%v: logged %q", err, &log)
		}
	}
}

// addLocked reports the last of a batch, whether there are answers or not.
func TestBatchKnowsItsLast(t *testing.T) {
	answer := [][]byte{[]byte(`{"id":`), []byte(`1}`)}
	for _, test := range []struct {
		parts [][][]byte
		want  string // returned with the last
	}{
		{[][][]byte{nil, nil}, ""},
		{[][][]byte{answer, nil}, `[{"id":1}]`},
		{[][][]byte{nil, answer}, `[{"id":1}]`},
		{[][][]byte{answer, answer}, `[{"id":1},{"id":1}]`},
	} {
		b := &batch{left: len(test.parts)}
		for n, parts := range test.parts {
			all, last := b.addLocked(parts)
			want := ""
			if n == len(test.parts)-1 {
				want = test.want
			}
			if got := string(bytes.Join(all, nil)); got != want || last != (n == len(test.parts)-1) || (all == nil) != (want == "") {
				t.Errorf("%q: number %d gives %q, last %t", test.parts, n, got, last)
			}
		}
	}
}

// A message may have no raw text, if its edge created it.
func TestMessageWithoutText(t *testing.T) {
	told := ""
	s := NewSession("h1", &listEdge{}, SessionOptions{HandleNotification: func(method string, _ json.RawMessage) { told = method }})
	m := parsed(t, `{"jsonrpc":"2.0","method":"notifications/x"}`)
	m.Raw = nil
	s.Receive(m, nil)
	if told != "notifications/x" {
		t.Errorf("told of %q", told)
	}
}
