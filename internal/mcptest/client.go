package mcptest

import (
	"context"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// A Client is a streamable HTTP client that shows tests every byte. Its requests time out with the
// watchdog.
type Client struct {
	URL     string
	Session string      // sent as Mcp-Session-Id; Initialize sets it
	Header  http.Header // sent with every request

	t    testing.TB
	http *http.Client

	mu     sync.Mutex
	nextID int
}

// NewClient returns a client for the endpoint at url. It follows no redirects.
func NewClient(t testing.TB, url string) *Client {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &Client{URL: url, Header: http.Header{}, t: t, http: &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// A Reply is the response to one HTTP request.
type Reply struct {
	Status   int
	Header   http.Header
	Body     string
	Messages []Message // of the body, as JSON or as events
	Err      error     // why the body, or everything, is missing
}

// Last returns the last message, usually the answer.
func (r Reply) Last() Message {
	if len(r.Messages) == 0 {
		return Message{}
	}
	return r.Messages[len(r.Messages)-1]
}

func (r *Reply) add(e Event) {
	if e.Name == "message" {
		r.Messages = append(r.Messages, Parse(e.Data))
	}
}

// Post sends a body verbatim and reads the whole reply.
func (c *Client) Post(body string) Reply { return c.Do(context.Background(), http.MethodPost, body) }

// Do sends a request and reads the whole reply.
func (c *Client) Do(ctx context.Context, method, body string) Reply {
	ctx, cancel := context.WithTimeout(ctx, watchdog)
	defer cancel()
	resp, err := c.send(ctx, method, body)
	if err != nil {
		return Reply{Err: err}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	r := Reply{Status: resp.StatusCode, Header: resp.Header, Body: string(text), Err: err}
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind == "text/event-stream" {
		readEvents(strings.NewReader(string(text)), r.add)
	} else if len(text) > 0 {
		r.Messages = []Message{Parse(string(text))}
	}
	return r
}

func (c *Client) send(ctx context.Context, method, body string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.URL, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if c.Session != "" {
		req.Header.Set("Mcp-Session-Id", c.Session)
	}
	maps.Copy(req.Header, c.Header)
	return c.http.Do(req)
}

// Call sends a request and returns its answer. Without an answer the test fails.
func (c *Client) Call(method string, params any) Message {
	c.t.Helper()
	c.mu.Lock()
	c.nextID++
	id := strconv.Itoa(c.nextID)
	c.mu.Unlock()
	r := c.Post(envelope(id, method, params))
	if m := r.Last(); m.IsAnswer() {
		return m
	}
	c.t.Fatalf("%s: status %d, %v, body %.2000q", method, r.Status, r.Err, r.Body)
	return Message{}
}

// Tool calls a tool. Without arguments (nil) the request has none.
func (c *Client) Tool(name string, arguments any) Message {
	c.t.Helper()
	return c.Call("tools/call", ToolParams(name, arguments))
}

// Initialize performs the handshake, stores the session id and returns the answer.
func (c *Client) Initialize(version string, capabilities any) Message {
	c.t.Helper()
	r := c.Post(envelope("0", "initialize", initializeParams(version, capabilities)))
	if r.Last().Result == nil {
		c.t.Fatalf("initialize: status %d, %v, body %.2000q", r.Status, r.Err, r.Body)
	}
	c.Session = r.Header.Get("Mcp-Session-Id")
	c.Header.Set("Mcp-Protocol-Version", version)
	if r := c.Post(envelope("", "notifications/initialized", nil)); r.Status != http.StatusAccepted {
		c.t.Fatalf("initialized: status %d, body %.2000q", r.Status, r.Body)
	}
	return r.Last()
}

// Listen opens the GET stream and returns its messages, until stop.
func (c *Client) Listen() (messages <-chan Message, stop func()) {
	c.t.Helper()
	return c.Stream(http.MethodGet, "")
}

// Stream sends a request and returns the messages of its event stream. The channel is closed by stop
// and at the end of the stream.
func (c *Client) Stream(method, body string) (messages <-chan Message, stop func()) {
	c.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	resp, err := c.send(ctx, method, body)
	if err != nil || resp.StatusCode != http.StatusOK {
		cancel()
		c.t.Fatalf("%s: %v", method, describeResponse(resp, err))
	}
	out, done := make(chan Message), make(chan struct{})
	go func() {
		defer close(done)
		defer close(out)
		defer resp.Body.Close()
		readEvents(resp.Body, func(e Event) {
			if e.Name != "message" {
				return
			}
			select {
			case out <- Parse(e.Data):
			case <-ctx.Done():
			}
		})
	}()
	stop = func() { cancel(); <-done }
	c.t.Cleanup(stop)
	return out, stop
}

func describeResponse(resp *http.Response, err error) string {
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	return fmt.Sprintf("status %d", resp.StatusCode)
}
