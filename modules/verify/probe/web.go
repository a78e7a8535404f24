package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
)

// web is a link of one POST a message (MCP 2025-11-25, "Streamable HTTP"). With sse, answers come
// on one stream, which begins with the address to post to (MCP 2024-11-05, "HTTP with SSE").
type web struct {
	peer   *Peer
	client *http.Client
	header http.Header
	url    string
	sse    bool
	to     string             // for POSTs
	ctx    context.Context    // ends with the link
	stop   context.CancelFunc // ends it
	work   sync.WaitGroup

	mu       sync.Mutex
	session  string
	version  string
	bindings map[string][]binding // by tool
}

// reopenPause comes before an event stream that ended is asked for again.
const reopenPause = 500 * time.Millisecond

// Web returns a peer that talks to a server at its URL. transport authorizes the requests; it may be
// nil.
func Web(ctx context.Context, s schema.Server, transport http.RoundTripper, name, version string, observer Observer) (*Peer, error) {
	p := newPeer(name, version, observer)
	l := &web{peer: p, client: &http.Client{Transport: transport, CheckRedirect: stayAtOrigin}, header: http.Header{}, url: s.URL, sse: s.Transport == schema.SSE, to: s.URL}
	l.ctx, l.stop = context.WithCancel(context.WithoutCancel(ctx))
	for name, value := range s.Headers {
		l.header.Set(name, value)
	}
	p.link = l
	if !l.sse {
		return p, nil
	}
	named := make(chan string, 1)
	l.work.Go(func() {
		_, err := l.do(l.ctx, http.MethodGet, nil, nil, "", func(e event) {
			if e.name == "endpoint" {
				named <- e.data
				return
			}
			p.handle([]byte(e.data))
		})
		p.end(fmt.Errorf("the event stream ended: %w", err))
	})
	var err error
	select {
	case path := <-named:
		if l.to, err = resolve(s.URL, path); err == nil {
			return p, nil
		}
	case <-p.ended:
		err = p.err
	case <-ctx.Done():
		err = ctx.Err()
	}
	p.Close()
	return nil, err
}

func resolve(base, path string) (string, error) {
	u, err := url.Parse(base)
	if err != nil {
		return "", err
	}
	if u, err = u.Parse(path); err != nil {
		return "", err
	}
	return u.String(), nil
}

// stayAtOrigin refuses redirects to other origins: headers may hold secrets.
func stayAtOrigin(req *http.Request, via []*http.Request) error {
	if first := via[0].URL; len(via) > 3 || req.URL.Scheme != first.Scheme || req.URL.Host != first.Host || req.Method != via[0].Method {
		return fmt.Errorf("redirected to %s://%s", req.URL.Scheme, req.URL.Host)
	}
	return nil
}

// send posts a message. It returns when a notification is delivered; the answer of a call is read
// on a goroutine of its own.
func (l *web) send(message []byte, call *Call) {
	if call == nil {
		ctx, cancel := context.WithTimeout(l.ctx, discoverTimeout)
		defer cancel()
		_, _ = l.do(ctx, http.MethodPost, message, nil, "", l.receive) // the next request fails as well
		return
	}
	ctx, abort := context.WithCancel(l.ctx)
	call.abort = abort
	l.work.Go(func() {
		defer abort()
		last, err := l.do(ctx, http.MethodPost, message, call, "", l.receive)
		for err == nil && last != "" && l.peer.waits(call) { // the server may end the stream before the answer
			select {
			case <-time.After(reopenPause):
			case <-ctx.Done():
			}
			last, err = l.do(ctx, http.MethodGet, nil, nil, last, l.receive)
		}
		switch {
		case err != nil:
			l.peer.fail(call, err)
		case !l.sse:
			l.peer.fail(call, errors.New("the answer to the POST has no answer of the call"))
		}
	})
}

func (l *web) receive(e event) { l.peer.handle([]byte(e.data)) }

// do sends a request and passes on the messages of its answer. It returns the id of the last event.
func (l *web) do(ctx context.Context, method string, body []byte, call *Call, after string, each func(event)) (last string, err error) {
	address := l.url
	if method == http.MethodPost {
		address = l.to
	}
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	l.setHeader(req, call, after)
	resp, err := l.client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
		l.mu.Lock()
		l.session = id
		l.mu.Unlock()
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case kind == "text/event-stream" && resp.StatusCode < 300:
		return readEvents(resp.Body, each)
	case kind == "application/json":
		text, err := io.ReadAll(resp.Body)
		if err == nil {
			each(event{data: string(text)})
		}
		if err == nil && resp.StatusCode >= 300 {
			err = fmt.Errorf("HTTP %s", resp.Status)
		}
		return "", err
	case resp.StatusCode >= 300:
		return "", fmt.Errorf("HTTP %s", resp.Status)
	}
	return "", nil
}

func (l *web) setHeader(req *http.Request, call *Call, after string) {
	req.Header = maps.Clone(l.header)
	req.Header.Set("Accept", "application/json, text/event-stream")
	if req.Method == http.MethodGet {
		req.Header.Set("Accept", "text/event-stream")
	} else {
		req.Header.Set("Content-Type", "application/json")
	}
	if after != "" {
		req.Header.Set("Last-Event-ID", after)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.session != "" {
		req.Header.Set("Mcp-Session-Id", l.session)
	}
	if l.version != "" {
		req.Header.Set("Mcp-Protocol-Version", l.version)
	}
	if call != nil && l.peer.meta != nil {
		req.Header.Set("Mcp-Protocol-Version", transports.StatelessVersion)
		setSubject(req.Header, call, l.bindings)
	}
}

func (l *web) cancelled(call *Call) bool {
	if l.peer.meta != nil { // MCP 2026-07-28: the end of the request is its cancellation
		call.abort()
		return true
	}
	return false
}

func (l *web) opened(version string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.version = version
}

// listen reads what the server sends on no request's stream, if it has such a stream.
func (l *web) listen() {
	if l.sse {
		return
	}
	l.work.Go(func() {
		last := ""
		for l.ctx.Err() == nil {
			id, err := l.do(l.ctx, http.MethodGet, nil, nil, last, l.receive)
			if err != nil {
				return
			}
			last = id
			select {
			case <-time.After(reopenPause):
			case <-l.ctx.Done():
			}
		}
	})
}

func (l *web) listed(tools []json.RawMessage) {
	bindings := map[string][]binding{}
	for _, tool := range tools {
		name, _ := wire.Text(wire.Get(tool, "name"))
		bindings[name] = bindingsOf(wire.Get(tool, "inputSchema"))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bindings = bindings
}

func (*web) failure(err error) error { return err }

// close ends the session, if the server has one.
func (l *web) close() {
	l.mu.Lock()
	session := l.session
	l.mu.Unlock()
	if session != "" {
		ctx, cancel := context.WithTimeout(l.ctx, reopenPause)
		_, _ = l.do(ctx, http.MethodDelete, nil, nil, "", l.receive)
		cancel()
	}
	l.stop()
	l.work.Wait()
	l.client.CloseIdleConnections()
}
