package gateway

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/dynmcp/dynmcp/internal/membudget"
)

// A response is an HTTP response with an event stream (HTML, "Server-sent events").
type response struct {
	w       http.ResponseWriter
	control *http.ResponseController
	slow    func()        // called when the host has read nothing for too long; may be nil
	pings   func() string // returns a heartbeat event; nil means that a comment is sent
	primed  bool          // the first event has an id and a retry time only (MCP 2025-11-25, "Transports")
}

func eventStream(w http.ResponseWriter) *response {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no")
	return &response{w: w, control: http.NewResponseController(w)}
}

// write writes text. It fails if the host reads nothing for too long.
func (e *response) write(text ...[]byte) error {
	for _, t := range text {
		_ = e.control.SetWriteDeadline(time.Now().Add(stall)) // without deadlines Write blocks
		if _, err := e.w.Write(t); err != nil {
			return e.failed(err)
		}
	}
	return nil
}

// writeNow writes text and flushes it.
func (e *response) writeNow(text string) error {
	if err := e.write([]byte(text)); err != nil {
		return err
	}
	return e.failed(e.control.Flush())
}

// failed calls slow if err shows that the host does not read. It returns err.
func (e *response) failed(err error) error {
	if e.slow != nil && errors.Is(err, os.ErrDeadlineExceeded) {
		e.slow()
	}
	return err
}

// serve writes the events of a stream until the stream ends, another response carries it, ctx
// ends because the host is gone, or the session is over. carrier and before are from carry.
// serve reports whether all events were written.
func (e *response) serve(ctx context.Context, st *stream, carrier int, before int64, over <-chan struct{}) bool {
	start := ""
	if e.primed {
		start = "id: " + eventID(st.number, before) + "\nretry: 1000\ndata: \n\n" // milliseconds
	}
	if e.writeNow(start) != nil {
		return false
	}
	c := connFrom(ctx)
	defer st.readBy(c)()
	writing := st.writing(c)
	defer writing.Set(0)
	ticker := time.NewTicker(pingEvery)
	defer ticker.Stop()
	for {
		events, n, gone, goesOn := st.take(carrier)
		membudget.Shed(writing.Set(gone))
		for i, event := range events {
			if e.event(st, n+int64(i), event) != nil {
				return false
			}
		}
		if len(events) > 0 && e.failed(e.control.Flush()) != nil {
			return false
		}
		writing.Set(0)
		if !goesOn {
			return st.isDone()
		}
		select {
		case <-st.wake:
		case <-ticker.C:
			ping := ": \n\n"
			if e.pings != nil {
				ping = e.pings()
			}
			if e.writeNow(ping) != nil {
				return false
			}
		case <-ctx.Done():
			return false
		case <-over:
			over = nil // the remaining events are written first
			st.finish()
		}
	}
}

func sizeOf(texts [][]byte) (n int) {
	for _, t := range texts {
		n += len(t)
	}
	return n
}

func (e *response) event(st *stream, n int64, data []byte) error {
	head := "event: message\ndata: "
	if st.ids {
		head = "id: " + eventID(st.number, n) + "\n" + head
	}
	return e.write([]byte(head), data, []byte("\n\n"))
}

func eventID(stream, event int64) string {
	return strconv.FormatInt(stream, 10) + "-" + strconv.FormatInt(event, 10)
}
