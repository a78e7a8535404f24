package main

import (
	"bufio"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// A host is a dynmcp with its servers, and our end of its pipes.
type host struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	marker string
	write  sync.Mutex
}

// An entry is a server of a config: a fake with these arguments.
type entry struct {
	name   string
	args   []string
	fields map[string]any
}

// config writes a config of these entries.
func (s *soak) config(entries []entry) (string, error) {
	servers := map[string]map[string]any{}
	for _, e := range entries {
		fields := map[string]any{"command": s.fake, "args": append([]string{}, e.args...)}
		for key, value := range e.fields {
			fields[key] = value
		}
		servers[e.name] = fields
	}
	text, err := json.Marshal(map[string]any{"mcp": servers, "startup_wait": "60s"})
	if err != nil {
		return "", err
	}
	path := filepath.Join(s.dir, rand.Text()+".json")
	return path, os.WriteFile(path, text, 0o600)
}

// start runs dynmcp and waits until its servers are there.
func (s *soak) start(entries ...entry) (*host, error) {
	path, err := s.config(entries)
	if err != nil {
		return nil, err
	}
	h := &host{cmd: exec.Command(s.dynmcp, "--log-level", "error", "-c", path), marker: "SOAK=" + rand.Text()}
	h.cmd.Env = append(os.Environ(), h.marker)
	h.cmd.Dir = s.dir
	h.cmd.Stderr = os.Stderr
	if h.in, err = h.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	h.out = bufio.NewReaderSize(out, 1<<20)
	if err := h.cmd.Start(); err != nil {
		return nil, err
	}
	h.send(`{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"soak","version":"1"}}}`)
	h.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	h.send(`{"jsonrpc":"2.0","id":"lists","method":"tools/list"}`)
	for {
		a, err := h.answer()
		if err != nil || string(a.ID) == `"lists"` {
			return h, err
		}
	}
}

func (h *host) send(line string) {
	h.write.Lock()
	defer h.write.Unlock()
	_, _ = io.WriteString(h.in, line+"\n") // a dynmcp that is gone does not answer either
}

func (h *host) call(id int, tool, input string) {
	h.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"use_tool","arguments":{"tool_name":%q,"tool_input":%s}}}`, id, tool, input))
}

// An answer is what matters of a line.
type answer struct {
	ID     json.RawMessage
	Result struct {
		StructuredContent json.RawMessage
		IsError           bool
	}
	line string
}

// answer returns the next answer; what else dynmcp says is passed over, and
// not looked at: it must not count as time that dynmcp took.
func (h *host) answer() (answer, error) {
	for {
		line, err := h.out.ReadString('\n')
		if err != nil {
			return answer{}, err
		}
		if strings.Contains(line[:min(len(line), 64)], `"method"`) {
			continue
		}
		a := answer{line: line}
		if err := json.Unmarshal([]byte(line), &a); err != nil {
			return answer{}, fmt.Errorf("no JSON: %.200s", line)
		}
		return a, nil
	}
}

// stop ends dynmcp politely.
func (h *host) stop() error {
	h.in.Close()
	_, _ = io.Copy(io.Discard, h.out)
	return h.cmd.Wait()
}
