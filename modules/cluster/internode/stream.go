package internode

import (
	"bytes"
	"io"
	"net"
	"sync"
	"time"
)

// A stream is one end of the lines of a server. An end that has nothing to write sends an empty line
// now and then, so that the other knows that it is neither dead nor stopped nor cut off.
type stream struct {
	conn    net.Conn
	over    chan struct{} // closed by Close
	beating sync.WaitGroup
	once    sync.Once // of Close
	within  bool      // a line: the rest of it was not read yet

	mu    sync.Mutex // held while conn is written to
	whole bool       // the last line has its end
	quiet bool       // nothing was written since the last tick
}

// silence is the time without anything from the other end, after which it is lost.
const silence = pingAfter + pingTimeout

// newStream returns the end at conn.
func newStream(conn net.Conn) *stream {
	s := &stream{conn: conn, whole: true, over: make(chan struct{})}
	s.beating.Go(s.beat)
	return s
}

// beat sends empty lines until Close, two in the time of silence at least.
func (s *stream) beat() {
	ticker := time.NewTicker(silence / 5)
	defer ticker.Stop()
	for {
		select {
		case <-s.over:
			return
		case <-ticker.C:
		}
		if s.mu.TryLock() { // otherwise the other end is about to get more than an empty line
			if s.quiet && s.whole {
				_, _ = s.conn.Write([]byte("\n")) // the reader meets the error
			}
			s.quiet = !s.quiet
			s.mu.Unlock()
		}
	}
}

// Read skips the empty lines.
func (s *stream) Read(p []byte) (n int, err error) {
	for n == 0 && err == nil {
		_ = s.conn.SetReadDeadline(time.Now().Add(silence))
		select {
		case <-s.over:
			return 0, net.ErrClosed
		default:
		}
		n, err = s.conn.Read(p)
		if !s.within {
			n = copy(p, bytes.TrimLeft(p[:n], "\n"))
		}
		if n > 0 {
			s.within = p[n-1] != '\n'
		}
	}
	return n, err
}

func (s *stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.conn.Write(p)
	if n > 0 {
		s.whole, s.quiet = p[n-1] == '\n', false
	}
	return n, err
}

// Close waits for a write in progress, and for the other end to close too, but a second at most. To
// close earlier would reset the connection, and the other end might lose the last lines.
func (s *stream) Close() error {
	s.once.Do(func() {
		close(s.over)
		_ = s.conn.SetDeadline(time.Now().Add(time.Second))
		s.beating.Wait()
		if conn, ok := s.conn.(interface{ CloseWrite() error }); ok && conn.CloseWrite() == nil {
			_, _ = io.Copy(io.Discard, s.conn)
		}
		_ = s.conn.Close()
	})
	return nil
}
