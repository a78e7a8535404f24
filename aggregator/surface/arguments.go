package surface

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dynmcp/dynmcp/internal/wire"
)

// Arguments reads the named arguments of one of dynmcp's own tools. The value is zero if an argument
// is absent, null or invalid.
type Arguments struct {
	Values map[string]json.RawMessage // without absent and null ones
	Errs   []error                    // errors in them
}

// ReadArguments reads arguments with these names. Any other member is an error: unknown arguments must
// not be ignored silently.
func ReadArguments(arguments json.RawMessage, names ...string) *Arguments {
	in := &Arguments{Values: map[string]json.RawMessage{}}
	if len(arguments) == 0 || string(arguments) == "null" {
		return in
	}
	if !wire.IsObject(arguments) {
		in.Fail("the arguments must be an object, not %s", wire.TypeName(arguments))
		return in
	}
	for key, value := range wire.Members(arguments) {
		i := slices.IndexFunc(names, func(name string) bool { return wire.EqualString(key, name) })
		switch {
		case i < 0:
			in.Fail("it has no argument %s, only %s", key, strings.Join(names, ", "))
		case in.Values[names[i]] != nil:
			in.Fail("member %s is there twice", key)
		case string(value) != "null":
			in.Values[names[i]] = value
		}
		if in.Errs != nil {
			in.Values = nil // no further errors are reported for them
			break
		}
	}
	return in
}

// Fail records an error.
func (in *Arguments) Fail(format string, args ...any) {
	in.Errs = append(in.Errs, fmt.Errorf(format, args...))
}

// Err returns all errors, nil if there are none.
func (in *Arguments) Err() error { return errors.Join(in.Errs...) }

// Has reports whether an argument is there, and not null.
func (in *Arguments) Has(name string) bool { return in.Values[name] != nil }

// Text reads a string.
func (in *Arguments) Text(name string) string {
	text, ok := wire.Text(in.Values[name])
	if in.Has(name) && !ok {
		in.Fail("%q must be a string, not %s", name, wire.TypeName(in.Values[name]))
	}
	return text
}

// Texts reads a string, or a list of strings, including a list in a string, as models write it. It
// drops empty ones.
func (in *Arguments) Texts(name string) (texts []string) {
	value := in.Values[name]
	if text, ok := wire.Text(value); ok && strings.HasPrefix(text, "[") && wire.Valid([]byte(text)) {
		value = json.RawMessage(text)
	}
	if len(value) == 0 || value[0] != '[' {
		if text := in.Text(name); text != "" {
			texts = append(texts, text)
		}
		return texts
	}
	for element := range wire.Elements(value) {
		text, ok := wire.Text(element)
		if !ok {
			in.Fail("%q must be a string or a list of strings, not of %s", name, wire.TypeName(element))
			return nil
		}
		if text != "" {
			texts = append(texts, text)
		}
	}
	return texts
}

// word returns a value that is not an object or array, including one in a string, as models write
// them.
func (in *Arguments) word(name string) string {
	value := in.Values[name]
	text, ok := wire.Text(value)
	if !ok {
		text = string(value)
	}
	return strings.TrimSpace(text)
}

// Number reads a whole number.
func (in *Arguments) Number(name string) int {
	n, err := strconv.ParseFloat(in.word(name), 64)
	if in.Has(name) && (err != nil || n != float64(int(n))) {
		in.Fail("%q must be a whole number, not %s", name, Value(in.Values[name]))
	}
	return int(n)
}

// Flag reads true or false.
func (in *Arguments) Flag(name string) bool {
	word := strings.ToLower(in.word(name))
	if word != "true" && word != "false" && word != "" {
		in.Fail("%q must be true or false, not %s", name, Value(in.Values[name]))
	}
	return word == "true"
}

// Object reads an object, including one in a string, as some hosts write it.
func (in *Arguments) Object(name string) json.RawMessage {
	value := in.Values[name]
	if text, ok := wire.Text(value); ok {
		value = wire.JoinLines([]byte(strings.TrimSpace(text)))
		if !wire.Valid(value) {
			in.Fail("%q is a string that holds no JSON; pass an object", name)
			return nil
		}
	}
	if value != nil && !wire.IsObject(value) {
		in.Fail("%q must be an object, not %s", name, wire.TypeName(value))
		return nil
	}
	return value
}

// Choice reads one of a few texts, which is required.
func (in *Arguments) Choice(name string, of []string) string {
	value := in.Values[name]
	text, ok := wire.Text(value)
	switch {
	case value == nil:
		in.Fail("%q is missing: one of %s", name, strings.Join(of, ", "))
	case !ok || !slices.Contains(of, text):
		in.Fail("%q must be one of %s, not %s", name, strings.Join(of, ", "), Value(value))
	}
	return text
}

// Value shows an invalid value, or its type.
func Value(value json.RawMessage) string {
	if len(value) > 50 {
		return wire.TypeName(value)
	}
	return string(value)
}

// inputNames are models' names for the input.
var inputNames = []string{"arguments", "args", "input", "params", "tool_input"}

// CallArguments are the two arguments by which one of dynmcp's own tools calls another tool.
type CallArguments struct {
	Tool, Input string // their names
	Example     string
}

// Read reads the two arguments. The input is an object, or a string that holds one, as some hosts
// write it. If it is absent, a member that models write in its place is used.
func (names CallArguments) Read(arguments json.RawMessage, outline *wire.Outline) (tool string, input json.RawMessage, err error) {
	if len(arguments) == 0 {
		return "", nil, fmt.Errorf("%q is missing", names.Tool)
	}
	if !wire.IsObject(arguments) {
		return "", nil, fmt.Errorf("the arguments must be an object, not %s", wire.TypeName(arguments))
	}
	unknown := func(key []byte) error {
		return fmt.Errorf(`it has no argument %s; the arguments of the tool go into %q: %s`, key, names.Input, names.Example)
	}
	var rawTool json.RawMessage
	var other []byte // the first member that is neither
	called := names.Input
	for name, at := range outline.Spans(arguments) {
		key, value := name.In(arguments), at.In(arguments)
		var twice bool
		switch {
		case wire.EqualString(key, names.Tool):
			rawTool, twice = value, rawTool != nil
		case wire.EqualString(key, names.Input):
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
		return "", nil, fmt.Errorf("%q is missing", names.Tool)
	case !ok:
		return "", nil, fmt.Errorf(`%q must be a string, not %s`, names.Tool, wire.TypeName(rawTool))
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
