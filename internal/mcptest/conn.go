package mcptest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"
)

// Handlers answer the other side's requests, by method, each on its own goroutine. A result is
// encoded by Raw; an *RPCError keeps its code and data; ErrNoAnswer leaves the request open. A
// method without a handler is answered with -32601, except ping.
type Handlers map[string]func(params json.RawMessage) (any, error)

// ErrNoAnswer is returned by a handler to leave the request without an answer.
var ErrNoAnswer = errors.New("no answer")

// A Conn is one end of a connection with JSON lines. Its methods may be called from several
// goroutines. Those that wait end the calling goroutine when they fail, like t.FailNow.
type Conn struct {
	t    testing.TB
	in   io.Reader
	out  io.Writer
	on   Handlers
	gone <-chan struct{} // closed when the process of the other side has exited; may be nil
	more func() string   // the part of a report about the other side

	writing sync.Mutex // held while a line is written

	mu       sync.Mutex
	received []Message     // every line, in order
	changed  chan struct{} // closed at the next line; nil without waiters
	over     bool          // the stream has ended
	nextID   int
}

// Talk returns a Conn over a stream, such as one end of a Pipe. The end of the test closes the
// stream.
func Talk(t testing.TB, stream io.ReadWriteCloser, on Handlers) *Conn {
	c := &Conn{t: t, in: stream, out: stream, on: on, more: func() string { return "" }}
	var reading sync.WaitGroup
	reading.Go(c.read)
	t.Cleanup(func() { _ = stream.Close(); reading.Wait() })
	return c
}

// read records every line until the stream ends.
func (c *Conn) read() {
	var handlers sync.WaitGroup
	defer handlers.Wait()
	r := bufio.NewReaderSize(c.in, 64<<10)
	for {
		line, err := r.ReadString('\n')
		if line = strings.TrimSuffix(line, "\n"); line != "" || err == nil {
			m := Parse(line)
			c.record(m)
			if m.Method != "" && m.ID != nil {
				handlers.Go(func() { c.answer(m) })
			}
		}
		if err != nil {
			c.end()
			return
		}
	}
}

func (c *Conn) record(m Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.received = append(c.received, m)
	c.wakeLocked()
}

func (c *Conn) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	c.wakeLocked()
}

func (c *Conn) wakeLocked() {
	if c.changed != nil {
		close(c.changed)
		c.changed = nil
	}
}

// answer answers one request of the other side.
func (c *Conn) answer(m Message) {
	result, err := c.handle(m)
	var e *RPCError
	switch {
	case errors.Is(err, ErrNoAnswer):
		return
	case errors.As(err, &e):
	case err != nil:
		e = &RPCError{Code: -32603, Message: err.Error()}
	}
	if e != nil {
		c.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":%s}`, m.ID, Raw(e)))
		return
	}
	c.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, Raw(result)))
}

func (c *Conn) handle(m Message) (any, error) {
	if f := c.on[m.Method]; f != nil {
		return f(m.Params)
	}
	if m.Method == "ping" {
		return `{}`, nil
	}
	return nil, &RPCError{Code: -32601, Message: "Method not found: " + m.Method}
}

// Send writes a line verbatim. It is not an error if the other side has stopped reading: the wait
// for the answer reports that, with everything received.
func (c *Conn) Send(raw string) {
	c.t.Helper()
	if err := c.write(raw); err != nil {
		c.t.Fatalf("the other side stopped reading: %v\n%s", err, c.report())
	}
}

// Write writes bytes verbatim, without a newline.
func (c *Conn) Write(data string) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if d, ok := c.out.(interface{ SetWriteDeadline(time.Time) error }); ok {
		_ = d.SetWriteDeadline(time.Now().Add(watchdog)) // pipes without deadlines are left to the timeout of go test
	}
	_, err := io.WriteString(c.out, data)
	return err
}

// write ignores a broken pipe: the wait for an answer reports a program that has exited.
func (c *Conn) write(line string) error {
	if err := c.Write(line + "\n"); errors.Is(err, errTimeout) {
		return err
	}
	return nil
}
