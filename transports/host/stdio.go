package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/dynmcp/dynmcp/internal/wire"
)

// The limits of a host on stdio.
const (
	stdioMaxMessage = 64 << 20           // the upstreams' own limits are lower
	stdioMaxQueued  = 16 << 20           // what may wait for the host before we stop reading it
	stdioMaxUnread  = 4 * stdioMaxQueued // what may wait before those wait who bring more
	stdioStall      = 60 * time.Second   // how long the host may leave its end unread

	// MaxLatest is what may wait for a host, on any edge, before more of [Latest] does not
	// go out.
	MaxLatest = 64 << 10

	connMaxUnread = 2 * stdioMaxUnread // what may wait for one of many hosts before it is given up
)

// Stdio is the [Edge] of a host on a pair of streams, one message a line. A host
// that does not read is not read any more; what upstreams bring then waits
// with them, and after a minute the host counts as gone.
//
// One of many hosts, on a connection, makes nobody wait: upstreams are read whether
// it reads or not, and when far too much waits for it, its session ends.
type Stdio struct {
	in   *wire.Reader
	out  *wire.Writer
	conn io.Closer // of one of many hosts, nil on streams
}

// NewStdio returns the edge of the host that writes to in and reads out. cork
// holds back what is sent while what one read brought is handled; nil holds
// nothing back. Serve must be called.
func NewStdio(in io.Reader, out io.Writer, cork *wire.Cork) *Stdio {
	return newStdio(in, out, cork, stdioMaxMessage)
}

func newStdio(in io.Reader, out io.Writer, cork *wire.Cork, maxMessage int) *Stdio {
	e := &Stdio{in: wire.NewReader(in, maxMessage), out: wire.NewWriter(out, stdioStall)}
	e.in.Cork, e.in.Back, e.out.Cork = cork, e.out, cork
	return e
}

// NewConn returns the edge of one of many hosts, on a connection, which Serve closes.
// cork is as for NewStdio.
func NewConn(conn io.ReadWriteCloser, cork *wire.Cork) *Stdio {
	e := NewStdio(conn, conn, cork)
	e.conn = conn
	return e
}

// Write implements Edge.
func (e *Stdio) Write(_ *Request, class Class, parts ...[]byte) error {
	limit := 0
	if e.conn != nil {
		limit = connMaxUnread
	}
	switch class {
	case Ordinary:
		limit = stdioMaxUnread
	case Expendable:
		limit = stdioMaxQueued
	case Latest:
		limit = MaxLatest
	}
	err := e.out.SendWithin(limit, parts...)
	if limit == connMaxUnread && errors.Is(err, wire.ErrFull) {
		err = fmt.Errorf("%w, and %d MB wait for it", wire.ErrStalled, connMaxUnread>>20)
		e.out.Break(err)
	}
	return err
}

// Drop implements Edge: on a stream nothing waits for an answer.
func (e *Stdio) Drop(*Request) {}

// AwaitRoom implements Edge.
func (e *Stdio) AwaitRoom() {
	if e.conn == nil {
		e.out.WaitBelow(stdioMaxUnread)
	}
}

// Gone implements Edge.
func (e *Stdio) Gone() <-chan struct{} { return e.out.Done() }

// Serve runs the session, which must be on this edge, until the host closes its
// end or stops reading ours, or ctx ends. What is in flight at the end of the
// input is answered first, within reason. The goroutine that reads the input ends
// with the input, that of a connection before Serve returns.
func (e *Stdio) Serve(ctx context.Context, s *Session) error {
	read := make(chan error, 1)
	reading := make(chan struct{})
	if e.conn != nil {
		defer func() { e.conn.Close(); <-reading }()
	}
	go func() {
		defer close(reading)
		read <- e.read(s)
	}()
	var err error
	flushTimeout := time.Duration(0)
	select {
	case err = <-read:
	case <-e.out.Done():
		err = fmt.Errorf("the host does not read: %w", e.out.Err())
	case <-ctx.Done():
		flushTimeout = drainTimeout
	}
	s.End(ctx)
	if flushTimeout > 0 { // otherwise as long as the host takes anything
		late := time.AfterFunc(flushTimeout, func() { e.out.Break(wire.ErrStalled) })
		defer late.Stop()
	}
	return errors.Join(err, e.out.Close())
}

// read hands the host's messages to the session until there are no more.
func (e *Stdio) read(s *Session) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("internal error: %v", p)
		}
	}()
	defer e.in.Uncork()
	e.in.Idle = func() {
		s.AwaitRoom()
		e.out.WaitBelow(stdioMaxQueued)
	}
	for n := 0; ; n++ {
		m, err := e.in.Next()
		if err == nil {
			// What is called for is mostly passed on at once, and may be large. All else
			// is kept by some.
			if m.Method != "tools/call" || m.ID == nil {
				m = m.Own()
			}
			s.Receive(m, nil)
			// What is answered at once may be much as well. Asking takes a lock that
			// upstreams' readers want: not for every message.
			if n%8 == 0 && e.out.Waiting() > stdioMaxUnread {
				e.in.Uncork()
				e.out.WaitBelow(stdioMaxUnread)
			}
			continue
		}
		var fault *wire.Fault // in here, or it would be allocated for every message
		switch {
		case errors.As(err, &fault):
			s.ReceiveFault(fault, m)
		case errors.Is(err, io.EOF):
			return nil
		default:
			return err
		}
	}
}
