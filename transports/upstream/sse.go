package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// An sseLink posts messages to an address that the upstream sends at the beginning of its one
// event stream, which carries all answers. MCP 2024-11-05, "HTTP with SSE".
type sseLink struct {
	*httpLink
	ready chan struct{} // closed when postURL is known
}

// connect opens the stream, which lives as long as the connection, and waits
// for the address.
func (l *sseLink) connect(ctx context.Context) error {
	failed := make(chan error, 1)
	l.conn.spawn(func() {
		err := l.stream()
		failed <- err
		l.conn.end(err)
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

// stream reads events until the stream ends. Unknown ones, such as pings, are ignored.
func (l *sseLink) stream() error {
	resp, err := l.do(l.conn.ctx, http.MethodGet, l.url, nil, nil)
	if err != nil {
		return l.requestFailure(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return l.statusFailure(resp, nil)
	}
	var refused error
	known := false
	err = readEvents(resp.Body.(*answerBody), l.conn.server.MaxMessageBytes, func(e streamEvent) {
		switch {
		case e.name == "endpoint" && !known && refused == nil:
			if refused = l.setEndpoint(string(e.data)); refused != nil {
				resp.Body.Close()
				return
			}
			known = true
			close(l.ready)
		case e.name == "" || e.name == "message":
			l.receive(e.data, nil)
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

// setEndpoint sets the address to post to, which must have the same origin: headers may hold
// secrets.
func (l *sseLink) setEndpoint(address string) error {
	base, err := url.Parse(l.url)
	if err != nil {
		return err
	}
	target, err := base.Parse(address)
	if err != nil {
		return fmt.Errorf("the address to post to cannot be read: %w", err)
	}
	if origin(target) != origin(base) {
		return fmt.Errorf("the address to post to has another origin, %s", origin(target))
	}
	l.postURL = target.String()
	return nil
}

// sendRequest posts a request. If the POST fails, the call does.
func (l *sseLink) sendRequest(call *Call, id int64) error {
	body := call.body(id)
	sent := l.conn.spawn(func() {
		// No deadline: some servers answer the POST only when the call has run.
		if err := l.post(l.conn.ctx, body); err != nil {
			l.conn.calls.fail(id, err)
		}
	})
	if !sent {
		return errClosed
	}
	return nil
}

func (l *sseLink) sendInitialized(message ...[]byte) error {
	return l.deliver(bytes.Join(message, nil))
}

func (l *sseLink) close() {
	l.posting.close()
	l.release()
}
