package syntax

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/tailscale/hujson"
)

// SetJSON returns data, JSON with comments, with value, also JSON, at the path of
// keys: in place of the value there, or after the last member of its object.
// Missing objects on the path are added. All other bytes stay as they are. The
// name is for errors.
func SetJSON(name string, data []byte, path []string, value []byte) ([]byte, error) {
	n, err := parseJSON(&Source{Name: "value", Data: value})
	if err != nil {
		return nil, err
	}
	return editJSON(name, data, path, n)
}

// RemoveJSON returns data without the member at the path and the comments that
// belong to it. All other bytes stay as they are. It returns data itself if there
// is no such member.
func RemoveJSON(name string, data []byte, path []string) ([]byte, error) {
	return editJSON(name, data, path, nil)
}

// editJSON sets a member, or removes it if n is nil.
func editJSON(name string, data []byte, path []string, n *Node) ([]byte, error) {
	data, restore := UnixText(data)
	if len(bytes.TrimSpace(data)) == 0 {
		data = []byte("{}\n")
	}
	root, err := hujson.Parse(data)
	if err != nil {
		return nil, jsonError(&Source{Name: name, Data: data}, err)
	}
	e := jsonEdit{unit: indentUnit(data)}
	switch {
	case n != nil:
		err = e.set(&root, path, n, "")
	case root.Find(pointer(path)) == nil:
		return restore(data), nil
	default:
		err = root.Patch([]byte(`[{"op": "remove", "path": ` + Quote(pointer(path)) + `}]`))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return restore(root.Pack()), nil
}

// pointer returns the path as a JSON Pointer (RFC 6901).
func pointer(path []string) string {
	var b strings.Builder
	for _, key := range path {
		b.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key))
	}
	return b.String()
}

// UnixText removes the byte order mark and the carriage returns from data, and
// returns a function that restores them. In a file with both kinds of line ends
// carriage returns are content, and stay.
func UnixText(data []byte) ([]byte, func([]byte) []byte) {
	data, marked := bytes.CutPrefix(data, byteOrderMark)
	returns := bytes.Count(data, []byte("\r\n"))
	windows := returns > 0 && returns == bytes.Count(data, []byte("\n"))
	if windows {
		data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	}
	return data, func(out []byte) []byte {
		if windows {
			out = bytes.ReplaceAll(out, []byte("\n"), []byte("\r\n"))
		}
		if marked {
			out = append(bytes.Clone(byteOrderMark), out...)
		}
		return out
	}
}

// indentUnit returns the indentation of the first indented line of a file.
func indentUnit(data []byte) string {
	for line := range bytes.Lines(data) {
		body := bytes.TrimLeft(line, " \t")
		blanks := string(line[:len(line)-len(body)])
		if blanks != "" && len(bytes.TrimSpace(body)) > 0 && len(blanks) <= 8 {
			return blanks
		}
	}
	return "  "
}

type jsonEdit struct{ unit string }

// set sets n at the path below v, whose own line is indented by indent.
func (e jsonEdit) set(v *hujson.Value, path []string, n *Node, indent string) error {
	obj, ok := v.Value.(*hujson.Object)
	if !ok {
		return fmt.Errorf("%q cannot be written: its parent is not an object", path[0])
	}
	inner := e.memberIndent(obj, indent)
	for i := range obj.Members {
		if obj.Members[i].Name.Value.(hujson.Literal).String() != path[0] {
			continue
		}
		if len(path) == 1 {
			value, err := hujson.Parse([]byte(n.pretty(inner, e.unit)))
			obj.Members[i].Value.Value = value.Value
			return err
		}
		return e.set(&obj.Members[i].Value, path[1:], n, inner)
	}
	for i := len(path) - 1; i > 0; i-- {
		n = &Node{Kind: Object, Members: []Member{{Key: path[i], Value: n}}}
	}
	return e.insert(obj, path[0], n, indent)
}

// memberIndent returns the indentation of an object's members.
func (e jsonEdit) memberIndent(obj *hujson.Object, indent string) string {
	for _, m := range obj.Members {
		if _, blanks, found := cutLast(string(m.Name.BeforeExtra), "\n"); found && strings.TrimSpace(blanks) == "" {
			return blanks
		}
	}
	return indent + e.unit
}

// insert adds a member after the last one of an object, on a line of its own
// unless the object is on one line.
func (e jsonEdit) insert(obj *hujson.Object, key string, n *Node, indent string) error {
	inner := e.memberIndent(obj, indent)
	oneLine := len(obj.Members) > 0 && !strings.Contains(string(obj.Members[0].Name.BeforeExtra), "\n")
	rendered := n.pretty(inner, e.unit)
	if oneLine {
		rendered = n.Inline()
	}
	value, err := hujson.Parse([]byte(rendered))
	if err != nil {
		return err
	}
	m := hujson.ObjectMember{Name: hujson.Value{Value: hujson.String(key)}, Value: value}
	m.Value.BeforeExtra = hujson.Extra(" ")
	if oneLine {
		m.Name.BeforeExtra = hujson.Extra(" ")
	} else { // after the comments at the end of the object, with } on the next line
		before, closing, found := cutLast(string(obj.AfterExtra), "\n")
		if !found {
			closing = indent
		}
		m.Name.BeforeExtra = hujson.Extra(strings.TrimRight(before, " \t\n") + "\n" + inner)
		obj.AfterExtra = hujson.Extra("\n" + closing)
	}
	if last := len(obj.Members) - 1; last >= 0 && obj.Members[last].Value.AfterExtra != nil {
		m.Value.AfterExtra = hujson.Extra{} // the file uses trailing commas
	}
	obj.Members = append(obj.Members, m)
	return nil
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// ParseJSON parses JSON with comments of any size. The name is for errors.
func ParseJSON(name string, data []byte) (*Node, error) {
	return parseJSON(&Source{Name: name, Data: bytes.TrimPrefix(data, byteOrderMark)})
}

// GetJSON returns the value at the path as compact JSON, or nil if absent.
func GetJSON(name string, data []byte, path []string) ([]byte, error) {
	n, err := ParseJSON(name, data)
	if err != nil {
		return nil, err
	}
	for _, key := range path {
		n = n.Get(key)
	}
	if n == nil {
		return nil, nil
	}
	return n.Compact(), nil
}
