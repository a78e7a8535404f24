package probe

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/dynmcp/dynmcp/internal/wire"
)

// An event is one of an event stream (HTML, "Server-sent events").
type event struct{ name, data, id string }

// readEvents passes on the events of a stream that have data, and returns the last id.
func readEvents(from io.Reader, each func(event)) (last string, err error) {
	in := bufio.NewReaderSize(from, 64<<10)
	var e event
	var data []string
	for {
		line, err := in.ReadString('\n')
		line = strings.TrimRight(line, "\r\n")
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "" && err == nil:
			if e.data = strings.Join(data, "\n"); e.data != "" {
				each(e)
			}
			e, data = event{}, nil
		case name == "data":
			data = append(data, value)
		case name == "event":
			e.name = value
		case name == "id":
			e.id, last = value, value
		}
		if errors.Is(err, io.EOF) {
			return last, nil
		}
		if err != nil {
			return last, err
		}
	}
}

// subjects are the members of params that Mcp-Name repeats, by method.
var subjects = map[string]string{"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}

// setSubject sets the headers that repeat the subject of a call (MCP 2026-07-28, "Streamable HTTP").
func setSubject(header http.Header, call *Call, bindings map[string][]binding) {
	header.Set("Mcp-Method", call.Method)
	subject, ok := wire.Text(wire.Get(call.Params, subjects[call.Method]))
	if !ok {
		return
	}
	header.Set("Mcp-Name", headerText(subject))
	if call.Method != "tools/call" {
		return
	}
	for _, b := range bindings[subject] {
		value := wire.Get(call.Params, append([]string{"arguments"}, b.path...)...)
		text, isText := wire.Text(value)
		switch wire.TypeName(value) {
		case "a number", "a boolean":
			text, isText = string(value), true
		}
		if isText {
			header.Set("Mcp-Param-"+b.header, headerText(text))
		}
	}
}

// headerText returns a text as the value of a header.
func headerText(text string) string {
	plain := func(r rune) bool { return r >= ' ' && r <= '~' }
	if strings.TrimSpace(text) == text && strings.IndexFunc(text, func(r rune) bool { return !plain(r) }) < 0 && !strings.HasPrefix(text, "=?base64?") {
		return text
	}
	return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(text)) + "?="
}

// A binding is an argument that is repeated in a header.
type binding struct {
	path   []string
	header string
}

// bindingsOf returns the arguments that an input schema marks with x-mcp-header.
func bindingsOf(schema []byte, path ...string) (all []binding) {
	var node struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	_ = json.Unmarshal(schema, &node) // a schema of another type has no properties
	for name, property := range node.Properties {
		here := append(path[:len(path):len(path)], name)
		if header, ok := wire.Text(wire.Get(property, "x-mcp-header")); ok {
			all = append(all, binding{here, header})
		}
		all = append(all, bindingsOf(property, here...)...)
	}
	return all
}
