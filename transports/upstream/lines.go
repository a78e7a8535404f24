package upstream

import (
	"errors"
	"io"
	"io/fs"

	"github.com/dynmcp/dynmcp/internal/wire"
)

// maxQueued is how many bytes may be queued for one upstream. More are refused; queued ones are
// kept. Requests may not use the last MB, so that cancellations fit.
const (
	maxQueued         = 128 << 20
	maxQueuedRequests = maxQueued - 1<<20
)

// A lineLink is the part of a link that carries messages as lines.
type lineLink struct {
	conn   *Conn
	writer *wire.Writer
}

// newLineLink returns a link that writes to w. A write may block for any time: a server that
// does one thing at a time does not read meanwhile.
func newLineLink(c *Conn, w io.Writer) lineLink {
	writer := wire.NewWriter(w, 0)
	writer.Cork = c.opts.Cork
	c.copies = true
	return lineLink{c, writer}
}

// sendRequest writes the pieces of a request without joining them.
func (l *lineLink) sendRequest(call *Call, id int64) error {
	params, n := call.pieces(id)
	return l.writer.SendRequest(maxQueuedRequests, id, call.Method, params[:n]...)
}

func (l *lineLink) send(message ...[]byte) error {
	return l.writer.SendWithin(maxQueued, message...)
}

func (l *lineLink) sendInitialized(message ...[]byte) error { return l.send(message...) }

// readLines handles the output of the upstream until it ends. back is the writer to it.
func (c *Conn) readLines(stream io.Reader, back *wire.Writer) {
	r := wire.NewReader(activityReader{stream, &c.health.activity}, c.server.MaxMessageBytes)
	r.Cork, r.Back, r.Idle, r.MaxDepth = c.opts.Cork, back, c.opts.Throttle, maxMessageDepth
	defer r.Uncork()
	for {
		m, err := r.Next()
		if err == nil {
			if m.Method != "" || m.Raw[0] == '[' {
				m = m.Clone() // a result is forwarded at once, and may be large; handlers may keep other messages
			}
			c.receive(m, nil)
			continue
		}
		var fault *wire.Fault
		if !errors.As(err, &fault) {
			return
		}
		c.handleFault(fault)
	}
}

// withoutPath returns err without the name of a file, which is "|1" for a pipe of ours.
func withoutPath(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	return err
}
