package sharing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/hint"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// maxRelayed is the longest message that is passed on to the host. What the run sends
// is bounded by its own limits, which are lower.
const maxRelayed = 1 << 30

// maxTracked is the longest message of the host of which it is known whether it waits
// for an answer. The run refuses longer ones.
const maxTracked = 64 << 20

// A run that ends is replaced at once, and after a pause if the one before did not live
// for long: each pause is twice as long as the last. After maxLosses in a row the relay ends.
const (
	maxLosses  = 6
	lossPause  = 100 * time.Millisecond
	steadyTime = time.Minute
)

// A relay stands between a host's streams and the run that serves it. It passes on what
// comes as it comes. If the run ends before the host does, another takes its place: the
// relay tells that what the host has said of itself, and sends what was not sent.
type relay struct {
	dial func(ctx context.Context) (*link, error)
	log  *slog.Logger

	said   chan said // by the host, closed at its end
	talk   *conversation
	unsent []byte // lines of the host, while there is no link
	skips  bool   // the rest of a line is dropped whose beginning went to a run that ended
	over   bool   // the host says nothing more
}

// said is what the host says: whole lines, or a part of one that is too long to be kept.
type said struct {
	text []byte
	part bool
}

// A link is a connection to a run.
type link struct {
	conn    *net.UnixConn
	in      *wire.Reader // what the run sends
	version string       // of the run
	since   time.Time
}

// errAbsent says that nobody serves on a socket, or not any more.
var errAbsent = errors.New("no dynmcp serves there")

// isAbsent reports whether a run has to be started, or waited for.
func isAbsent(err error) bool {
	return errors.Is(err, errAbsent) || errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.EAGAIN)
}

// dialSocket connects to the run that serves on a socket, and waits until it has
// admitted us.
func dialSocket(ctx context.Context, path string) (*link, error) {
	var dialer net.Dialer
	c, err := dialer.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	conn, ok := c.(*net.UnixConn)
	if !ok {
		return nil, fmt.Errorf("%s: not a unix socket but %T", path, c)
	}
	if err := checkPeer(conn); err != nil {
		conn.Close()
		return nil, err
	}
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetReadDeadline(deadline)
	}
	defer context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })()
	l := &link{conn: conn, in: wire.NewReader(conn, maxRelayed), since: time.Now()}
	m, err := l.in.Next()
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET):
		err = errAbsent // it ends
	case err == nil && m.Method != ready:
		err = fmt.Errorf("%s is served by another program", path)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	_ = conn.SetReadDeadline(time.Time{})
	l.version, _ = wire.Text(wire.Get(m.Params, "version"))
	return l, nil
}

// run passes on messages until the run has no more although it lives, which is when the
// host has closed its end and has its answers, or ctx has ended. Then err is nil, and so
// it is when the host does not read any more. dial returns the runs.
func (r *relay) run(ctx context.Context, in io.Reader, out io.Writer) error {
	r.said, r.talk = make(chan said), newConversation()
	done := make(chan struct{})
	defer close(done)
	go r.listen(in, done) // it ends with the host's stream, or with the process
	var replay []byte
	for losses := 0; ; {
		l, err := r.dial(ctx)
		if err == nil {
			var failed error
			if err, failed = r.serve(ctx, l, replay, out); failed != nil {
				return nil // the host does not read any more, and knows why
			}
			if time.Since(l.since) >= steadyTime {
				losses = 0
			}
		} else if losses == 0 {
			return err
		}
		if over := r.isOver() || ctx.Err() != nil; over || losses == maxLosses {
			if _, failed := out.Write(r.talk.fail(r.unsent)); failed != nil || over {
				return nil
			}
			return hint.With(fmt.Errorf("the dynmcp that served this host has ended: %w", err), "restart the server in the host: that starts another one")
		}
		r.log.Warn("the dynmcp that served this host has ended, looking for another", "err", err)
		if _, failed := out.Write(r.talk.lost(r.unsent)); failed != nil {
			return nil
		}
		replay = r.talk.replay(r.unsent)
		if losses++; losses > 1 {
			select {
			case <-time.After(lossPause << (losses - 2)):
			case <-ctx.Done():
			}
		}
	}
}

// isOver reports whether nothing of the host is to be sent any more.
func (r *relay) isOver() bool {
	if len(r.unsent) > 0 || r.over {
		return len(r.unsent) == 0
	}
	select {
	case s, more := <-r.said:
		r.over, r.unsent = !more, s.text
		r.skips = s.part && !bytes.HasSuffix(s.text, []byte{'\n'})
		if s.part {
			r.unsent = nil
		}
	default:
	}
	return r.over
}

// serve passes on messages over a link, after those that tell a run what it has missed.
// lost is why there is no more; failed is the error of the host's stream.
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
	return r.passDown(l.in, out)
}

// listen hands on what the host sends, as it comes.
func (r *relay) listen(in io.Reader, done <-chan struct{}) {
	defer close(r.said)
	say := func(text []byte, part bool) {
		select {
		case r.said <- said{text, part}:
		case <-done:
		}
	}
	var line []byte // what has come of one that is not complete
	tooLong := false
	chunk := make([]byte, 64<<10)
	for {
		n, err := in.Read(chunk)
		text := chunk[:n]
		if tooLong {
			end := bytes.IndexByte(text, '\n') + 1
			tooLong = end == 0
			if tooLong {
				end = n
			}
			say(bytes.Clone(text[:end]), true)
			text = text[end:]
		}
		if end := bytes.LastIndexByte(text, '\n') + 1; end > 0 {
			say(append(line, text[:end]...), false)
			line, text = nil, text[end:]
		}
		line = append(line, text...)
		if len(line) > maxTracked {
			tooLong = true
			say(line, true)
			line = nil
		}
		if err != nil {
			if len(line) > 0 {
				say(line, false)
			}
			return
		}
	}
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
			if r.unsent = r.talk.send(conn, r.unsent); len(r.unsent) > 0 {
				return false
			}
		}
		if r.over {
			return true
		}
		select {
		case s, more := <-r.said:
			switch {
			case !more:
				r.over = true
			case !s.part:
				r.unsent = s.text
			case !r.passPart(conn, s.text):
				return false
			}
		case <-gone:
			return false
		}
	}
}

// passPart passes on a part of a line, unless the run has not the parts before.
func (r *relay) passPart(conn *net.UnixConn, part []byte) bool {
	isLast := bytes.HasSuffix(part, []byte{'\n'})
	if r.skips {
		r.skips = !isLast
		return true
	}
	_, err := conn.Write(part)
	r.skips = err != nil && !isLast
	return err == nil
}

// passDown passes on what the run sends: whole lines, and what one read brought in one
// write. lost is why there is no more; failed is the error of the host's stream.
func (r *relay) passDown(in *wire.Reader, out io.Writer) (lost, failed error) {
	var lines []byte
	flush := func() {
		if len(lines) > 0 && failed == nil {
			_, failed = out.Write(lines)
		}
		lines = lines[:0]
		if cap(lines) > maxKept {
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
			lines, err = r.talk.received(m, lines)
		}
		if err != nil {
			flush()
			return err, failed
		}
		if len(lines) > maxKept {
			flush()
		}
	}
}

// maxKept is how much is collected before it is written.
const maxKept = 64 << 10
