package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"sync"
	"time"
)

// lines writes messages, one a line, to a file for several goroutines.
type lines struct {
	once sync.Once
	mu   sync.Mutex
	file *os.File
	end  string
	form func(msg []byte) []byte // nil: as it is
	line []byte                  // the written line, reused
}

// write sends one message. It ignores errors: the process ends with the client's requests.
func (l *lines) write(msg []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.form != nil {
		msg = l.form(msg)
	}
	l.line = append(append(l.line[:0], msg...), l.end...)
	_, _ = l.file.Write(l.line)
}

// raw writes bytes that are not a message.
func (l *lines) raw(b []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = l.file.Write(b)
}

// serveStdio reads requests until the client closes stdin. It lets running calls finish, and exits.
func serveStdio(f *fake, in io.Reader) error {
	write := func(msg []byte) {
		if f.preface != nil {
			f.out.once.Do(f.preface)
		}
		f.out.write(msg)
	}
	p := newPeer(f, write)
	r := bufio.NewReaderSize(in, 64<<10) // the capacity of a pipe
	for {
		line, err := r.ReadBytes('\n')
		if line = bytes.TrimRight(line, "\r\n"); len(line) > 0 {
			p.take(line, write)
		}
		if errors.Is(err, io.EOF) {
			f.leave(p)
		}
		if err != nil {
			return err
		}
	}
}

// take handles one line. Requests run concurrently, except initialize, which must be done before
// the next one.
func (p *peer) take(line []byte, write func([]byte)) {
	c := p.receive(line, write)
	switch {
	case c == nil:
		return
	case c.Method == "initialize":
		c.serve()
	default:
		go c.serve()
	}
	if p.fake.afterRead != nil {
		p.fake.afterRead(c)
	}
}

func (f *fake) leave(p *peer) {
	if f.ignoreEOF {
		f.ledger.add("ignored eof")
		forever()
	}
	p.cancelAll()
	done := make(chan struct{})
	go func() { p.calls.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(f.cfg.leaveAfter):
	}
	f.exit(0, "eof")
}

// forever blocks until the process ends: by a signal, a call of exit, or -max-life.
func forever() { select {} }
