// Package corpus reads catalogues of real servers, and serves them in place of the servers.
package corpus

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Dir returns the folder of the corpus, relative to the root of the module.
func Dir() string { return cmp.Or(os.Getenv("DYNMCP_CORPUS"), "../shared/corpus") }

// A Server is the catalogue of a real server.
type Server struct {
	Name, File string
	Tools      []string // names
}

// Read reads the catalogues of a corpus, sorted by name.
func Read(corpus string) ([]Server, error) {
	files, err := filepath.Glob(filepath.Join(corpus, "servers", "*.json"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no catalogues in %s: name the folder, or set DYNMCP_CORPUS", filepath.Join(corpus, "servers"))
	}
	var servers []Server
	for _, file := range files {
		var listed struct{ Tools []struct{ Name string } }
		text, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(text, &listed)
		}
		s := Server{Name: strings.TrimSuffix(filepath.Base(file), ".json")}
		if err == nil {
			s.File, err = filepath.Abs(file)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for _, t := range listed.Tools {
			s.Tools = append(s.Tools, t.Name)
		}
		servers = append(servers, s)
	}
	return servers, nil
}

// Serve serves a catalogue on stdin and stdout.
func Serve(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var c map[string]json.RawMessage
	if err := json.Unmarshal(text, &c); err != nil {
		return err
	}
	lines := bufio.NewReader(os.Stdin)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return nil // its host is gone
		}
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if json.Unmarshal(line, &m) != nil || m.ID == nil {
			continue
		}
		result := `"error":{"code":-32601,"message":"method not found"}`
		key := map[string]string{"tools/list": "tools", "prompts/list": "prompts", "resources/list": "resources", "resources/templates/list": "resourceTemplates"}[m.Method]
		switch list := c[key]; {
		case m.Method == "initialize":
			instructions, _ := json.Marshal(stringOf(c["instructions"])) // a string always encodes
			result = fmt.Sprintf(`"result":{"protocolVersion":"2025-11-25","capabilities":%s,"serverInfo":%s,"instructions":%s}`, c["capabilities"], c["serverInfo"], instructions)
		case key != "" && len(list) > 0 && list[0] == '[':
			result = fmt.Sprintf(`"result":{%q:%s}`, key, list)
		}
		if _, err := fmt.Printf(`{"jsonrpc":"2.0","id":%s,%s}`+"\n", m.ID, oneLine(result)); err != nil {
			return err
		}
	}
}

// stringOf reads a JSON string, "" if it is another value.
func stringOf(raw json.RawMessage) (s string) {
	_ = json.Unmarshal(raw, &s) // "" after an error
	return s
}

// oneLine removes line breaks between the tokens of JSON; strings have none.
func oneLine(s string) string { return strings.NewReplacer("\n", "", "\r", "").Replace(s) }
