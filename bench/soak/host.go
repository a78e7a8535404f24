package main

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	mathrand "math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/dynmcp/dynmcp/bench/internal/web"
)

// silence is the time after which an answer is considered lost. It is longer than all
// timeouts in the configs here.
var silence = 2 * time.Minute

// longLife keeps the fakes from ending by themselves in a long run.
const longLife = "6h"

// A host is a dynmcp with its servers, and our ends of its pipes.
type host struct {
	cmd    *exec.Cmd
	pipe   *os.File          // its stdout
	out    *bufio.Reader     // of pipe
	queue  chan string       // lines for its stdin, which one goroutine writes
	wrote  chan struct{}     // closed when that goroutine has ended
	url    string            // if it serves over HTTP
	token  string            // of our requests over HTTP, "" if unset
	marker string            // NAME=VALUE in the environment of all its descendants
	heard  func(line string) // gets every line that it writes; may be nil
	stderr bytes.Buffer      // only read when it has ended
	closed bool              // queue is closed
	ended  bool
}

// An entry is a server of a config: a fakemcp with these arguments, unless fields has
// something else.
type entry struct {
	name   string
	args   []string
	fields map[string]any
}

// A setting has the options to start a dynmcp.
type setting struct {
	entries []entry
	more    map[string]any // keys of the config besides the servers
	level   string         // of its log; "" is error
	dir     string         // its working directory; "" is that of the soak
	env     []string       // in addition to ours
	heard   func(line string)
	serves  bool     // over HTTP, not on its pipes
	path    string   // of an existing config; "" writes one
	under   []string // command and arguments that start dynmcp; empty if unset
}

// config writes a config and returns its path.
func (s *soak) config(set setting) (string, error) {
	servers := map[string]map[string]any{}
	for _, e := range set.entries {
		fields := map[string]any{}
		if e.fields["url"] == nil {
			fields["command"] = s.fake
			fields["args"] = append([]string{"-max-life", longLife}, e.args...)
		}
		maps.Copy(fields, e.fields)
		servers[e.name] = fields
	}
	document := map[string]any{"mcp": servers, "startup_wait": "60s"}
	maps.Copy(document, set.more)
	text, err := json.Marshal(document)
	if err != nil {
		return "", err
	}
	path := filepath.Join(s.dir, rand.Text()+".json")
	return path, os.WriteFile(path, text, 0o600)
}

// start runs dynmcp with these servers and waits until they have started.
func (s *soak) start(entries ...entry) (*host, error) { return s.launch(setting{entries: entries}) }

func (s *soak) launch(set setting) (*host, error) {
	path := set.path
	if path == "" {
		var err error
		if path, err = s.config(set); err != nil {
			return nil, err
		}
	}
	// It is a number of seconds, because scripts pass ${SOAK} as the time to sleep. This
	// identifies processes that have cleared their environment.
	marker := fmt.Sprintf("600.%018d", mathrand.Int64N(1e18))
	h := &host{marker: "SOAK=" + marker, heard: set.heard, queue: make(chan string, 1024), wrote: make(chan struct{})}
	level := set.level
	if level == "" {
		level = "error"
	}
	var verb []string
	switch {
	case set.serves:
		verb, level = []string{"serve", "--http", "127.0.0.1:0"}, "info" // logs the address
	case s.recordings != "":
		verb = []string{"record", "-o", filepath.Join(s.recordings, "soak.jsonl")} // later recordings get a number
	}
	line := slices.Concat(set.under, []string{s.dynmcp}, verb, []string{"--log-level", level, "-c", path})
	h.cmd = exec.Command(line[0], line[1:]...)
	h.cmd.Env = append(append(os.Environ(), h.marker), set.env...)
	h.cmd.Dir = s.dir
	if set.dir != "" {
		h.cmd.Dir = set.dir
	}
	h.cmd.Stderr = &h.stderr
	says := &listener{stderr: &h.stderr, url: make(chan string, 1)}
	if set.serves {
		h.cmd.Stderr = says
	}
	in, err := h.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	pipe, theirs, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	h.cmd.Stdout, h.pipe, h.out = theirs, pipe, bufio.NewReaderSize(pipe, 1<<20)
	if err := h.cmd.Start(); err != nil {
		pipe.Close()
		return nil, err
	}
	go h.write(in)
	if set.serves {
		select {
		case h.url = <-says.url:
			return h, nil
		case <-time.After(silence):
			h.end()
			return nil, errors.New("dynmcp does not say where it serves")
		}
	}
	if err := h.greet(); err != nil {
		h.end()
		return nil, err
	}
	return h, nil
}

// A listener receives the stderr of a dynmcp that serves over HTTP. It finds the address
// and keeps the end of the text.
type listener struct {
	stderr *bytes.Buffer
	url    chan string // gets the address, without a path
	found  bool
}

func (l *listener) Write(text []byte) (int, error) {
	const keep = 8 << 20
	l.stderr.Write(text)
	if !l.found {
		if _, rest, ok := strings.Cut(l.stderr.String(), "url="); ok {
			if url, _, ok := strings.Cut(rest, "/mcp\n"); ok {
				l.found = true
				l.url <- url
			}
		}
	}
	if l.stderr.Len() > 2*keep {
		l.stderr.Next(l.stderr.Len() - keep)
	}
	return len(text), nil
}

func (h *host) greet() error {
	h.send(`{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"soak","version":"1"}}}`)
	h.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	h.send(`{"jsonrpc":"2.0","id":"lists","method":"tools/list"}`)
	_, err := h.await("lists", func(answer) error { return nil })
	return err
}

// write writes the lines of the queue in its own goroutine, so that a long line never
// blocks reading.
func (h *host) write(in io.WriteCloser) {
	defer close(h.wrote)
	defer in.Close()
	for line := range h.queue {
		_, _ = io.WriteString(in, line+"\n") // if dynmcp has ended, the answer is missed elsewhere
	}
}

// closeStdin closes the stdin of dynmcp after all lines were written.
func (h *host) closeStdin() {
	if !h.closed {
		h.closed = true
		close(h.queue)
	}
}

func (h *host) send(line string) { h.queue <- line }

// call calls a tool of a server.
func (h *host) call(id int, tool, input string) { h.ask(fmt.Sprint(id), "use_tool", use(tool, input)) }

// ask calls a tool of dynmcp itself. The id is JSON.
func (h *host) ask(id, tool, arguments string) {
	h.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, tool, arguments))
}

// use and load return arguments of use_tool and load_mcp.
func use(tool, input string) string {
	return fmt.Sprintf(`{"tool_name":%q,"tool_input":%s}`, tool, input)
}
func load(server string) string { return fmt.Sprintf(`{"mcp_name":%q}`, server) }

// An answer has the relevant members of a line from dynmcp.
type answer struct {
	ID     json.RawMessage
	Method string // set if it is no answer
	Result struct {
		Content           []struct{ Text string }
		StructuredContent json.RawMessage
		IsError           bool
	}
	line string
}

// outcome returns the outcome of the call according to a failure of dynmcp, or "" if
// there is none.
func (a answer) outcome() string { return web.Outcome(a.line) }

// answer returns the next answer. It skips other messages without parsing them, because
// the time for that would count as time of dynmcp. If there is no answer, the error is
// os.ErrDeadlineExceeded.
func (h *host) answer() (answer, error) {
	if err := h.pipe.SetReadDeadline(time.Now().Add(silence)); err != nil {
		return answer{}, err
	}
	for {
		line, err := h.out.ReadString('\n')
		if h.heard != nil {
			h.heard(line)
		}
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return answer{}, fmt.Errorf("no answer for %v: %w", silence, err)
		case err != nil:
			return answer{}, err
		case strings.Contains(line[:min(len(line), 64)], `"method"`):
			continue
		}
		return parseAnswer(line)
	}
}

func parseAnswer(line string) (answer, error) {
	a := answer{line: line}
	if err := json.Unmarshal([]byte(line), &a); err != nil {
		return answer{}, fmt.Errorf("no JSON: %.200s", line)
	}
	return a, nil
}

// good returns an error unless the call succeeded.
func (a answer) good(what string) error {
	if a.Result.IsError || len(a.Result.Content) == 0 {
		return fmt.Errorf("%s: not so: %.500s", what, a.line)
	}
	return nil
}

// await returns the answer with this string as its id, and passes others to other.
func (h *host) await(id string, other func(answer) error) (answer, error) {
	for {
		a, err := h.answer()
		if err != nil {
			return a, fmt.Errorf("waiting for %q: %w", id, err)
		}
		if string(a.ID) == fmt.Sprintf("%q", id) {
			return a, nil
		}
		if err := other(a); err != nil {
			return a, err
		}
	}
}

// stop closes the stdin of dynmcp and waits for its end.
func (h *host) stop() error {
	h.ended = true
	h.closeStdin()
	var err error
	for err == nil {
		_, err = h.answer()
	}
	if !errors.Is(err, io.EOF) {
		_ = h.cmd.Process.Kill() // it does not end or does not send JSON, as err says
	}
	<-h.wrote
	h.pipe.Close()
	return errors.Join(unlessEOF(err), h.cmd.Wait())
}

func unlessEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// quit ends dynmcp with SIGQUIT and returns its stderr, which has the stacks of all
// goroutines.
func (h *host) quit() string {
	h.ended = true
	_ = h.cmd.Process.Signal(syscall.SIGQUIT) // it may have ended
	kill := time.AfterFunc(10*time.Second, func() { _ = h.cmd.Process.Kill() })
	defer kill.Stop()
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(io.Discard, h.out)
	}()
	_ = h.cmd.Wait() // the status is 2 after SIGQUIT
	h.closeStdin()   // not before, since the end of stdin ends goroutines
	<-h.wrote
	<-read
	h.pipe.Close()
	return h.stderr.String()
}

// end ends a dynmcp that still runs because a step failed, and prints its stderr. It is
// meant to be deferred.
func (h *host) end() {
	if !h.ended {
		os.Stderr.WriteString(h.quit())
	}
}
