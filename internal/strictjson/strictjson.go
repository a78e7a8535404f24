// Package strictjson reads JSON that every parser reads alike: what some read otherwise is an error.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dynmcp/dynmcp/internal/wire"
)

// Arguments returns the arguments of a call as [Value] does; no arguments are an empty object.
func Arguments(input json.RawMessage) (any, error) {
	if len(input) == 0 || string(input) == "null" {
		return map[string]any{}, nil
	}
	if !wire.IsObject(input) || !wire.Valid(input) {
		return nil, fmt.Errorf("they are %s, not an object", wire.TypeName(input))
	}
	return Value(input)
}

// Value returns a value as encoding/json does, with integers as int64 or uint64. It is an error if readers
// may interpret it differently: a duplicate member, a number that some round, a string that is not valid
// Unicode.
func Value(raw json.RawMessage) (any, error) {
	raw = bytes.TrimSpace(raw)
	switch {
	case len(raw) == 0:
		return nil, errors.New("a value is missing")
	case raw[0] == '{':
		return plainObject(raw)
	case raw[0] == '[':
		all := []any{}
		for element := range wire.Elements(raw) {
			value, err := Value(element)
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
		if object[name], err = Value(member); err != nil {
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

// Canonical returns the arguments of a call in canonical form, so that equal arguments are equal
// texts. It is an error if readers may interpret them differently.
func Canonical(input json.RawMessage) ([]byte, error) {
	value, err := Arguments(input)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err = e.Encode(value)
	return bytes.TrimSpace(b.Bytes()), err
}
