package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
)

// A responder answers HTTP requests without a network, and records the times of GETs.
type responder struct {
	answer func(r *http.Request, n int) (status int, events string) // to the n-th GET, from 0; -1 for a POST

	mu   sync.Mutex
	gets []time.Time
}

func (r *responder) RoundTrip(req *http.Request) (*http.Response, error) {
	n := -1
	if req.Method == http.MethodGet {
		r.mu.Lock()
		n = len(r.gets)
		r.gets = append(r.gets, time.Now())
		r.mu.Unlock()
	}
	status, events := r.answer(req, n)
	if n > 10 { // ends the stream
		status, events = http.StatusMethodNotAllowed, ""
	}
	return &http.Response{
		Status: http.StatusText(status), StatusCode: status, Header: http.Header{"Content-Type": {"text/event-stream"}},
		Body: io.NopCloser(strings.NewReader(events)), Request: req,
	}, nil
}

// pauses returns the pauses between the GETs.
func (r *responder) pauses() (pauses []time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for n := 1; n < len(r.gets); n++ {
		pauses = append(pauses, r.gets[n].Sub(r.gets[n-1]))
	}
	return pauses
}

// onResponder runs a test of a connection whose requests r answers.
func onResponder(t *testing.T, r *responder, test func(c *Conn, l *httpLink)) {
	synctest.Test(t, func(*testing.T) {
		c := newConn(schema.Server{Name: "up", Transport: schema.StreamableHTTP, URL: "http://up.test/"}, ConnOptions{})
		l := newHTTPLink(c)
		l.client.Transport = r
		c.link = l
		defer c.Close()
		test(c, l)
	})
}

func seconds(s ...float64) (durations []time.Duration) {
	for _, s := range s {
		durations = append(durations, time.Duration(s*float64(time.Second)))
	}
	return durations
}

const someMessage = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\n"

// A stream that ends repeatedly is reopened after pauses that double, up to 30 seconds. The upstream
// can make them longer, not shorter. Only a message resets them.
func TestStreamIsReopenedAfterPauses(t *testing.T) {
	t.Parallel()
	doubling := seconds(.5, 1, 2, 4, 8, 16, 30, 30)
	for name, test := range map[string]struct {
		answer func(n int) (int, string)
		want   []time.Duration
	}{
		"a short retry":           {func(int) (int, string) { return 200, "retry: 1\n\n" }, doubling},
		"no retry":                {func(int) (int, string) { return 200, ": hi\n\n" }, doubling},
		"new ids, but no message": {func(n int) (int, string) { return 200, fmt.Sprintf("id: %d\nretry: 1\ndata: \n\n", n) }, doubling},
		"a long retry":            {func(int) (int, string) { return 200, "retry: 3000\n\n" }, seconds(3, 3, 3, 4, 8, 16, 30, 30)},
		"a retry in one response": {func(n int) (int, string) {
			if n == 0 {
				return 200, "retry: 3000\n\n"
			}
			return 200, "data: \n\n"
		}, seconds(3, 3, 3, 4, 8, 16)},
		"a retry that is too long": {func(int) (int, string) { return 200, "retry: 3600000\n\n" }, seconds(30, 30, 30)},
		"an error":                 {func(int) (int, string) { return 500, "" }, doubling},
		"too many requests":        {func(int) (int, string) { return 429, "" }, doubling},
		"messages":                 {func(int) (int, string) { return 200, "retry: 1\n" + someMessage }, seconds(.5, .5, .5, .5, .5)},
		"a message in between": {func(n int) (int, string) {
			if n == 3 {
				return 200, someMessage
			}
			return 200, "retry: 1\n\n"
		}, seconds(.5, 1, 2, .5, 1, 2, 4)},
	} {
		t.Run("listening: "+name, func(t *testing.T) {
			r := &responder{answer: func(_ *http.Request, n int) (int, string) { return test.answer(n) }}
			onResponder(t, r, func(c *Conn, l *httpLink) {
				c.spawn(l.listen)
				time.Sleep(5 * time.Minute)
			})
			wantPauses(t, r, test.want)
		})
	}
}

// The stream of a call is resumed after the same pauses, for as long as new event ids come.
func TestResumesHavePauses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		message string
		want    []time.Duration
	}{
		"new ids, but no message": {"data: \n\n", seconds(1, 2, 4, 8, 16, 30, 30)},
		"messages":                {someMessage, seconds(.5, .5, .5, .5)},
	} {
		t.Run(name, func(t *testing.T) {
			r := &responder{answer: func(_ *http.Request, n int) (int, string) {
				return 200, fmt.Sprintf("id: e%d\nretry: 1\n%s", n, test.message)
			}}
			onResponder(t, r, func(c *Conn, _ *httpLink) {
				c.Start(&Call{Method: "tools/call", Params: []byte(`{}`), Done: func(json.RawMessage, error) {}})
				time.Sleep(5 * time.Minute)
			})
			wantPauses(t, r, test.want)
		})
	}
}

// wantPauses fails the test unless the first pauses between GETs are those in want.
func wantPauses(t *testing.T, r *responder, want []time.Duration) {
	t.Helper()
	got := r.pauses()
	if first := got[:min(len(got), len(want))]; !slices.Equal(first, want) {
		t.Errorf("got pauses of %v, want %v", first, want)
	}
}

// A stream that ends without an answer is resumed resumeTries times if no new event id comes.
func TestResumesAreCounted(t *testing.T) {
	r := &responder{answer: func(_ *http.Request, n int) (int, string) {
		if n < 0 {
			return 200, "id: 1\n" + someMessage
		}
		return 200, ": nothing\n\n"
	}}
	onResponder(t, r, func(c *Conn, _ *httpLink) {
		_, err := c.Call(context.Background(), "tools/call", []byte(`{}`))
		wantFailure(t, err, transports.CodeExited, transports.Unknown)
	})
	if got := len(r.gets); got != resumeTries {
		t.Errorf("it was resumed %d times, want %d", got, resumeTries)
	}
}
