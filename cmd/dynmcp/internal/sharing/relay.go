package sharing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/hint"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// The first loss of a run is followed by a reconnection at once, each further one by a backoff
// that starts at lossPause and doubles. A connection of steadyTime resets the count; after
// maxLosses the relay ends.
const (
	maxLosses  = 6
	lossPause  = 100 * time.Millisecond
	steadyTime = time.Minute
)

// A relay forwards messages between a host's streams and its run, in order. If the run ends
// before the host does, the relay connects to another one, restores the state of the host, and
// continues with the unsent messages.
//
// It uses three goroutines. One reads from the host until the process ends. For each connection,
// one sends, and the goroutine of run receives.
type relay struct {
	dial func(ctx context.Context) (*link, error)
	log  *slog.Logger

	session *session
	lines   chan []byte // whole lines of the host, closed at its end

	// Owned by the sending goroutine, and by the goroutine of run between two connections.
	unsent []byte // lines of the host
	ended  bool   // the host sends nothing more
}

// run forwards messages until the host has closed its stream and has its answers, the host no
// longer reads, or ctx ends; then it returns nil. It returns an error if no run can serve the
// host.
func (r *relay) run(ctx context.Context, in io.Reader, out io.Writer) error {
	r.lines, r.session = make(chan []byte), newSession()
	done := make(chan struct{})
	defer close(done)
	go r.read(in, done)
	var replay []byte
	for losses := 0; ; {
		l, lost := r.dial(ctx)
		if lost == nil {
			var failed error
			if lost, failed = r.serve(ctx, l, replay, out); failed != nil {
				return nil // the host no longer reads, and knows why
			}
			if time.Since(l.since) >= steadyTime {
				losses = 0
			}
		} else if losses == 0 {
			return lost
		}
		if over := r.isOver() || ctx.Err() != nil; over || losses == maxLosses {
			if _, failed := out.Write(r.session.fail(r.unsent)); failed != nil || over {
				return nil
			}
			return hint.With(fmt.Errorf("the dynmcp that served this host has ended: %w", lost), "restart the server in the host: that starts another one")
		}
		r.log.Warn("the dynmcp that served this host has ended, looking for another", "err", lost)
		if _, failed := out.Write(r.session.lost(r.unsent)); failed != nil {
			return nil
		}
		replay = r.session.replay(r.unsent)
		if losses++; losses > 1 {
			select {
			case <-time.After(lossPause << (losses - 2)):
			case <-ctx.Done():
			}
		}
	}
}

// isOver reports whether the host has ended and everything from it was sent.
func (r *relay) isOver() bool {
	if len(r.unsent) == 0 && !r.ended {
		select {
		case lines, more := <-r.lines:
			r.unsent, r.ended = lines, !more
		default:
		}
	}
	return len(r.unsent) == 0 && r.ended
}

// serve sends replay and then forwards messages until the link ends. lost is the reason for its
// end; failed is the error of the host's stream.
func (r *relay) serve(ctx context.Context, l *link, replay []byte, out io.Writer) (lost, failed error) {
	gone, sent := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(sent)
		if r.send(l.conn, replay, gone) {
			_ = l.conn.CloseWrite()
		} else {
			_ = l.conn.Close()
		}
	}()
	defer func() {
		close(gone)
		l.conn.Close()
		<-sent
	}()
	defer context.AfterFunc(ctx, func() { _ = l.conn.CloseWrite() })()
	return r.receive(l.in, out)
}

// maxLine limits how much of a line of the host is kept. The run refuses longer lines, for which
// it needs only the beginning.
const maxLine = 64 << 20

// read sends the host's lines to r.lines, all lines of one read at once. It ends with the host's
// stream or with the process, because a read cannot be interrupted.
func (r *relay) read(in io.Reader, done <-chan struct{}) {
	defer close(r.lines)
	var begun []byte // an incomplete line
	chunk := make([]byte, 64<<10)
	for {
		n, err := in.Read(chunk)
		text := chunk[:n]
		if len(begun) > maxLine {
			text = bytes.TrimLeftFunc(text, func(r rune) bool { return r != '\n' })
		}
		end := bytes.LastIndexByte(text, '\n') + 1
		if err != nil {
			end = len(text)
		}
		if end > 0 || err != nil && len(begun) > 0 {
			select {
			case r.lines <- append(begun, text[:end]...):
			case <-done:
			}
			begun = nil
		}
		begun = append(begun, text[end:]...)
		if err != nil {
			return
		}
	}
}

// send sends the host's lines to a run, and reports whether all were sent. Unsent lines stay in
// r.unsent.
func (r *relay) send(conn *net.UnixConn, replay []byte, gone <-chan struct{}) (all bool) {
	if len(replay) > 0 {
		if _, err := conn.Write(replay); err != nil {
			return false
		}
	}
	for {
		if len(r.unsent) > 0 {
			if r.unsent = r.session.send(conn, r.unsent); len(r.unsent) > 0 {
				return false
			}
		}
		if r.ended {
			return true
		}
		select {
		case lines, more := <-r.lines:
			r.unsent, r.ended = lines, !more
		case <-gone:
			return false
		}
	}
}

// maxCollected limits the bytes that are collected for one write to the host.
const maxCollected = 64 << 10

// receive forwards the run's messages, with one write for each read. The results are those of
// serve.
func (r *relay) receive(in *wire.Reader, out io.Writer) (lost, failed error) {
	var lines []byte
	flush := func() {
		if len(lines) > 0 && failed == nil {
			_, failed = out.Write(lines)
		}
		lines = lines[:0]
		if cap(lines) > maxCollected {
			lines = nil
		}
	}
	in.Idle = flush
	for {
		m, err := in.Next()
		var fault *wire.Fault
		switch {
		case failed != nil:
			return nil, failed
		case errors.As(err, &fault): // the beginning of a truncated last line
			continue
		case err == nil:
			lines, err = r.session.received(m, lines)
		}
		if err != nil {
			flush()
			return err, failed
		}
		if len(lines) > maxCollected {
			flush()
		}
	}
}
