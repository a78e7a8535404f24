package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// A host is one session with dynmcp.
type host struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	id  int

	list, description, instructions string // what it reads at the start
}

// start runs dynmcp before servers and lists its tools.
func start(binary, dir string, servers []server, eager func(i int) bool) (*host, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	config := []byte(`{"startup_wait":"5m","mcp":{`)
	for i, s := range servers {
		entry := map[string]any{"command": self, "args": []string{"serve", s.file}, "load_timeout": "5m"}
		if !eager(i) {
			entry["description"] = s.words
		}
		text, err := json.Marshal(entry)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			config = append(config, ',')
		}
		config = fmt.Appendf(config, "%q:%s", s.name, text)
	}
	file := filepath.Join(dir, "mcp.json")
	if err := os.WriteFile(file, append(config, "}}"...), 0o600); err != nil {
		return nil, err
	}
	h := &host{cmd: exec.Command(binary, "--log-level", "error", "-c", file)}
	h.cmd.Stderr = os.Stderr
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
	var hello struct{ Instructions string }
	var list struct {
		Tools []struct{ Description string }
	}
	raw, err := h.request("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"tokens","version":"1"}}`)
	if err == nil {
		err = json.Unmarshal(raw, &hello)
	}
	if err == nil {
		_, err = io.WriteString(h.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
	}
	if err == nil {
		raw, err = h.request("tools/list", `{}`)
	}
	if err == nil {
		err = json.Unmarshal(raw, &list)
	}
	if err == nil && len(list.Tools) == 0 {
		err = errors.New("dynmcp lists no tools")
	}
	if err != nil {
		h.end()
		return nil, err
	}
	h.list, h.instructions, h.description = string(raw), hello.Instructions, list.Tools[0].Description
	return h, nil
}

func (h *host) request(method, params string) (json.RawMessage, error) {
	h.id++
	if _, err := fmt.Fprintf(h.in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", h.id, method, params); err != nil {
		return nil, err
	}
	for {
		line, err := h.out.ReadBytes('\n')
		if err != nil {
			return nil, fmt.Errorf("%s: %w", method, err)
		}
		var m struct {
			ID            int
			Result, Error json.RawMessage
		}
		if json.Unmarshal(line, &m) != nil || m.ID != h.id {
			continue
		}
		if m.Error != nil {
			return nil, fmt.Errorf("%s: %s", method, m.Error)
		}
		return m.Result, nil
	}
}

// call returns the text that a tool of dynmcp answers.
func (h *host) call(tool, arguments string) (string, error) {
	raw, err := h.request("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, arguments))
	if err != nil {
		return "", err
	}
	var result struct{ Content []struct{ Text string } }
	if err := json.Unmarshal(raw, &result); err != nil {
		return "", err
	}
	text := ""
	for _, c := range result.Content {
		text += c.Text
	}
	return text, nil
}

// end ends the session and waits for dynmcp, whose exit is of no interest.
func (h *host) end() {
	h.in.Close()
	_ = h.cmd.Wait()
}
