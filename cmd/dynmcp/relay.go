package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
)

// maxRelayed is the longest message that is passed on to the host. What the run sends
// is bounded by its own limits, which are lower.
const maxRelayed = 1 << 30

// maxTracked is the longest message of the host of which it is known whether it waits
// for an answer. The run refuses longer ones.
const maxTracked = 64 << 20

// A relay stands between a host's streams and the run that serves it. It passes on
// what comes as it comes, and knows of the host's requests which have no answer: if the
// run is gone, it answers them.
type relay struct {
	conn    *net.UnixConn
	in      *wire.Reader // what the run sends
	version string       // of the run

	mu      sync.Mutex
	waiting map[string]bool // the ids of requests of the host, as they were sent
}

// errAbsent says that nobody serves on a socket, or not any more.
var errAbsent = errors.New("no dynmcp serves there")

// isAbsent reports whether a run has to be started, or waited for.
func isAbsent(err error) bool {
	return errors.Is(err, errAbsent) || errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.EAGAIN)
}

// dialSocket connects to the run that serves on a socket, and waits until it has
// admitted us.
func dialSocket(ctx context.Context, path string) (*relay, error) {
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
	r := &relay{conn: conn, in: wire.NewReader(conn, maxRelayed), waiting: map[string]bool{}}
	m, err := r.in.Next()
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
	r.version, _ = wire.Text(wire.Get(m.Params, "version"))
	return r, nil
}

// run passes on messages until the run has no more, which it has when the host has
// closed its end and has its answers, or ctx has ended. If the run is gone before that,
// what waits for an answer gets one, and the error says so.
func (r *relay) run(ctx context.Context, in io.Reader, out io.Writer) error {
	defer r.conn.Close()
	over := make(chan struct{}) // the host says nothing more
	go func() {                 // it ends with the host's stream, or with the process
		r.passUp(in)
		close(over) // first: the run may close its end as soon as it knows
		_ = r.conn.CloseWrite()
	}()
	defer context.AfterFunc(ctx, func() { _ = r.conn.CloseWrite() })()
	lost, err := r.passDown(out)
	if err != nil {
		return nil // the host does not read any more, and knows why
	}
	left := r.left()
	for _, id := range left {
		answer := bytes.Join(wire.Failure([]byte(id), &wire.Error{
			Code:    transports.CodeShuttingDown,
			Message: "the dynmcp that served this host has ended",
			Data:    []byte(`{"source":"dynmcp","outcome":"unknown","hint":"check whether it took effect before retrying"}`),
		}), nil)
		if _, err := out.Write(append(answer, '\n')); err != nil {
			return nil
		}
	}
	select {
	case <-over:
		return nil
	default:
	}
	if ctx.Err() != nil {
		return nil
	}
	return hinted(fmt.Errorf("the dynmcp that served this host has ended: %w", lost), "restart the server in the host: that starts another one")
}

// passUp passes on what the host sends, as it comes.
func (r *relay) passUp(in io.Reader) {
	var line []byte // what has come of one that is not complete
	tooLong := false
	chunk := make([]byte, 64<<10)
	for {
		n, err := in.Read(chunk)
		rest := chunk[:n]
		for {
			part, after, ended := bytes.Cut(rest, []byte{'\n'})
			switch {
			case tooLong && ended:
				tooLong, part = false, nil
			case tooLong || len(line)+len(part) > maxTracked:
				tooLong, line, part = !ended, nil, nil
			}
			if !ended {
				line = append(line, part...)
				break
			}
			if len(line) > 0 {
				part = append(line, part...)
				line = line[:0]
			}
			r.note(part)
			rest = after
		}
		if _, err := r.conn.Write(chunk[:n]); err != nil {
			return
		}
		if err != nil {
			return
		}
	}
}

// note keeps which requests of a line of the host have to be answered.
func (r *relay) note(line []byte) {
	line = bytes.TrimSpace(line)
	if len(line) > 0 && line[0] == '[' {
		for message := range wire.Elements(line) {
			r.note(message)
		}
		return
	}
	m, err := wire.Parse(line)
	switch {
	case err != nil:
	case m.IsRequest():
		r.set(m.ID, true)
	case m.Method == "notifications/cancelled":
		r.set(wire.Get(m.Params, "requestId"), false)
	}
}

func (r *relay) set(id []byte, waits bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if waits {
		r.waiting[string(id)] = true
	} else {
		delete(r.waiting, string(id))
	}
}

func (r *relay) left() (ids []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range r.waiting {
		ids = append(ids, id)
	}
	return ids
}

// passDown passes on what the run sends: whole lines, and what one read brought in one
// write. lost is why there is no more; err is that of the host's stream.
func (r *relay) passDown(out io.Writer) (lost, err error) {
	var lines []byte
	flush := func() {
		if len(lines) > 0 && err == nil {
			_, err = out.Write(lines)
		}
		lines = lines[:0]
		if cap(lines) > maxKept {
			lines = nil
		}
	}
	r.in.Idle = flush
	for {
		m, failed := r.in.Next()
		var fault *wire.Fault
		switch {
		case err != nil:
			return nil, err
		case errors.As(failed, &fault): // the beginning of a line that the end cut off
			continue
		case failed != nil:
			flush()
			return failed, err
		}
		r.answered(m)
		lines = append(append(lines, m.Raw...), '\n')
		if len(lines) > maxKept {
			flush()
		}
	}
}

// maxKept is how much is collected before it is written.
const maxKept = 64 << 10

func (r *relay) answered(m wire.Message) {
	if len(m.Raw) > 0 && m.Raw[0] == '[' {
		for message := range wire.Elements(m.Raw) {
			if m, err := wire.Parse(message); err == nil {
				r.answered(m)
			}
		}
		return
	}
	if m.Method == "" && m.ID != nil {
		r.set(m.ID, false)
	}
}
