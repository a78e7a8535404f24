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

// ErrNoAnswer, returned by a handler, leaves the program without an answer.
var ErrNoAnswer = errors.New("no answer")

// A Host is a program started with pipes, and the host's side of the talk. Its
// methods may be used from several goroutines; those that wait end the calling
// goroutine when they fail, as t.FailNow does.
type Host struct {
	*Process
	on map[string]func(json.RawMessage) (any, error)

	writing sync.Mutex // one line at a time; guards nothing else

	mu       sync.Mutex
	received []Message     // every line, in order
	changed  chan struct{} // closed at the next line; nil while nobody waits
	over     bool          // stdout has ended
	nextID   int
}

// Start starts a program and speaks first when told to. The test's end closes its
// stdin and sees it leave.
func Start(t testing.TB, opts HostOptions) *Host {
	t.Helper()
	h := &Host{Process: start(t, opts), on: opts.OnRequest}
	h.drains.Go(h.read)
	return h
}

// StartFake starts fakemcp with these arguments.
func StartFake(t testing.TB, args ...string) *Host {
	t.Helper()
	return Start(t, HostOptions{Args: append([]string{Fake(t)}, args...)})
}

// StartDynmcp starts the proxy with these arguments.
func StartDynmcp(t testing.TB, args ...string) *Host {
	t.Helper()
	return Start(t, HostOptions{Args: append([]string{Dynmcp(t)}, args...)})
}

// read records every line until the program closes its stdout.
func (h *Host) read() {
	var handlers sync.WaitGroup
	defer handlers.Wait()
	r := bufio.NewReader(h.stdout)
	for {
		line, err := r.ReadString('\n')
		if line = strings.TrimSuffix(line, "\n"); line != "" || err == nil {
			m := Parse(line)
			h.record(m)
			if m.Method != "" && m.ID != nil {
				handlers.Go(func() { h.answer(m) })
			}
		}
		if err != nil {
			h.end()
			return
		}
	}
}

func (h *Host) record(m Message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.received = append(h.received, m)
	h.wakeLocked()
}

func (h *Host) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.over = true
	h.wakeLocked()
}

func (h *Host) wakeLocked() {
	if h.changed != nil {
		close(h.changed)
		h.changed = nil
	}
}

// answer answers one request of the program.
func (h *Host) answer(m Message) {
	result, err := h.handle(m)
	var e *RPCError
	switch {
	case errors.Is(err, ErrNoAnswer):
		return
	case errors.As(err, &e):
	case err != nil:
		e = &RPCError{Code: -32603, Message: err.Error()}
	}
	if e != nil {
		h.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":%s}`, m.ID, Raw(e)))
		return
	}
	h.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, Raw(result)))
}

func (h *Host) handle(m Message) (any, error) {
	if f := h.on[m.Method]; f != nil {
		return f(m.Params)
	}
	if m.Method == "ping" {
		return `{}`, nil
	}
	return nil, &RPCError{Code: -32601, Message: "Method not found: " + m.Method}
}

// Send writes a line verbatim. That the program no longer reads is not an error
// here: the wait for its answer says so, with all there is to say.
func (h *Host) Send(raw string) {
	h.t.Helper()
	if err := h.write(raw); err != nil {
		h.t.Fatalf("the program stopped reading: %v\n%s", err, h.report())
	}
}

// Write writes bytes verbatim, with no line's end.
func (h *Host) Write(data string) error {
	h.writing.Lock()
	defer h.writing.Unlock()
	_ = h.stdin.SetWriteDeadline(time.Now().Add(watchdog)) // where pipes know no deadline, go test's own remains
	_, err := io.WriteString(h.stdin, data)
	return err
}

// write hides a broken pipe: a program that died is reported by who waits for it.
func (h *Host) write(line string) error {
	if err := h.Write(line + "\n"); errors.Is(err, errTimeout) {
		return err
	}
	return nil
}
