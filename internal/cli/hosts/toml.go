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

	"github.com/dynmcp/dynmcp/internal/secrets"
	"github.com/dynmcp/dynmcp/schema/syntax"
)

// Only Codex uses TOML. TOML libraries rewrite the whole file. To keep all other bytes, a
// table is set or removed by lines, and the result is parsed to check that nothing else has
// changed.

// A tomlStatement is a table's header, or a key with its value.
type tomlStatement struct {
	line   int      // index of its first line
	header []string // the keys of a header, nil for a value
}

// tomlStatements returns the statements of a file in order.
func tomlStatements(data []byte) ([]tomlStatement, error) {
	var all []tomlStatement
	var p unstable.Parser
	p.Reset(data)
	for p.NextExpression() {
		e := p.Expression()
		s := tomlStatement{line: -1}
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

// setTOML returns data with the lines body as the table at path, or without the table if
// body is empty.
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
		switch last := lines[len(lines)-1]; {
		case last != "":
			text = "\n\n" + text
		case len(lines) > 1:
			text = "\n" + text
		}
		from, to = len(lines), len(lines)
	case text == "":
		for from > 0 && strings.TrimSpace(lines[from-1]) == "" {
			from--
		}
	}
	out := []byte(strings.Join(slices.Concat(lines[:from], []string{text}, lines[to:]), ""))
	return out, checkOnlyChanged(data, out, path)
}

// appendTable appends the table at path, with the tables inside it, from another file to
// data.
func appendTable(data, from []byte, path []string) ([]byte, error) {
	statements, err := tomlStatements(from)
	if err != nil {
		return nil, errors.New("the file is not TOML")
	}
	lines := strings.SplitAfter(string(from), "\n")
	begin, end := tomlTable(statements, lines, path)
	if begin < 0 {
		return data, nil
	}
	table := strings.TrimRight(strings.Join(lines[begin:end], ""), "\n") + "\n"
	out := strings.TrimRight(string(data), "\n")
	if out != "" {
		out += "\n\n"
	}
	return []byte(out + table), checkOnlyChanged(data, []byte(out+table), path)
}

// tomlTable returns the range of lines of a table and the tables inside it, from its header
// to its last value. from is -1 if there is no such table.
func tomlTable(statements []tomlStatement, lines []string, path []string) (from, to int) {
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

// tomlEnd returns the index of the line after statement i. Comments and blank lines before
// the next statement belong to the next statement.
func tomlEnd(statements []tomlStatement, i int, lines []string) int {
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

// checkOnlyChanged reports an error if anything but the table at path differs.
func checkOnlyChanged(before, after []byte, path []string) error {
	var old, now map[string]any
	err := errors.Join(toml.Unmarshal(before, &old), toml.Unmarshal(after, &now))
	for _, doc := range []map[string]any{old, now} {
		if servers, ok := doc[path[0]].(map[string]any); ok {
			delete(servers, path[1])
			if len(servers) == 0 {
				delete(doc, path[0])
			}
		}
	}
	if err != nil || !reflect.DeepEqual(old, now) {
		return fmt.Errorf("the table cannot be changed without touching the rest of the file; edit [%s] by hand", strings.Join(path, "."))
	}
	return nil
}

// tomlString returns a TOML string: a JSON string with the DEL character escaped too.
func tomlString(s string) string {
	return strings.ReplaceAll(syntax.Quote(s), "\x7f", `\u007F`)
}

func tomlStrings(list []string) string {
	var quoted []string
	for _, s := range list {
		quoted = append(quoted, tomlString(s))
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// maskTOML replaces values that may be secrets by ***, like mask.File. It returns nil if data
// is not TOML.
func maskTOML(data []byte) []byte {
	var m tomlMask
	m.parser.Reset(data)
	table := ""
	for m.parser.NextExpression() {
		e := m.parser.Expression()
		keys := tomlKeys(e)
		last := len(keys) - 1
		switch {
		case e.Kind != unstable.KeyValue:
			table = keys[last]
		case last > 0:
			m.value(keys[last-1], keys[last], e.Value())
		default:
			m.value(table, keys[last], e.Value())
		}
	}
	if m.parser.Error() != nil {
		return nil
	}
	var out bytes.Buffer
	shown := 0
	for _, secret := range m.secrets {
		from, to := int(secret.Offset), int(secret.Offset+secret.Length)
		out.Write(data[shown:from])
		out.WriteString(`"***"` + strings.Repeat("\n", bytes.Count(data[from:to], []byte("\n")))) // lines stay lines
		shown = to
	}
	out.Write(data[shown:])
	return out.Bytes()
}

// A tomlMask collects the positions of values that may be secrets.
type tomlMask struct {
	parser  unstable.Parser
	secrets []unstable.Range
}

func tomlKeys(n *unstable.Node) []string {
	var keys []string
	for it := n.Key(); it.Next(); {
		keys = append(keys, string(it.Node().Data))
	}
	return keys
}

// secretTables are tables whose values are all treated as secrets.
var secretTables = []string{"env", "http_headers", "headers"}

// value checks the value of a key in a table. For an item of a list, table is the key of the
// list, and key is the item before, which may be a flag.
func (m *tomlMask) value(table, key string, n *unstable.Node) {
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
			before = secrets.Option(string(it.Node().Data))
		}
	case unstable.String:
		if slices.Contains(secretTables, table) || len(secrets.Find(table, key, string(n.Data))) > 0 {
			m.secrets = append(m.secrets, n.Raw)
		}
	}
}
