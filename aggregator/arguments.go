package aggregator

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports/host"
)

// refuseArguments answers a call of a tool of ours whose arguments are wrong. What is
// refused was not passed on: it is not known what of it was meant.
func refuseArguments(r *host.Request, tool string, err error) {
	r.Reply(errorResult(fmt.Sprintf("%s: %v (outcome not_sent: nothing was called)", tool, err)), nil)
}

// An argumentReader reads the arguments of a tool of ours by their names: zero is what is
// absent, null or not what it must be.
type argumentReader struct {
	values map[string]json.RawMessage // nil of absent and null ones
	errs   []error                    // what is wrong with them
}

// readArguments reads arguments that have these names. Any other member is an error:
// what is not known must not be lost silently.
func readArguments(arguments json.RawMessage, names ...string) *argumentReader {
	in := &argumentReader{values: map[string]json.RawMessage{}}
	if len(arguments) == 0 || string(arguments) == "null" {
		return in
	}
	if !wire.IsObject(arguments) {
		in.fail("the arguments must be an object, not %s", wire.TypeName(arguments))
		return in
	}
	for key, value := range wire.Members(arguments) {
		i := slices.IndexFunc(names, func(name string) bool { return wire.EqualString(key, name) })
		switch {
		case i < 0:
			in.fail("it has no argument %s, only %s", key, strings.Join(names, ", "))
		case in.values[names[i]] != nil:
			in.fail("member %s is there twice", key)
		case string(value) != "null":
			in.values[names[i]] = value
		}
		if in.errs != nil {
			in.values = nil // nothing more is said of them
			break
		}
	}
	return in
}

func (in *argumentReader) fail(format string, args ...any) {
	in.errs = append(in.errs, fmt.Errorf(format, args...))
}

func (in *argumentReader) err() error { return errors.Join(in.errs...) }

func (in *argumentReader) has(name string) bool { return in.values[name] != nil }

func (in *argumentReader) text(name string) string {
	text, ok := wire.Text(in.values[name])
	if in.has(name) && !ok {
		in.fail("%q must be a string, not %s", name, wire.TypeName(in.values[name]))
	}
	return text
}

// number reads a whole number, also one in a string, as models write them.
func (in *argumentReader) number(name string) int {
	value := in.values[name]
	text, isText := wire.Text(value)
	if !isText {
		text = string(value)
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if value != nil && (err != nil || n != float64(int(n))) {
		in.fail("%q must be a whole number, not %s", name, cutValue(value))
	}
	return int(n)
}

// flag reads true or false, also in a string.
func (in *argumentReader) flag(name string) bool {
	value := in.values[name]
	text, isText := wire.Text(value)
	if !isText {
		text = string(value)
	}
	switch strings.ToLower(text) {
	case "true":
		return true
	case "false", "":
	default:
		in.fail("%q must be true or false, not %s", name, cutValue(value))
	}
	return false
}

// object reads an object, also one in a string, as some hosts write it.
func (in *argumentReader) object(name string) json.RawMessage {
	value := in.values[name]
	if text, ok := wire.Text(value); ok {
		value = wire.JoinLines([]byte(strings.TrimSpace(text)))
		if !wire.Valid(value) {
			in.fail("%q is a string that holds no JSON; pass an object", name)
			return nil
		}
	}
	if value != nil && !wire.IsObject(value) {
		in.fail("%q must be an object, not %s", name, wire.TypeName(value))
		return nil
	}
	return value
}

// choice reads one of a few texts, which must be there.
func (in *argumentReader) choice(name string, of []string) string {
	value := in.values[name]
	text, ok := wire.Text(value)
	switch {
	case value == nil:
		in.fail("%q is missing: one of %s", name, strings.Join(of, ", "))
	case !ok || !slices.Contains(of, text):
		in.fail("%q must be one of %s, not %s", name, strings.Join(of, ", "), cutValue(value))
	}
	return text
}

// cutValue shows a value that is not what it must be.
func cutValue(value json.RawMessage) string {
	if len(value) > 50 {
		return wire.TypeName(value)
	}
	return string(value)
}

// A discovery is what discover_tool is asked for.
type discovery struct {
	tool, query, server string
	full                bool
	limit, offset       int
}

func readDiscovery(arguments json.RawMessage) (discovery, error) {
	in := readArguments(arguments, "tool_name", "full", "query", "server", "limit", "offset")
	asked := discovery{
		tool: in.text("tool_name"), full: in.flag("full"), query: in.text("query"), server: in.text("server"),
		limit: in.number("limit"), offset: in.number("offset"),
	}
	return asked, in.err()
}

// A loading is what load_mcp is asked for.
type loading struct {
	name, query string
	retry       bool
}

func readLoading(arguments json.RawMessage) (loading, error) {
	in := readArguments(arguments, "mcp_name", "query", "retry")
	asked := loading{name: in.text("mcp_name")}
	if in.errs == nil && asked.name == "" {
		in.fail(`"mcp_name" is missing`)
	}
	asked.query, asked.retry = in.text("query"), in.flag("retry")
	return asked, in.err()
}

// inputNames are what models call the input.
var inputNames = []string{"arguments", "args", "input", "params", "tool_input"}

// An innerNames says what a tool of ours calls the two arguments by which it calls
// another tool.
type innerNames struct {
	tool, input string
	example     string // how both are to be written
}

var useNames = innerNames{"tool_name", "tool_input", `{"tool_name": "server/tool", "tool_input": {…}}`}

// innerArguments reads the arguments of a tool of ours that calls another one. The
// input is an object, or a string that holds one: some hosts write it so. Where there is
// none, one member that models write in its place is taken for it.
func innerArguments(arguments json.RawMessage, outline *wire.Outline, names innerNames) (tool string, input json.RawMessage, err error) {
	if len(arguments) == 0 {
		return "", nil, fmt.Errorf("%q is missing", names.tool)
	}
	if !wire.IsObject(arguments) {
		return "", nil, fmt.Errorf("the arguments must be an object, not %s", wire.TypeName(arguments))
	}
	unknown := func(key []byte) error {
		return fmt.Errorf(`it has no argument %s; the arguments of the tool go into %q: %s`, key, names.input, names.example)
	}
	var rawTool json.RawMessage
	var other []byte // the first member that is neither
	called := names.input
	for name, at := range outline.Spans(arguments) {
		key, value := name.In(arguments), at.In(arguments)
		var twice bool
		switch {
		case wire.EqualString(key, names.tool):
			rawTool, twice = value, rawTool != nil
		case wire.EqualString(key, names.input):
			input, twice = value, input != nil
		case other != nil:
			return "", nil, unknown(key)
		default:
			other = key
		}
		if twice {
			return "", nil, fmt.Errorf("member %s is there twice", key)
		}
	}
	if other != nil {
		synonym, _ := wire.Text(other)
		if input != nil || !slices.Contains(inputNames, synonym) {
			return "", nil, unknown(other)
		}
		called, input = synonym, outline.Get(arguments, synonym)
	}
	tool, ok := wire.Text(rawTool)
	switch {
	case rawTool == nil || ok && tool == "":
		return "", nil, fmt.Errorf("%q is missing", names.tool)
	case !ok:
		return "", nil, fmt.Errorf(`%q must be a string, not %s`, names.tool, wire.TypeName(rawTool))
	}
	if text, ok := wire.Text(input); ok {
		input = wire.JoinLines([]byte(strings.TrimSpace(text)))
		if !wire.Valid(input) {
			return "", nil, fmt.Errorf(`%q is a string that holds no JSON; pass the tool's arguments as an object`, called)
		}
	}
	if len(input) == 0 || string(input) == "null" {
		input = json.RawMessage(`{}`)
	}
	if !wire.IsObject(input) {
		return "", nil, fmt.Errorf(`%q must be an object with the tool's arguments, not %s`, called, wire.TypeName(input))
	}
	return tool, input, nil
}
