package corpus

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A Question is a labelled query: a list of needed tools, each a list of acceptable ids.
type Question struct {
	ID, Query string
	Gold      [][]string
}

// Recall returns the share of the needed tools with an acceptable id.
func (q Question) Recall(has func(id string) bool) float64 {
	hit := 0
	for _, ok := range q.Gold {
		if slices.ContainsFunc(ok, has) {
			hit++
		}
	}
	return float64(hit) / float64(len(q.Gold))
}

// Labelled is a set of queries with the tools that they need.
type Labelled struct {
	Servers   []Server
	IDs       map[string]string // by server/tool
	Questions []Question
}

// ReadLabelled reads a set of labelled queries, and writes the catalogues of its servers to dir. Tools
// with the same name as an earlier one of their server are renamed.
func ReadLabelled(corpus, set, dir string) (*Labelled, error) {
	l := &Labelled{IDs: map[string]string{}}
	tools := map[string][]map[string]any{}
	err := readLines(filepath.Join(corpus, "retrieval", set, "tools.jsonl"), func(line []byte) error {
		var about struct{ ID, Server, Name string }
		var tool map[string]any
		if err := json.Unmarshal(line, &about); err != nil {
			return err
		}
		if err := json.Unmarshal(line, &tool); err != nil {
			return err
		}
		if tools[about.Server] == nil {
			l.Servers = append(l.Servers, Server{Name: plain(about.Server), File: filepath.Join(dir, fmt.Sprintf("%s-%d.json", set, len(l.Servers)))})
		}
		for l.IDs[plain(about.Server)+"/"+about.Name] != "" {
			about.Name += "·"
		}
		l.IDs[plain(about.Server)+"/"+about.Name] = about.ID
		tool["name"] = about.Name
		tools[about.Server] = append(tools[about.Server], tool)
		at := slices.IndexFunc(l.Servers, func(s Server) bool { return s.Name == plain(about.Server) })
		l.Servers[at].Tools = append(l.Servers[at].Tools, about.Name)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for server, list := range tools {
		at := slices.IndexFunc(l.Servers, func(s Server) bool { return s.Name == plain(server) })
		text, err := json.Marshal(map[string]any{"tools": list, "capabilities": map[string]any{"tools": map[string]any{}}, "serverInfo": map[string]any{"name": server, "version": "1"}})
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(l.Servers[at].File, text, 0o600); err != nil {
			return nil, err
		}
	}
	return l, readLines(filepath.Join(corpus, "retrieval", set, "queries.jsonl"), func(line []byte) error {
		var q Question
		l.Questions = append(l.Questions, q)
		return json.Unmarshal(line, &l.Questions[len(l.Questions)-1])
	})
}

// plain returns the name of a server as import writes it.
func plain(name string) string {
	return strings.ToLower(strings.NewReplacer(" ", "-", "/", "-").Replace(name))
}

func readLines(path string, f func([]byte) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if err := f(lines.Bytes()); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return lines.Err()
}
