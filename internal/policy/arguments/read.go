package arguments

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/dynmcp/dynmcp/internal/wire"
)

// read returns the arguments of a call in the form of the schema library; no arguments are an
// empty object.
func read(input json.RawMessage) (any, error) {
	if len(input) == 0 || string(input) == "null" {
		return map[string]any{}, nil
	}
	if !wire.IsObject(input) || !wire.Valid(input) {
		return nil, fmt.Errorf("they are %s, not an object", wire.TypeName(input))
	}
	return plain(input)
}

// plain returns a value in the form of the schema library. It is an error if readers may
// interpret it differently: a duplicate member, a number that some round, a string that is not
// valid Unicode.
func plain(raw json.RawMessage) (any, error) {
	raw = bytes.TrimSpace(raw)
	switch {
	case len(raw) == 0:
		return nil, errors.New("a value is missing")
	case raw[0] == '{':
		return plainObject(raw)
	case raw[0] == '[':
		all := []any{}
		for element := range wire.Elements(raw) {
			value, err := plain(element)
			if err != nil {
				return nil, err
			}
			all = append(all, value)
		}
		return all, nil
	case raw[0] == '"':
		return plainText(raw)
	case raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9':
		return plainNumber(string(raw))
	}
	var value any
	err := json.Unmarshal(raw, &value)
	return value, err
}

func plainObject(raw json.RawMessage) (map[string]any, error) {
	object := map[string]any{}
	for key, member := range wire.Members(raw) {
		name, err := plainText(key)
		if err != nil {
			return nil, err
		}
		if _, twice := object[name]; twice {
			return nil, fmt.Errorf("member %q is there twice", name)
		}
		if object[name], err = plain(member); err != nil {
			return nil, err
		}
	}
	return object, nil
}

// plainText reads a string. Escapes of half a surrogate pair, which readers replace in
// different ways, are an error.
func plainText(raw json.RawMessage) (string, error) {
	text, ok := wire.Text(raw)
	if !ok || !utf8.Valid(raw) {
		return "", errors.New("a text is not valid Unicode")
	}
	if strings.Count(text, "\uFFFD") > bytes.Count(raw, []byte("\uFFFD"))+bytes.Count(bytes.ToLower(raw), []byte(`\ufffd`)) {
		return "", errors.New("a text has an escape of half a character")
	}
	return text, nil
}

func plainNumber(text string) (any, error) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, nil
	}
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		return n, nil
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !strings.ContainsAny(text, ".eE") {
		return nil, fmt.Errorf("the number %.40s is too large to be read alike everywhere", text)
	}
	return n, nil
}

// lax returns the form of a name for lax readers: they ignore case, the characters between
// words, and everything after a NUL.
func lax(name string) string {
	name, _, _ = strings.Cut(name, "\x00")
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || unicode.IsSpace(r) {
			return -1
		}
		return unicode.ToLower(unicode.ToUpper(r))
	}, name)
}

// wanted returns the types that a schema restricts, nil for all.
func wanted(s *jsonschema.Schema) []string {
	types := slices.Clone(s.Types)
	if s.Type != "" {
		types = append(types, s.Type)
	}
	for _, value := range s.Enum {
		types = append(types, typeOf(value))
	}
	if s.Const != nil {
		types = append(types, typeOf(*s.Const))
	}
	if types != nil {
		return types
	}
	if s.Properties != nil || s.Required != nil || s.AdditionalProperties != nil || s.PatternProperties != nil || s.PropertyNames != nil {
		types = append(types, "object")
	}
	if s.Items != nil || s.PrefixItems != nil || s.Contains != nil {
		types = append(types, "array")
	}
	if s.Minimum != nil || s.Maximum != nil || s.ExclusiveMinimum != nil || s.ExclusiveMaximum != nil || s.MultipleOf != nil {
		types = append(types, "number")
	}
	if s.Pattern != "" || s.MinLength != nil || s.MaxLength != nil {
		types = append(types, "string")
	}
	return types
}

func typeOf(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	}
	return "number"
}

// conversion describes the result of a lax reader that converts a value to one of these types,
// "" if it keeps the value.
func conversion(types []string, value any) string {
	is := typeOf(value)
	has := func(kind string) bool {
		return slices.Contains(types, kind) || kind == "number" && slices.Contains(types, "integer")
	}
	if len(types) == 0 || has(is) {
		return ""
	}
	switch value := value.(type) {
	case string:
		held, err := plain(json.RawMessage(strings.TrimSpace(value)))
		if err == nil && wire.Valid([]byte(strings.TrimSpace(value))) && has(typeOf(held)) {
			return "the " + typeOf(held) + " that its text holds"
		}
		if has("number") && strings.ContainsAny(value, "0123456789") {
			return "a number"
		}
		if word := strings.ToLower(strings.TrimSpace(value)); has("boolean") && slices.Contains([]string{"true", "false", "yes", "no", "on", "off", "1", "0"}, word) {
			return "a boolean"
		}
	case []any:
		if len(value) == 1 && has(typeOf(value[0])) {
			return "its only element"
		}
	default:
		if has("string") && is != "object" && is != "null" {
			return "a text"
		}
	}
	return ""
}

// Canonical returns the arguments of a call in canonical form, so that equal arguments are equal
// texts. It is an error if readers may interpret them differently.
func Canonical(input json.RawMessage) ([]byte, error) {
	value, err := read(input)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err = e.Encode(value)
	return bytes.TrimSpace(b.Bytes()), err
}
