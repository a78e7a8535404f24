package aggregator

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dynmcp/internal/wire"
	"dynmcp/transports/host"
)

// refuseArguments answers a call of a tool of ours whose arguments are wrong. What is
// refused was not passed on: it is not known what of it was meant.
func refuseArguments(r *host.Request, tool string, err error) {
	r.Reply(errorResult(fmt.Sprintf("%s: %v (outcome not_sent: nothing was called)", tool, err)), nil)
}

// readMembers returns the values of the members of arguments that have these
// names, nil for absent and null ones. Any other member is an error: what is not
// known must not be lost silently.
func readMembers(arguments json.RawMessage, names ...string) ([]json.RawMessage, error) {
	values := make([]json.RawMessage, len(names))
	if len(arguments) == 0 || string(arguments) == "null" {
		return values, nil
	}
	if !wire.IsObject(arguments) {
		return nil, fmt.Errorf("the arguments must be an object, not %s", wire.TypeName(arguments))
	}
	for key, value := range wire.Members(arguments) {
		i := slices.IndexFunc(names, func(name string) bool { return wire.EqualString(key, name) })
		switch {
		case i < 0:
			return nil, fmt.Errorf("it has no argument %s, only %s", key, strings.Join(names, ", "))
		case values[i] != nil:
			return nil, fmt.Errorf("member %s is there twice", key)
		case string(value) != "null":
			values[i] = value
		}
	}
	return values, nil
}

// textOf reads a string, "" if value is nil.
func textOf(name string, value json.RawMessage) (string, error) {
	text, ok := wire.Text(value)
	if value != nil && !ok {
		return "", fmt.Errorf("%q must be a string, not %s", name, wire.TypeName(value))
	}
	return text, nil
}

// numberOf reads a whole number, also one in a string, as models write them; 0 if
// value is nil.
func numberOf(name string, value json.RawMessage) (int, error) {
	text, isText := wire.Text(value)
	if !isText {
		text = string(value)
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if value != nil && (err != nil || n != float64(int(n))) {
		return 0, fmt.Errorf("%q must be a whole number, not %s", name, cutValue(value))
	}
	return int(n), nil
}

// flagOf reads true or false, also in a string; false if value is nil.
func flagOf(name string, value json.RawMessage) (bool, error) {
	text, isText := wire.Text(value)
	if !isText {
		text = string(value)
	}
	switch strings.ToLower(text) {
	case "true":
		return true, nil
	case "false", "":
		return false, nil
	}
	return false, fmt.Errorf("%q must be true or false, not %s", name, cutValue(value))
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

func readDiscovery(arguments json.RawMessage) (in discovery, err error) {
	m, err := readMembers(arguments, "tool_name", "full", "query", "server", "limit", "offset")
	if err != nil {
		return in, err
	}
	var errs [6]error
	in.tool, errs[0] = textOf("tool_name", m[0])
	in.full, errs[1] = flagOf("full", m[1])
	in.query, errs[2] = textOf("query", m[2])
	in.server, errs[3] = textOf("server", m[3])
	in.limit, errs[4] = numberOf("limit", m[4])
	in.offset, errs[5] = numberOf("offset", m[5])
	return in, errors.Join(errs[:]...)
}

// A loading is what load_mcp is asked for.
type loading struct {
	name, query string
	retry       bool
}

func readLoading(arguments json.RawMessage) (in loading, err error) {
	m, err := readMembers(arguments, "mcp_name", "query", "retry")
	if err != nil {
		return in, err
	}
	var errs [3]error
	in.name, errs[0] = textOf("mcp_name", m[0])
	if errs[0] == nil && in.name == "" {
		errs[0] = errors.New(`"mcp_name" is missing`)
	}
	in.query, errs[1] = textOf("query", m[1])
	in.retry, errs[2] = flagOf("retry", m[2])
	return in, errors.Join(errs[:]...)
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
