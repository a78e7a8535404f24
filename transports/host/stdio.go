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
	stdioMaxQueued  = 16 << 20           // queue for the host from which its input is not read
	stdioMaxUnread  = 4 * stdioMaxQueued // queue for the host from which senders wait
	stdioStall      = 60 * time.Second   // how long the host may read nothing

	// MaxLatest is the queue for a host, on any edge, from which no more [Latest] is sent.
	MaxLatest = 64 << 10

	connMaxUnread = 2 * stdioMaxUnread // queue at which one of many hosts is disconnected
)

// Stdio is the [Edge] of a host on a pair of streams, one message a line. While a host does
// not read, its input is not read either, messages of upstreams wait with the upstreams,
// and after a minute the host counts as gone.
//
// One of many hosts, on a connection, delays nobody: upstreams are read whether it reads or
// not, and when its queue is far too long, its session ends.
type Stdio struct {
	in   *wire.Reader
	out  *wire.Writer
	conn io.Closer // of one of many hosts, nil on streams
}

// NewStdio returns the edge of the host that writes to in and reads out. cork holds back
// messages that are sent while the messages of one read are handled; nil holds nothing
// back. Serve must be called.
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

// Drop implements Edge. It does nothing: no response is open.
func (e *Stdio) Drop(*Request) {}

func (e *Stdio) AwaitRoom() {
	if e.conn == nil {
		e.out.WaitBelow(stdioMaxUnread)
	}
}

func (e *Stdio) Gone() <-chan struct{} { return e.out.Done() }

// Serve runs the session, which must be on this edge, until the host closes its end or stops
// reading ours, or ctx ends. Requests in flight at the end of the input are answered first,
// within a time limit. The goroutine that reads the input ends with the input, or before Serve
// returns if it reads a connection.
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

// read passes the host's messages to the session until there are no more.
func (e *Stdio) read(s *Session) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("internal error: %v", p)
		}
	}()
	defer e.in.Uncork()
	e.in.Idle = func() {
		s.AwaitReceive()
		e.out.WaitBelow(stdioMaxQueued)
	}
	for n := 0; ; n++ {
		m, err := e.in.Next()
		if err == nil {
			// A tools/call is mostly forwarded at once, and may be large. Other messages may be
			// kept by their handlers.
			if m.Method != "tools/call" || m.ID == nil {
				m = m.Clone()
			}
			s.Receive(m, nil)
			// Immediate answers may be large as well. Waiting takes a lock that upstreams' readers
			// need, so it is not called for every message.
			if n%8 == 0 && e.out.Waiting() > stdioMaxUnread {
				e.in.Uncork()
				e.out.WaitBelow(stdioMaxUnread)
			}
			continue
		}
		var fault *wire.Fault // declared here, or it would be allocated for every message
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
