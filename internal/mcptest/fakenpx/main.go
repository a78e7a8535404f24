// Command fakenpx stands in for npx where the commands of the documentation are run
// or recorded. It "runs" the packages of packages.txt: MCP servers on stdin and stdout
// with the tools that file lists, and with answers that are always the same. What comes
// before the name of a package, such as -y, is ignored, and so are its arguments.
package main

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

//go:embed packages.txt
var packages string

// A server is one package: its name and the tools it lists.
type server struct {
	name, title, version string
	tools                []tool
}

// A tool is a line of packages.txt: its name, the names of its arguments, a sentence
// about it, and what a call of it answers.
type tool struct {
	name, about, answer string
	args                []string
}

func main() {
	known := parse(packages)
	for _, word := range os.Args[1:] {
		if s, ok := known[trimVersion(word)]; ok {
			s.serve()
			return
		}
	}
	fmt.Fprintf(os.Stderr, "npm error code E404\nnpm error 404 Not Found: %s\n", strings.Join(os.Args[1:], " "))
	os.Exit(1)
}

// trimVersion takes the version off NAME@VERSION. The first @ may be a scope's.
func trimVersion(word string) string {
	if at := strings.LastIndex(word, "@"); at > 0 {
		return word[:at]
	}
	return word
}

// parse reads packages.txt: a line "package NAME TITLE VERSION" begins a package, and
// each line after it is a tool: "NAME ARG… | ABOUT | ANSWER".
func parse(text string) map[string]*server {
	known := map[string]*server{}
	var s *server
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		words := strings.Fields(line)
		switch {
		case line == "" || line[0] == '#':
		case words[0] == "package":
			s = &server{name: words[1], title: words[2], version: words[3]}
			known[s.name] = s
		default:
			parts := strings.SplitN(line, "|", 3)
			words = strings.Fields(parts[0])
			t := tool{name: words[0], args: words[1:], about: strings.TrimSpace(parts[1]), answer: "done"}
			if len(parts) == 3 {
				t.answer = strings.TrimSpace(parts[2])
			}
			s.tools = append(s.tools, t)
		}
	}
	return known
}

type request struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name            string          `json:"name"`
		ProtocolVersion string          `json:"protocolVersion"`
		Arguments       json.RawMessage `json:"arguments"`
	} `json:"params"`
}

func (s *server) serve() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	for lines.Scan() {
		var r request
		if json.Unmarshal(lines.Bytes(), &r) != nil || r.ID == nil || r.Method == "" {
			continue
		}
		reply := map[string]any{"jsonrpc": "2.0", "id": r.ID}
		if result := s.result(r); result != nil {
			reply["result"] = result
		} else {
			reply["error"] = map[string]any{"code": -32601, "message": "Method not found"}
		}
		if out.Encode(reply) != nil {
			return
		}
	}
}

// result answers a request. It is nil for a method that the server lacks.
func (s *server) result(r request) any {
	switch r.Method {
	case "initialize":
		return map[string]any{
			"protocolVersion": r.Params.ProtocolVersion,
			"capabilities":    map[string]any{"tools": map[string]any{}},
			"serverInfo":      map[string]any{"name": s.title, "version": s.version},
		}
	case "ping":
		return map[string]any{}
	case "tools/list":
		definitions := []any{}
		for _, t := range s.tools {
			definitions = append(definitions, t.definition())
		}
		return map[string]any{"tools": definitions}
	case "tools/call":
		for _, t := range s.tools {
			if t.name == r.Params.Name {
				text := strings.ReplaceAll(t.answer, "ARGUMENTS", string(r.Params.Arguments))
				return map[string]any{"content": []any{map[string]any{"type": "text", "text": strings.ReplaceAll(text, `\n`, "\n")}}}
			}
		}
	}
	return nil
}

// definition is the tool as tools/list shows it. An argument with "?" may be left out.
func (t tool) definition() any {
	properties, required := map[string]any{}, []string{}
	for _, arg := range t.args {
		name, optional := strings.CutSuffix(arg, "?")
		properties[name] = map[string]any{"type": "string", "description": "The " + strings.ReplaceAll(name, "_", " ") + "."}
		if !optional {
			required = append(required, name)
		}
	}
	return map[string]any{
		"name": t.name, "description": t.about,
		"inputSchema": map[string]any{"type": "object", "properties": properties, "required": required},
	}
}
