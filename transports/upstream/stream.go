package upstream

import (
	"errors"
	"fmt"
	"io"
	"time"

	"dynmcp/internal/wire"
	"dynmcp/schema"
)

// OpenStream returns a connection to an upstream that is reached over a stream
// which is there already: a pipe to the same process, a socket. Closing the
// connection closes the stream. As with Open, Handshake comes next.
func OpenStream(server schema.Server, stream io.ReadWriteCloser, opts Options) *Conn {
	c := newConn(server, opts)
	writer := wire.NewWriter(stream, 0)
	c.sendLines(writer)
	c.stop = func() {
		// What is queued goes out first, if the other side reads.
		cut := time.AfterFunc(farewell, func() { stream.Close() })
		writer.Close()
		cut.Stop()
		stream.Close()
	}
	c.spawn(func() {
		c.readLines(stream)
		c.lose(errors.New("the stream ended"))
		stream.Close()
	})
	c.spawn(func() {
		<-writer.Done()
		if err := writer.Err(); err != nil {
			c.lose(fmt.Errorf("writing to it: %w", withoutPath(err)))
		}
	})
	return c
}
