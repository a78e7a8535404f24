package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/dynmcp/dynmcp/bench/internal/corpus"
)

// A host is a running dynmcp and the host's end of its connection.
type host struct {
	cmd          *exec.Cmd
	in           io.WriteCloser
	out          *bufio.Reader
	id           int
	instructions string
}

// start starts dynmcp with a config, for a host with the name client.
func start(program, config, client string) (*host, error) {
	h := &host{cmd: exec.Command(program, "-c", config, "--log-level", "error")}
	h.cmd.Stderr = os.Stderr
	var err error
	if h.in, err = h.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	h.out = bufio.NewReader(out)
	if err := h.cmd.Start(); err != nil {
		return nil, err
	}
	var result struct{ Instructions string }
	err = h.ask("initialize", map[string]any{"protocolVersion": "2025-11-25", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": client, "version": "1"}}, &result)
	if err == nil {
		_, err = io.WriteString(h.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
	}
	h.instructions = result.Instructions
	return h, err
}

// end ends dynmcp.
func (h *host) end() error {
	h.in.Close()
	return h.cmd.Wait()
}

// ask sends a request and reads lines until its answer.
func (h *host) ask(method string, params, result any) error {
	h.id++
	line, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": h.id, "method": method, "params": params})
	if err != nil {
		return err
	}
	if _, err := h.in.Write(append(line, '\n')); err != nil {
		return err
	}
	for {
		line, err := h.out.ReadBytes('\n')
		if err != nil {
			return fmt.Errorf("%s: %w", method, err)
		}
		var m struct {
			ID     int
			Result json.RawMessage
			Error  json.RawMessage
		}
		if err := json.Unmarshal(line, &m); err != nil {
			return err
		}
		switch {
		case m.ID != h.id:
		case m.Error != nil:
			return fmt.Errorf("%s: %s", method, m.Error)
		default:
			return json.Unmarshal(m.Result, result)
		}
	}
}

// discover calls discover_tool, and returns the text of its answer.
func (h *host) discover(arguments map[string]any) (string, error) {
	var result struct {
		Content []struct{ Text string }
		IsError bool
	}
	err := h.ask("tools/call", map[string]any{"name": "discover_tool", "arguments": arguments}, &result)
	if err == nil && (result.IsError || len(result.Content) != 1) {
		err = fmt.Errorf("discover_tool %v: %v", arguments, result)
	}
	if err != nil {
		return "", err
	}
	return result.Content[0].Text, nil
}

// A definition is the part of a tool that a host passes to a model.
type definition struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

// tools returns the tools that the host is offered.
func (h *host) tools() (tools []definition, err error) {
	var result struct{ Tools []definition }
	err = h.ask("tools/list", map[string]any{}, &result)
	return result.Tools, err
}

// config writes a config of servers with their descriptions, and lists them with dynmcp. Servers
// without a description are imported, which describes them.
func (b *bench) config(name string, servers []corpus.Server, written map[string]string) (file string, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	entries, others := map[string]any{}, map[string]any{}
	for _, s := range servers {
		entry := map[string]any{"command": self, "args": []string{"serve", s.File}}
		if words := written[s.Name]; words != "" {
			entry["description"] = words
			entries[s.Name] = entry
		} else {
			others[s.Name] = entry
		}
	}
	file = filepath.Join(b.dir, name+".json")
	if err := writeJSON(file, map[string]any{"mcp": entries}); err != nil {
		return "", err
	}
	if len(others) > 0 {
		from := filepath.Join(b.dir, name+"-host.json")
		if err := writeJSON(from, map[string]any{"mcpServers": others}); err != nil {
			return "", err
		}
		if err := b.dynmcp("import", "--lazy", "--write", "--from", from, "-c", file); err != nil {
			return "", err
		}
	}
	return file, b.dynmcp("warm", "-c", file)
}

func writeJSON(file string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o600)
}

// dynmcp runs a verb.
func (b *bench) dynmcp(args ...string) error {
	if out, err := exec.Command(b.program, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("dynmcp %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}
