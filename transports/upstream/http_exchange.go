package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
)

// resumeTries is how many times in a row a stream that ended before its answer is resumed
// without any new event id.
const resumeTries = 3

// An exchange is the POST of a call and its answer.
type exchange struct {
	link   *httpLink
	call   *Call
	id     int64
	body   []byte
	ctx    context.Context
	cancel context.CancelFunc
	drain  sync.Once // starts the time that a stream may stay open after the answer
	stream eventStream
}

// post posts the request and reads messages until its answer arrives.
func (x *exchange) post() error {
	resp, err := x.link.do(x.ctx, http.MethodPost, x.link.postURL, x.body, x.call)
	if err != nil {
		return x.link.requestFailure(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return x.link.statusFailure(resp, x)
	}
	if id := resp.Header.Get("Mcp-Session-Id"); id != "" && x.call.Method == "initialize" {
		x.link.session.Store(&id)
	}
	switch mediaType(resp) {
	case "application/json":
		return x.readBody(resp)
	case "text/event-stream":
		return x.readStreams(resp)
	}
	c := x.link.conn
	return c.newFailure(transports.CodeProtocol, transports.Unknown, fmt.Errorf("the answer is %q, neither JSON nor an event stream: %s",
		resp.Header.Get("Content-Type"), c.excerpt(x.link.readExcerpt(resp), 120)))
}

func mediaType(resp *http.Response) string {
	header := resp.Header.Get("Content-Type")
	if header == "application/json" { // nearly always, and parsing takes as long as everything else here
		return header
	}
	kind, _, _ := mime.ParseMediaType(header)
	return kind
}

// trustedLength is how much memory is allocated for an announced length in advance.
const trustedLength = 4 << 20

func (x *exchange) readBody(resp *http.Response) error {
	c := x.link.conn
	c.opts.Throttle()
	limit := c.server.MaxMessageBytes
	var body bytes.Buffer
	body.Grow(int(min(max(resp.ContentLength, 0), int64(limit), trustedLength)) + bytes.MinRead) // with room to detect the end
	resp.Body.(*answerBody).readFor(x.call)
	_, err := body.ReadFrom(io.LimitReader(resp.Body, int64(limit)+1))
	text := body.Bytes()
	switch {
	case err != nil:
		return x.readFailure(err)
	case len(text) > limit:
		return x.readFailure(fmt.Errorf("an answer of more than %d bytes is %w", limit, errTooLarge))
	}
	text = wire.JoinLines(withoutBOM(text))
	m, err := parseAny(text)
	switch {
	case errors.Is(err, wire.ErrTooDeep):
		return c.newFailure(transports.CodeProtocol, transports.Executed, unreadable(err))
	case err != nil:
		return c.newFailure(transports.CodeProtocol, transports.Unknown, fmt.Errorf("%w: %s", unreadable(err), c.excerpt(text, 120)))
	}
	c.receive(m, x.call)
	if !x.inFlight() { // answered: the excerpt below would cost a search for secrets
		return nil
	}
	return c.newFailure(transports.CodeProtocol, transports.Unknown, fmt.Errorf("the answer is not in the response: %s", c.excerpt(text, 120)))
}

// withoutBOM returns a body without a byte order mark and surrounding space. RFC 8259, 8.1,
// forbids the mark and lets parsers ignore it.
func withoutBOM(body []byte) []byte {
	return bytes.TrimSpace(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")))
}

// readStreams reads the event stream of the call. If it ends before the answer, it requests
// the events after the last one that had an id (MCP 2025-11-25, "Resumability and
// Redelivery").
func (x *exchange) readStreams(resp *http.Response) error {
	err := x.readStream(resp)
	for tries := 0; x.inFlight() && x.stream.last != "" && !errors.Is(err, errTooLarge) && !errors.Is(err, errNoRoom) && tries < resumeTries; tries++ {
		before := x.stream.last
		if !x.stream.wait(x.ctx, x.link.conn.opts.timing.reopen) {
			return x.ctx.Err()
		}
		if err = x.resume(); x.stream.last != before {
			tries = 0
		}
	}
	if err == nil {
		err = errors.New("the response ended without the answer")
	}
	return x.readFailure(err)
}

func (x *exchange) resume() error {
	resp, err := x.link.listenFrom(x.ctx, x.stream.last)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK || mediaType(resp) != "text/event-stream" {
		return fmt.Errorf("the response ended without the answer and cannot be resumed: HTTP status %s", resp.Status)
	}
	return x.readStream(resp)
}

func (x *exchange) readStream(resp *http.Response) error {
	return x.stream.read(x.link, resp, x.call, func() {
		if !x.inFlight() {
			x.drain.Do(func() { time.AfterFunc(x.link.conn.opts.timing.bestEffort, x.cancel) })
		}
	})
}

// inFlight reports whether the call still waits for its answer.
func (x *exchange) inFlight() bool { return x.link.conn.calls.with(x.id, x.call, nil) }

// readFailure returns the failure of an answer that could not be read.
func (x *exchange) readFailure(err error) error {
	switch {
	case errors.Is(err, errTooLarge):
		return x.link.conn.newFailure(transports.CodeTooLarge, transports.Executed, err)
	case errors.Is(err, errNoRoom):
		return x.link.conn.newFailure(transports.CodeOverloaded, transports.Unknown, fmt.Errorf("the answer is %w", err))
	case errors.Is(err, errStalled): // the interrupted message may not be the answer
		return x.link.conn.newFailure(transports.CodeUnreachable, transports.Unknown, err)
	}
	return x.link.conn.newFailure(transports.CodeExited, transports.Unknown, fmt.Errorf("reading the answer: %w", err))
}
