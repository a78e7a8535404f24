// Package dotenv reads .env files, and adds variables to them.
package dotenv

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/joho/godotenv"

	"github.com/dynmcp/dynmcp/schema/syntax"
)

// Parse returns the variables of a .env file. The name is for errors. These omit the message
// of the parser, because it quotes the text where it failed: in such a file that is probably
// a secret.
func Parse(name string, data []byte) (map[string]string, error) {
	if len(data) > syntax.MaxSize {
		return nil, fmt.Errorf("%s: larger than 1 MiB; is this the .env file?", name)
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	vars, err := godotenv.UnmarshalBytes(data)
	if err != nil {
		return nil, fmt.Errorf("%s:%d: not a line of a .env file; want NAME=value, with every quote closed", name, brokenLine(data))
	}
	return vars, nil
}

// Add returns data, a .env file, with variables added at its end, sorted by name. It is an
// error if the file already sets one to another value, or cannot represent a value. The name
// is for errors.
func Add(name string, data []byte, add map[string]string) ([]byte, error) {
	have, err := Parse(name, data)
	if err != nil {
		return nil, err
	}
	out := bytes.Clone(data)
	if len(out) > 0 && out[len(out)-1] != '\n' {
		out = append(out, '\n')
	}
	for _, key := range slices.Sorted(maps.Keys(add)) {
		if old, set := have[key]; set && old != add[key] {
			return nil, fmt.Errorf("%s sets %s already", name, key)
		} else if set {
			continue
		}
		line, ok := assignment(key, add[key])
		if !ok {
			return nil, fmt.Errorf("the value of %s cannot be written to a .env file", key)
		}
		out = append(out, line...)
	}
	return out, nil
}

// assignment returns a line that sets a variable, in the first form that is read back
// unchanged.
func assignment(key, value string) (line string, ok bool) {
	escaped := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "\n", `\n`).Replace(value)
	for _, form := range []string{value, "'" + value + "'", `"` + escaped + `"`} {
		line := key + "=" + form + "\n"
		if vars, err := godotenv.Unmarshal(line + "LAST=1\n"); err == nil && len(vars) == 2 && vars[key] == value {
			return line, true
		}
	}
	return "", false
}

// brokenLine returns the line that the parser rejects: the one after the longest prefix that
// it accepts. Only the first 1000 lines are tried, because each try parses all lines before.
func brokenLine(data []byte) int {
	good := 0
	lines := bytes.SplitAfter(data, []byte("\n"))
	for i := range lines[:min(len(lines), 1000)] {
		if _, err := godotenv.UnmarshalBytes(bytes.Join(lines[:i], nil)); err == nil {
			good = i
		}
	}
	return good + 1
}
