// Command tokens counts the tokens that a model reads through dynmcp with real catalogs.
// It runs `dynmcp tokens` with servers that are all lazy, partly lazy or all eager. This
// program serves the catalogs in place of the real servers.
//
// Usage, from the root of the module:
//
//	go run -C bench ./tokens                     the catalogs of $DYNMCP_CORPUS or ../shared/corpus
//	go run -C bench ./tokens path/to/corpus      those of another folder
//
// A corpus has a file servers/NAME.json for each server with its tools, prompts, resources,
// resourceTemplates, capabilities, serverInfo and instructions.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/dynmcp/dynmcp/bench/internal/corpus"
	"github.com/dynmcp/dynmcp/bench/internal/programs"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) == 3 && os.Args[1] == "serve" {
		if err := corpus.Serve(os.Args[2]); err != nil {
			log.Fatal(err)
		}
		return
	}
	if err := programs.EnterRoot(); err != nil {
		log.Fatal(err)
	}
	dir := corpus.Dir()
	if len(os.Args) > 1 {
		dir = os.Args[1]
	}
	if err := run(dir); err != nil {
		log.Fatal(err)
	}
}

// typical are ten servers that people use together.
var typical = []string{"github", "filesystem", "playwright", "slack", "notion", "sentry", "postgres", "context7", "kubernetes", "supabase"}

// modes select the eager servers, which have no description.
var modes = []struct {
	name  string
	eager func(i int) bool
}{
	{"all lazy", func(int) bool { return false }},
	{"mixed", func(i int) bool { return i%8 == 3 || i == 0 }},
	{"all eager", func(int) bool { return true }},
}

func run(from string) error {
	servers, err := corpus.Read(from)
	if err != nil {
		return err
	}
	dir, err := programs.Build("./cmd/dynmcp")
	defer os.RemoveAll(dir)
	if err != nil {
		return err
	}
	ten := slices.DeleteFunc(slices.Clone(servers), func(s corpus.Server) bool { return !slices.Contains(typical, s.Name) })

	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "read at the start\tdirectly\tdynmcp")
	var lazy, types ledger
	for _, set := range [][]corpus.Server{ten, servers} {
		if len(set) == 0 {
			continue
		}
		for _, m := range modes {
			l, err := count(dir, set, m.eager, "json")
			if err != nil {
				return err
			}
			if m.name == modes[0].name {
				lazy = l
			}
			fmt.Fprintf(w, "%d servers, %s\t%d\t%d\n", len(set), m.name, l.Direct, l.Through)
		}
	}
	l, err := countDocument(dir)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "an API of %d operations, lazy\t%d\t%d\n", operations, l.Direct, l.Through)
	if types, err = count(dir, servers, modes[0].eager, "typescript"); err != nil {
		return err
	}
	fmt.Fprintln(w, "\nread when it is asked for\tcounted\tmedian\tmost\twith types: median\tmost")
	for i, a := range lazy.Answers {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\n", a.Call, a.Calls, a.Median, a.Most, types.Answers[i].Median, types.Answers[i].Most)
	}
	return w.Flush()
}

// operations are those of the document that countDocument counts.
const operations = 1000

// countDocument runs dynmcp tokens with an entry whose OpenAPI document has many operations.
func countDocument(dir string) (l ledger, err error) {
	paths := map[string]any{}
	for i := range operations {
		paths[fmt.Sprintf("/shops/{shop}/things%d", i)] = map[string]any{"get": map[string]any{
			"operationId": fmt.Sprintf("things/list-%d", i), "summary": fmt.Sprintf("List the things of kind %d", i), "tags": []string{fmt.Sprintf("kind %d", i%20)},
			"parameters": []any{
				map[string]any{"name": "shop", "in": "path", "required": true, "schema": map[string]any{"type": "string"}},
				map[string]any{"name": "page", "in": "query", "description": "Which page, from 1", "schema": map[string]any{"type": "integer", "minimum": 1}},
			},
		}}
	}
	text, err := json.Marshal(map[string]any{"openapi": "3.0.3", "info": map[string]any{"title": "Shops", "version": "1"}, "paths": paths})
	if err != nil {
		return l, err
	}
	document := filepath.Join(dir, "openapi.json")
	if err := os.WriteFile(document, text, 0o600); err != nil {
		return l, err
	}
	return ledgerOf(dir, "json", map[string]any{"shops": map[string]any{"openapi": document, "url": "http://127.0.0.1:1", "description": "Shops and their things, by kind."}})
}

// A ledger is the output of `dynmcp tokens --json`.
type ledger struct {
	Direct  int
	Through int `json:"dynmcp"`
	Answers []struct {
		Call                string
		Calls, Median, Most int
	}
}

// count runs dynmcp tokens with servers, without a stored catalog, and with definitions in
// this format.
func count(dir string, servers []corpus.Server, eager func(i int) bool, definitions string) (l ledger, err error) {
	self, err := os.Executable()
	if err != nil {
		return l, err
	}
	entries := map[string]any{}
	for i, s := range servers {
		entry := map[string]any{"command": self, "args": []string{"serve", s.File}, "load_timeout": "5m"}
		if !eager(i) {
			entry["description"] = words(s)
		}
		entries[s.Name] = entry
	}
	return ledgerOf(dir, definitions, entries)
}

// ledgerOf runs dynmcp tokens with these entries.
func ledgerOf(dir, definitions string, entries map[string]any) (l ledger, err error) {
	config, err := json.Marshal(map[string]any{"startup_wait": "5m", "catalog": map[string]any{"dir": "", "definitions": definitions}, "mcp": entries})
	if err != nil {
		return l, err
	}
	file := filepath.Join(dir, "mcp.json")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		return l, err
	}
	cmd := exec.Command(filepath.Join(dir, "dynmcp"), "tokens", "--json", "-c", file)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return l, fmt.Errorf("dynmcp tokens: %w", err)
	}
	return l, json.Unmarshal(out, &l)
}

// usualWords is the usual length of a description by an operator. The names of the tools
// replace it here.
const usualWords = 107

func words(s corpus.Server) string {
	text := "Works with " + s.Name + ":"
	for _, tool := range s.Tools {
		text += " " + strings.NewReplacer("_", " ", "-", " ").Replace(tool) + ","
		if len(text) > usualWords {
			break
		}
	}
	return strings.TrimSuffix(text[:min(len(text), usualWords)], ",") + "."
}
