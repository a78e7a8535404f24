package syntax

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// SetTop returns data, the file of this name whose tree is root, with value at a key of the file.
func SetTop(name string, data []byte, root *Node, key string, value *Node) ([]byte, error) {
	if isJSON(name, data) {
		return Edit(name, data, root, []string{key}, value)
	}
	return editLines(name, data, withValue(root, []string{key}, value), func(e *yamlEdit) bool {
		if root.Has(key) {
			return e.setMember(root, key, value)
		}
		if value.Kind != List {
			e.lines = append(e.lines, e.member(key, value, nil, 0))
			return true
		}
		e.lines = append(e.lines, key+":\n")
		for _, item := range value.Items {
			e.lines = append(e.lines, e.unit+"- "+item.Inline()+"\n")
		}
		return true
	})
}

// InsertFirst returns data with item before the others of the list at a key of the file.
func InsertFirst(name string, data []byte, root *Node, key string, item *Node) ([]byte, error) {
	list := root.Get(key)
	first := list.Items[0]
	all := &Node{Kind: List, Items: slices.Insert(slices.Clone(list.Items), 0, item)}
	want := withValue(root, []string{key}, all)
	if !isJSON(name, data) {
		return editLines(name, data, want, func(e *yamlEdit) bool {
			if prefix, ok := e.bullet(first); ok {
				e.insert(e.commentsAbove(first.At.Line-1), prefix+item.Inline()+"\n")
				return true
			}
			return e.setMember(root, key, all)
		})
	}
	text, marked := bytes.CutPrefix(data, byteOrderMark)
	if first.To == 0 || first.From >= len(text) {
		return Edit(name, data, root, []string{key}, all)
	}
	begin := list.From + len("[")
	between := text[begin:first.From]
	blanks := between[len(bytes.TrimRight(between, " \t\r\n")):]
	if i := bytes.LastIndexByte(blanks, '\n'); i > 0 && blanks[i-1] == '\r' {
		blanks = blanks[i-1:]
	} else if i >= 0 {
		blanks = blanks[i:]
	}
	after := text[begin:]
	if len(between) == 0 {
		after = append([]byte(" "), after...)
	}
	out := slices.Concat(text[:begin], blanks, []byte(item.Inline()+","), after)
	if marked {
		out = slices.Concat(byteOrderMark, out)
	}
	return checked(name, out, want)
}

// RemoveItem returns data without an item of the list at a key of the file.
func RemoveItem(name string, data []byte, root *Node, key string, i int) ([]byte, error) {
	list := root.Get(key)
	all := &Node{Kind: List, Items: slices.Delete(slices.Clone(list.Items), i, i+1)}
	want := withValue(root, []string{key}, all)
	if !isJSON(name, data) {
		return editLines(name, data, want, func(e *yamlEdit) bool {
			prefix, ok := e.bullet(list.Items[i])
			if !ok || len(list.Items) == 1 {
				return e.setMember(root, key, all)
			}
			from := list.Items[i].At.Line - 1
			to := from + 1
			for to < len(e.lines) && !isBlank(e.lines[to]) && indentOf(e.lines[to]) >= len(prefix) {
				to++
			}
			e.lines = slices.Delete(e.lines, e.commentsAbove(from), to)
			return true
		})
	}
	text, restore := UnixText(data)
	value, err := hujson.Parse(text)
	if err == nil {
		err = value.Patch(fmt.Appendf(nil, `[{"op": "remove", "path": %s}]`, Quote(fmt.Sprintf("%s/%d", pointer([]string{key}), i))))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return checked(name, restore(value.Pack()), want)
}

// bullet returns what is before an item that is written after a hyphen on a line of its own.
func (e *yamlEdit) bullet(item *Node) (prefix string, ok bool) {
	if item.At.Line < 1 || item.At.Line > len(e.lines) {
		return "", false
	}
	line := []rune(e.lines[item.At.Line-1])
	prefix = strings.TrimSuffix(string(line[:min(item.At.Col-1, len(line))]), "{")
	return strings.TrimRight(prefix, "{ ") + " ", strings.TrimSpace(strings.TrimRight(prefix, "{ ")) == "-"
}

func isJSON(name string, data []byte) bool {
	_, err := hujson.Parse(data)
	return err == nil || !IsYAML(name, data)
}

// editLines edits a YAML file as lines, and checks that its tree is want then.
func editLines(name string, data []byte, want *Node, edit func(*yamlEdit) bool) ([]byte, error) {
	text, restore := UnixText(data)
	e, err := newYAMLEdit(text, "")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if !edit(e) {
		return nil, fmt.Errorf("%s is written in a way that cannot be changed without touching the rest; edit it by hand", name)
	}
	return checked(name, restore([]byte(strings.Join(e.lines, ""))), want)
}
