// Command fakenpx replaces npx where the commands of the documentation are run or recorded. It "runs"
// the packages of packages.txt: MCP servers on stdin and stdout with the listed tools and constant
// answers. It ignores the options before the name of a package, such as -y, and the arguments after
// it.
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

// A server is one package: its name and its lists.
type server struct {
	name, title, version      string
	tools, prompts, resources []item
}

// An item is a line of packages.txt: a tool, prompt or resource with its name, the names
// of its arguments (of a resource, its URI), its description, and its answer.
type item struct {
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

// trimVersion removes the version from NAME@VERSION. The first @ may be a scope's.
func trimVersion(word string) string {
	if at := strings.LastIndex(word, "@"); at > 0 {
		return word[:at]
	}
	return word
}

// parse reads packages.txt. A line "package NAME TITLE VERSION" begins a package. Each line after it
// is a tool, "NAME ARG… | ABOUT | ANSWER", or with a leading word "prompt" or "resource" one of
// those.
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
			list := &s.tools
			switch words[0] {
			case "prompt":
				list, words = &s.prompts, words[1:]
			case "resource":
				list, words = &s.resources, words[1:]
			}
			it := item{name: words[0], args: words[1:], about: strings.TrimSpace(parts[1]), answer: "done"}
			if len(parts) == 3 {
				it.answer = strings.ReplaceAll(strings.TrimSpace(parts[2]), `\n`, "\n")
			}
			*list = append(*list, it)
		}
	}
	return known
}

type request struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name            string          `json:"name"`
		URI             string          `json:"uri"`
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
		reply := object{"jsonrpc": "2.0", "id": r.ID}
		if result := s.result(r); result != nil {
			reply["result"] = result
		} else {
			reply["error"] = object{"code": -32601, "message": "Method not found"}
		}
		if out.Encode(reply) != nil {
			return
		}
	}
}

type object = map[string]any

// result returns the result of a request, nil for an unknown method.
func (s *server) result(r request) any {
	switch r.Method {
	case "initialize":
		return object{
			"protocolVersion": r.Params.ProtocolVersion,
			"capabilities":    s.capabilities(),
			"serverInfo":      object{"name": s.title, "version": s.version},
		}
	case "ping":
		return object{}
	case "tools/list":
		return object{"tools": list(s.tools, item.tool)}
	case "prompts/list":
		return object{"prompts": list(s.prompts, item.prompt)}
	case "resources/list":
		return object{"resources": list(s.resources, item.resource)}
	case "resources/templates/list":
		return object{"resourceTemplates": []any{}}
	case "tools/call":
		return answer(s.tools, r.Params.Name, func(it item) any {
			text := strings.ReplaceAll(it.answer, "ARGUMENTS", string(r.Params.Arguments))
			return object{"content": []any{object{"type": "text", "text": text}}}
		})
	case "prompts/get":
		return answer(s.prompts, r.Params.Name, func(it item) any {
			return object{"messages": []any{object{"role": "user", "content": object{"type": "text", "text": it.answer}}}}
		})
	case "resources/read":
		for _, it := range s.resources {
			if it.args[0] == r.Params.URI {
				return object{"contents": []any{object{"uri": r.Params.URI, "mimeType": "text/plain", "text": it.answer}}}
			}
		}
	}
	return nil
}

func (s *server) capabilities() any {
	c := object{"tools": object{}}
	if s.prompts != nil {
		c["prompts"] = object{}
	}
	if s.resources != nil {
		c["resources"] = object{}
	}
	return c
}

func list(items []item, show func(item) any) []any {
	shown := []any{}
	for _, it := range items {
		shown = append(shown, show(it))
	}
	return shown
}

func answer(items []item, name string, say func(item) any) any {
	for _, it := range items {
		if it.name == name {
			return say(it)
		}
	}
	return nil
}

// tool returns the item for tools/list. An argument that ends in "?" is optional; one that begins with
// "#" is a number.
func (it item) tool() any {
	properties, required := object{}, []string{}
	for _, arg := range it.args {
		name, optional := strings.CutSuffix(arg, "?")
		name, number := strings.CutPrefix(name, "#")
		kind := "string"
		if number {
			kind = "number"
		}
		properties[name] = object{"type": kind, "description": "The " + strings.ReplaceAll(name, "_", " ") + "."}
		if !optional {
			required = append(required, name)
		}
	}
	return object{
		"name": it.name, "description": it.about,
		"inputSchema": object{"type": "object", "properties": properties, "required": required},
	}
}

func (it item) prompt() any {
	arguments := []any{}
	for _, arg := range it.args {
		name, optional := strings.CutSuffix(arg, "?")
		arguments = append(arguments, object{"name": name, "required": !optional})
	}
	return object{"name": it.name, "description": it.about, "arguments": arguments}
}

func (it item) resource() any {
	return object{"uri": it.args[0], "name": it.name, "description": it.about, "mimeType": "text/plain"}
}
