package hosts

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"dynmcp/schema"
)

// TOML is Codex's alone. No library prints it with its comments, so a table is
// set or removed by its lines, and what came of it is read again.

// A tomlLine is a statement of a file: a table's header, or a key and value.
type tomlLine struct {
	line   int // its index
	header []string
}

// tomlStatements are the statements of a file in order.
func tomlStatements(data []byte) ([]tomlLine, error) {
	var all []tomlLine
	var p unstable.Parser
	p.Reset(data)
	for p.NextExpression() {
		e := p.Expression()
		s := tomlLine{line: -1}
		for keys := e.Key(); keys.Next(); {
			key := keys.Node()
			if s.line < 0 {
				s.line = p.Shape(key.Raw).Start.Line - 1
			}
			if e.Kind != unstable.KeyValue {
				s.header = append(s.header, string(key.Data))
			}
		}
		all = append(all, s)
	}
	return all, p.Error()
}

// setTOML returns data with the table at path holding these lines, or without
// it when there are none.
func setTOML(data []byte, path []string, body []string) ([]byte, error) {
	statements, err := tomlStatements(data)
	if err != nil {
		return nil, errors.New("the file is not TOML")
	}
	lines := strings.SplitAfter(string(data), "\n")
	from, to := tomlTable(statements, lines, path)
	var text string
	if len(body) > 0 {
		text = "[" + strings.Join(path, ".") + "]\n" + strings.Join(body, "\n") + "\n"
	}
	switch {
	case from < 0 && text == "":
		return data, nil
	case from < 0:
		text = separated(lines) + text
		from, to = len(lines), len(lines)
	case text == "":
		for from > 0 && strings.TrimSpace(lines[from-1]) == "" {
			from--
		}
	}
	out := []byte(strings.Join(slices.Concat(lines[:from], []string{text}, lines[to:]), ""))
	return out, onlyChanged(data, out, path)
}

// separated is what stands between the last line of a file and a new table.
func separated(lines []string) string {
	last := lines[len(lines)-1]
	switch {
	case len(lines) == 1 && last == "":
		return ""
	case last != "":
		return "\n\n"
	}
	return "\n"
}

// tomlTable are the lines of a table and of the tables in it, from its header to
// its last value.
func tomlTable(statements []tomlLine, lines []string, path []string) (from, to int) {
	from = -1
	for i, s := range statements {
		within := len(s.header) >= len(path) && slices.Equal(s.header[:len(path)], path)
		switch {
		case s.header == nil && from >= 0, within && from >= 0:
			to = tomlEnd(statements, i, lines)
		case within:
			from, to = s.line, tomlEnd(statements, i, lines)
		case from >= 0:
			return from, to
		}
	}
	return from, to
}

// tomlEnd is the line behind the statement i: comments and blank lines before
// the next one are not its own.
func tomlEnd(statements []tomlLine, i int, lines []string) int {
	end := len(lines)
	if i+1 < len(statements) {
		end = statements[i+1].line
	}
	for end-1 > statements[i].line {
		line := strings.TrimSpace(lines[end-1])
		if line != "" && !strings.HasPrefix(line, "#") {
			break
		}
		end--
	}
	return end
}

// onlyChanged reads both texts and compares all but what is at path.
func onlyChanged(before, after []byte, path []string) error {
	var old, now map[string]any
	if err := errors.Join(toml.Unmarshal(before, &old), toml.Unmarshal(after, &now)); err != nil {
		return fmt.Errorf("the file is written in a way that a program cannot change; edit [%s] by hand", strings.Join(path, "."))
	}
	for _, doc := range []map[string]any{old, now} {
		if servers, ok := doc[path[0]].(map[string]any); ok {
			delete(servers, path[1])
			if len(servers) == 0 {
				delete(doc, path[0])
			}
		}
	}
	if !reflect.DeepEqual(old, now) {
		return fmt.Errorf("the file is written in a way that cannot be changed without touching the rest; edit [%s] by hand", strings.Join(path, "."))
	}
	return nil
}

// tomlStrings is a list of texts as TOML. Its quoting is close to JSON's.
func tomlStrings(words []string) string {
	var quoted []string
	for _, w := range words {
		quoted = append(quoted, tomlString(w))
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

func tomlString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case r < ' ' || r == 0x7f:
			b.WriteString(`\u` + fmt.Sprintf("%04X", r))
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// maskTOML writes *** for what may be a secret, like schema.Mask.
func maskTOML(data []byte) []byte {
	m := tomlMask{}
	m.parser.Reset(data)
	within := ""
	for m.parser.NextExpression() {
		e := m.parser.Expression()
		keys := tomlKeys(e)
		last := len(keys) - 1
		switch {
		case e.Kind != unstable.KeyValue:
			within = keys[last]
		case last > 0:
			m.value(keys[last-1], keys[last], e.Value())
		default:
			m.value(within, keys[last], e.Value())
		}
	}
	if m.parser.Error() != nil {
		return nil
	}
	return m.hide(data)
}

// A tomlMask collects the places of what may be secrets.
type tomlMask struct {
	parser unstable.Parser
	holes  []unstable.Range
}

func tomlKeys(n *unstable.Node) []string {
	var keys []string
	for it := n.Key(); it.Next(); {
		keys = append(keys, string(it.Node().Data))
	}
	return keys
}

// secretTables are those whose values are all taken for secrets.
var secretTables = []string{"env", "http_headers", "headers"}

// value looks at the value of key, or in a list at the one behind the word key;
// within is the key of the table or list it is in.
func (m *tomlMask) value(within, key string, n *unstable.Node) {
	switch n.Kind {
	case unstable.InlineTable:
		for it := n.Children(); it.Next(); {
			keys := tomlKeys(it.Node())
			m.value(key, keys[len(keys)-1], it.Node().Value())
		}
	case unstable.Array:
		before := ""
		for it := n.Children(); it.Next(); {
			m.value(key, before, it.Node())
			before = string(it.Node().Data)
		}
	case unstable.String:
		if slices.Contains(secretTables, within) || schema.LooksSecret(key, string(n.Data)) {
			m.holes = append(m.holes, n.Raw)
		}
	}
}

// hide writes over the holes; lines stay lines.
func (m *tomlMask) hide(data []byte) []byte {
	var out bytes.Buffer
	shown := 0
	for _, hole := range m.holes {
		from, to := int(hole.Offset), int(hole.Offset+hole.Length)
		out.Write(data[shown:from])
		out.WriteString(`"***"` + strings.Repeat("\n", bytes.Count(data[from:to], []byte("\n"))))
		shown = to
	}
	out.Write(data[shown:])
	return out.Bytes()
}
