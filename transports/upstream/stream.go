package upstream

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/dynmcp/dynmcp/schema"
)

// A streamLink talks to an upstream over an existing stream.
type streamLink struct {
	lineLink
	noProcess
	stream io.Closer
}

// OpenStream returns a connection to an upstream over an existing stream: a pipe within the
// process, or a socket. Closing the connection closes the stream. As with Open, Handshake
// comes next.
func OpenStream(server schema.Server, stream io.ReadWriteCloser, opts ConnOptions) *Conn {
	c := newConn(server, opts)
	openStream(c, stream)
	return c
}

func openStream(c *Conn, stream io.ReadWriteCloser) {
	ended := func(err error) {
		if c.onReplica {
			err = replicaGone(err)
		}
		c.end(err)
	}
	l := &streamLink{lineLink: newLineLink(c, stream), stream: stream}
	c.link = l
	read := make(chan struct{})
	c.spawn(func() {
		defer close(read)
		c.readLines(stream, l.writer)
		ended(errors.New("the stream ended"))
		stream.Close()
	})
	c.spawn(func() {
		<-l.writer.Done()
		if err := l.writer.Err(); err != nil {
			// Its last messages, such as which calls it did not accept, are read first.
			waitAtMost(read, exitGrace)
			ended(fmt.Errorf("writing to it: %w", withoutPath(err)))
		}
	})
}

// close closes the stream when queued messages were written, or after bestEffort.
func (l *streamLink) close() {
	late := time.AfterFunc(l.conn.opts.timing.bestEffort, func() { l.stream.Close() })
	l.writer.Close()
	late.Stop()
	l.stream.Close()
}
