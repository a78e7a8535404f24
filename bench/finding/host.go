package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/dynmcp/dynmcp/bench/internal/corpus"
	"github.com/dynmcp/dynmcp/bench/internal/hosts"
)

// A host is a running dynmcp and the host's end of its connection.
type host struct {
	*hosts.Host
	instructions string
}

// start starts dynmcp with a config, for a host with the name client.
func start(program, config, client string) (*host, error) {
	cmd := exec.Command(program, "-c", config, "--log-level", "error")
	cmd.Stderr = os.Stderr
	running, err := hosts.Start(cmd)
	if err != nil {
		return nil, err
	}
	h := &host{Host: running}
	if h.instructions, err = h.Greet(client); err != nil {
		h.End()
		return nil, err
	}
	return h, nil
}

// discover calls discover_tool, and returns the text of its answer.
func (h *host) discover(arguments map[string]any) (string, error) {
	text, failed, err := h.Tool("discover_tool", arguments)
	if err == nil && (failed || text == "") {
		err = fmt.Errorf("discover_tool %v: %s", arguments, text)
	}
	return text, err
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
	err = h.Ask("tools/list", map[string]any{}, &result)
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
