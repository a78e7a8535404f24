// Package hosts is the host's side of a connection: it starts dynmcp, or another program, and talks MCP to
// it on its pipes (Start), or reads where it serves HTTP (Serve), to which package web talks. It drives
// programs; internal/mcptest does the same for tests, and fails them.
package hosts

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Silence is the time after which an answer is considered lost. It is longer than all timeouts in the
// configs of benchmarks.
var Silence = 2 * time.Minute

// A Host is a running program, and our ends of its pipes.
type Host struct {
	Cmd    *exec.Cmd
	Stderr bytes.Buffer // only read when it has ended; of Serve, its end, with stdout
	URL    string       // of Serve
	Keep   bool         // Said gets every line that it writes
	Said   []string

	pipe   *os.File      // its stdout
	out    *bufio.Reader // of pipe
	queue  chan string   // lines for its stdin, which one goroutine writes
	wrote  chan struct{} // closed when that goroutine has ended
	heard  chan struct{} // of Serve, closed when all that it prints is in Stderr
	asked  int           // requests of Ask
	closed bool          // queue is closed
	ended  bool
}

// Start starts a command.
func Start(cmd *exec.Cmd) (*Host, error) {
	h := &Host{Cmd: cmd}
	if cmd.Stderr == nil {
		cmd.Stderr = &h.Stderr
	}
	pipe, theirs, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	cmd.Stdout, h.pipe, h.out = theirs, pipe, bufio.NewReaderSize(pipe, 1<<20)
	if err := h.run(); err != nil {
		pipe.Close()
		return nil, err
	}
	return h, nil
}

// run starts the command and the goroutine that writes to it.
func (h *Host) run() error {
	in, err := h.Cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := h.Cmd.Start(); err != nil {
		return err
	}
	h.queue, h.wrote = make(chan string, 1024), make(chan struct{})
	go h.write(in)
	return nil
}

// write writes the lines of the queue in its own goroutine, so that a long line never blocks reading.
func (h *Host) write(in io.WriteCloser) {
	defer close(h.wrote)
	defer in.Close()
	for line := range h.queue {
		_, _ = io.WriteString(in, line+"\n") // if the program has ended, the answer is missed elsewhere
	}
}

// Send sends a line.
func (h *Host) Send(line string) { h.queue <- line }

// CloseStdin closes the stdin of the program after all lines were written.
func (h *Host) CloseStdin() {
	if !h.closed {
		h.closed = true
		close(h.queue)
	}
}

// An Answer has the relevant members of a line.
type Answer struct {
	ID     json.RawMessage
	Method string // set if it is no answer
	Error  json.RawMessage
	Result struct {
		Content           []struct{ Text string }
		StructuredContent json.RawMessage
		IsError           bool
	}
	Line string `json:"-"`
}

// Parse parses a line.
func Parse(line string) (Answer, error) {
	a := Answer{Line: line}
	if err := json.Unmarshal([]byte(line), &a); err != nil {
		return Answer{}, fmt.Errorf("no JSON: %.200s", line)
	}
	return a, nil
}

// Good returns an error unless the call succeeded.
func (a Answer) Good(what string) error {
	if a.Result.IsError || len(a.Result.Content) == 0 {
		return fmt.Errorf("%s: not so: %.500s", what, a.Line)
	}
	return nil
}

// Answer returns the next answer. It skips other messages without parsing them, because the time for
// that would count as time of the program. If there is no answer, the error is os.ErrDeadlineExceeded.
func (h *Host) Answer() (Answer, error) {
	if err := h.pipe.SetReadDeadline(time.Now().Add(Silence)); err != nil {
		return Answer{}, err
	}
	for {
		line, err := h.out.ReadString('\n')
		if h.Keep {
			h.Said = append(h.Said, line)
		}
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return Answer{}, fmt.Errorf("no answer for %v: %w", Silence, err)
		case err != nil:
			return Answer{}, err
		case strings.Contains(line[:min(len(line), 64)], `"method"`):
			continue
		}
		return Parse(line)
	}
}

// Await returns the answer with this string as its id, and passes others to other.
func (h *Host) Await(id string, other func(Answer) error) (Answer, error) {
	for {
		a, err := h.Answer()
		if err != nil {
			return a, fmt.Errorf("waiting for %q: %w", id, err)
		}
		if string(a.ID) == strconv.Quote(id) {
			return a, nil
		}
		if err := other(a); err != nil {
			return a, err
		}
	}
}

// NoOther is for Await if no other answers are expected.
func NoOther(a Answer) error { return fmt.Errorf("an answer to nothing: %.200s", a.Line) }

// Ask sends a request and decodes the result of its answer, the only one that is awaited.
func (h *Host) Ask(method string, params, result any) error {
	a, err := h.ask(method, params)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(a.Line), &struct{ Result any }{result})
}

func (h *Host) ask(method string, params any) (Answer, error) {
	h.asked++
	id := fmt.Sprintf("ask-%d", h.asked)
	text, err := json.Marshal(params)
	if err != nil {
		return Answer{}, err
	}
	h.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":%q,"params":%s}`, id, method, text))
	a, err := h.Await(id, NoOther)
	if err == nil && a.Error != nil {
		err = errors.New(string(a.Error))
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", method, err)
	}
	return a, err
}

// Greet performs the handshake as a host with a name, and returns the instructions.
func (h *Host) Greet(name string) (instructions string, err error) {
	var result struct{ Instructions string }
	err = h.Ask("initialize", map[string]any{"protocolVersion": "2025-11-25", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": name, "version": "1"}}, &result)
	h.Send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return result.Instructions, err
}

// Tool calls a tool of the program, and returns the texts of the result.
func (h *Host) Tool(name string, arguments any) (text string, failed bool, err error) {
	a, err := h.ask("tools/call", map[string]any{"name": name, "arguments": arguments})
	var texts []string
	for _, c := range a.Result.Content {
		texts = append(texts, c.Text)
	}
	return strings.Join(texts, "\n"), a.Result.IsError, err
}

// Stop closes the stdin of the program and waits for its end.
func (h *Host) Stop() error {
	h.ended = true
	h.CloseStdin()
	var err error
	for err == nil {
		_, err = h.Answer()
	}
	if errors.Is(err, io.EOF) {
		err = nil
	} else {
		_ = h.Cmd.Process.Kill() // it does not end or does not send JSON, as err says
	}
	<-h.wrote
	h.pipe.Close()
	return errors.Join(err, h.Cmd.Wait())
}

// Quit ends the program with SIGQUIT and returns its stderr, which has the stacks of all goroutines.
func (h *Host) Quit() string { return h.signaled(syscall.SIGQUIT, 10*time.Second) }

// Terminate ends the program with SIGTERM and prints its stderr except for what is in order.
func (h *Host) Terminate() {
	for line := range strings.Lines(h.signaled(syscall.SIGTERM, Silence)) {
		if !strings.Contains(line, "level=INFO") && !strings.HasPrefix(line, "http://") {
			os.Stderr.WriteString(line)
		}
	}
}

func (h *Host) signaled(sig syscall.Signal, patience time.Duration) string {
	h.ended = true
	_ = h.Cmd.Process.Signal(sig) // it may have ended
	kill := time.AfterFunc(patience, func() { _ = h.Cmd.Process.Kill() })
	defer kill.Stop()
	read := h.heard
	if read == nil {
		read = make(chan struct{})
		go func() {
			defer close(read)
			_, _ = io.Copy(io.Discard, h.out)
		}()
	}
	_ = h.Cmd.Wait() // reports the signal
	h.CloseStdin()   // not before, since the end of stdin ends goroutines
	<-h.wrote
	<-read
	h.pipe.Close()
	return h.Stderr.String()
}

// End ends a program that still runs because a step failed, and prints its stderr. It is meant to be
// deferred.
func (h *Host) End() {
	if !h.ended {
		os.Stderr.WriteString(h.Quit())
	}
}
