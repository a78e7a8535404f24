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

// A run that ends is replaced at once, and after a pause if the one before did not live
// for long: each pause is twice as long as the last. After maxLosses in a row the relay ends.
const (
	maxLosses  = 6
	lossPause  = 100 * time.Millisecond
	steadyTime = time.Minute
)

// A relay passes messages between a host's streams and the run that serves it, as they
// come. If the run ends before the host does, the relay connects to another one, sends it
// what it has to know of the host, and goes on with what was not sent.
//
// Three goroutines work for it. One reads the host, as long as the process lives. With
// each run, one sends and one receives: the latter is that of run.
type relay struct {
	dial func(ctx context.Context) (*link, error)
	log  *slog.Logger

	session *session
	lines   chan []byte // whole lines of the host, closed at its end

	// Of the goroutine that sends, and between two runs of that of run.
	unsent []byte // lines of the host
	ended  bool   // the host says nothing more
}

// run passes on messages until the run has no more although it lives, which is when the
// host has closed its end and has its answers, or ctx has ended. Then err is nil, and so
// it is when the host does not read any more.
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
				return nil // the host does not read any more, and knows why
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
		losses++
		pauseAfter(ctx, losses)
	}
}

// pauseAfter waits after the second loss in a row, and longer after each further one.
func pauseAfter(ctx context.Context, losses int) {
	if losses < 2 {
		return
	}
	select {
	case <-time.After(lossPause << (losses - 2)):
	case <-ctx.Done():
	}
}

// isOver reports whether nothing of the host is to be sent any more.
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

// serve passes on messages over a link, after those that tell a run what it has missed.
// lost is why there are no more; failed is the error of the host's stream.
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

// maxLine is the longest line of the host that is kept whole. The run refuses longer
// ones, for which their beginning is enough.
const maxLine = 64 << 20

// read hands on the lines of the host, all that one read brings at once. It ends with the
// host's stream or with the process: nothing can interrupt it.
func (r *relay) read(in io.Reader, done <-chan struct{}) {
	defer close(r.lines)
	var begun []byte // a line whose end has not come
	chunk := make([]byte, 64<<10)
	for {
		n, err := in.Read(chunk)
		text := chunk[:n]
		if len(begun) > maxLine {
			text = text[restOfLine(text):]
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

// restOfLine returns the length of the text before its first newline.
func restOfLine(text []byte) int {
	if end := bytes.IndexByte(text, '\n'); end >= 0 {
		return end
	}
	return len(text)
}

// send sends a run what the host says, and reports whether that was all. What could not
// be sent is kept.
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

// maxCollected is how much of a run's messages is collected before it is written.
const maxCollected = 64 << 10

// receive passes on what the run sends: whole lines, and what one read brought in one
// write. lost is why there are no more; failed is the error of the host's stream.
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
		case errors.As(err, &fault): // the beginning of a line that the end cut off
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
