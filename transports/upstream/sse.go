package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// An sseLink reaches an upstream that answers on one event stream and is
// posted to at an address that the stream names first. MCP 2024-11-05, "HTTP
// with SSE".
type sseLink struct {
	httpLink
	ready    chan struct{} // closed when endpoint is known
	endpoint string
}

func (c *Conn) openSSE() {
	link := &sseLink{httpLink: httpLink{conn: c, url: c.server.URL, client: newHTTPClient(c.opts)}, ready: make(chan struct{})}
	c.connect = link.connect
	c.send = link.send
	c.begin = func(parts ...[]byte) error { return link.postWithin(headerWait, bytes.Join(parts, nil)) }
	c.stop = link.client.CloseIdleConnections
}

// connect opens the stream, which lives as long as the connection, and waits
// for the address.
func (l *sseLink) connect(ctx context.Context) error {
	failed := make(chan error, 1)
	l.conn.spawn(func() {
		err := l.stream()
		failed <- err
		l.conn.lose(err)
	})
	select {
	case <-l.ready:
		return nil
	case err := <-failed:
		return l.conn.StartFailure("event stream", err)
	case <-ctx.Done():
		return l.conn.StartFailure("event stream", ctx.Err())
	}
}

// stream reads events until the stream ends. Those it does not know, such as
// pings, are skipped.
func (l *sseLink) stream() error {
	resp, err := l.do(l.conn.ctx, http.MethodGet, l.url, nil, nil)
	if err != nil {
		return l.unreachable(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return l.status(resp, nil)
	}
	var refused error
	err = readEvents(resp.Body.(*answerBody), l.conn.server.MaxMessageBytes, func(e event) {
		switch {
		case e.name == "endpoint" && l.endpoint == "" && refused == nil:
			if refused = l.meet(string(e.data)); refused != nil {
				resp.Body.Close()
			}
		case e.name == "" || e.name == "message":
			l.take(e.data, nil)
		}
	})
	switch {
	case refused != nil:
		return refused
	case err != nil:
		return fmt.Errorf("the event stream broke: %w", err)
	}
	return errors.New("the event stream ended")
}

// meet takes the address to post to, which must be of the same origin: headers
// may hold secrets.
func (l *sseLink) meet(address string) error {
	base, err := url.Parse(l.url)
	if err != nil {
		return err
	}
	target, err := base.Parse(address)
	if err != nil {
		return fmt.Errorf("the address to post to cannot be read: %w", err)
	}
	if origin(target) != origin(base) {
		return fmt.Errorf("the address to post to is of another origin, %s", origin(target))
	}
	l.endpoint = target.String()
	close(l.ready)
	return nil
}

// send posts a message; a request that is refused fails its call.
func (l *sseLink) send(call *Call, parts ...[]byte) error {
	body, id := bytes.Join(parts, nil), int64(0)
	if call != nil {
		id = call.id // Start is still in here, so it is this connection's
	}
	sent := l.conn.spawn(func() {
		if call == nil {
			if err := l.postWithin(headerWait, body); err != nil {
				l.conn.log.Debug("not delivered", "err", err)
			}
			return
		}
		// Some answer the POST only when the call has run.
		if err := l.post(l.conn.ctx, l.endpoint, body); err != nil {
			l.conn.finish(id, nil, err)
		}
	})
	if !sent {
		return errClosed
	}
	return nil
}

func (l *sseLink) postWithin(limit time.Duration, body []byte) error {
	ctx, cancel := context.WithTimeout(l.conn.ctx, limit)
	defer cancel()
	return l.post(ctx, l.endpoint, body)
}
