// Package changes shows how definitions of tools differ.
package changes

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/cli/terminal"
	"github.com/dynmcp/dynmcp/internal/definition"
	"github.com/dynmcp/dynmcp/internal/display"
)

// Visible escapes invisible characters, and those that reorder text, as \u{…}, because a person
// decides by the printed text.
func Visible(s string) string {
	return display.Visible(s, func(r rune) bool { return display.Invisible(r) && r != '\n' && r != '\t' })
}

// ToolsOf returns the tools of a stored listing.
func ToolsOf(server string, stored *catalog.Stored) []definition.Tool {
	c := catalog.New()
	c.Declare([]catalog.Server{{Name: server, Lazy: true}})
	c.Remember(map[string]*catalog.Stored{server: stored})
	tools, _ := c.View().Definitions(server)
	return tools
}

// Show prints the differences between two listings of a server, and returns the number of
// tools that differ.
func Show(out *terminal.Writer, before, now []definition.Tool) (n int) {
	was := map[string]definition.Tool{}
	for _, t := range before {
		was[t.Name] = t
	}
	for _, t := range now {
		old, had := was[t.Name]
		delete(was, t.Name)
		switch {
		case !had:
			out.Printf("  new     %s\n", Visible(t.Name))
		case old.Digest != t.Digest:
			out.Printf("  changed %s\n", Visible(t.Name))
			Compare(out, definition.Of(old.Raw), definition.Of(t.Raw))
		default:
			continue
		}
		n++
	}
	for _, name := range slices.Sorted(maps.Keys(was)) {
		out.Printf("  gone    %s\n", Visible(name))
	}
	return n + len(was)
}

// Line prints a line about a tool.
func Line(out *terminal.Writer, s string) {
	out.Printf("    %s\n", strings.ReplaceAll(Visible(s), "\n", "\n    "))
}

// Compare prints the differences between two definitions.
func Compare(out *terminal.Writer, before, now json.RawMessage) {
	compareValues("", decode(before), decode(now), func(s string) { Line(out, s) })
}

// Whole prints a definition without its name.
func Whole(out *terminal.Writer, text json.RawMessage) {
	members := decode(text).(map[string]any)
	delete(members, "name")
	for _, name := range slices.Sorted(maps.Keys(members)) {
		Line(out, name+": "+textOf(members[name]))
	}
}

// decode decodes a value, with numbers as json.Number to keep their digits.
func decode(raw json.RawMessage) (value any) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if d.Decode(&value) != nil || value == nil {
		return map[string]any{}
	}
	return value
}

// textOf returns a value as JSON on one line, but a string as it is.
func textOf(value any) string {
	if s, ok := value.(string); ok {
		return s
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(value) != nil {
		return "?"
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// compareValues calls say for each difference of two values. Objects are compared member by member,
// strings word by word.
func compareValues(path string, before, now any, say func(string)) {
	if reflect.DeepEqual(before, now) {
		return
	}
	a, isObject := before.(map[string]any)
	b, both := now.(map[string]any)
	if isObject && both {
		compareObjects(path, a, b, say)
		return
	}
	was, isText := before.(string)
	is, bothTexts := now.(string)
	if isText && bothTexts {
		say(path + ": " + compareWords(was, is))
		return
	}
	say(path + ": " + textOf(before) + " → " + textOf(now))
}

func compareObjects(path string, before, now map[string]any, say func(string)) {
	names := maps.Clone(before)
	maps.Copy(names, now)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		at := strings.TrimPrefix(path+"."+name, ".")
		was, had := before[name]
		is, has := now[name]
		switch {
		case !had:
			say(at + ": added " + textOf(is))
		case !has:
			say(at + ": removed " + textOf(was))
		default:
			compareValues(at, was, is, say)
		}
	}
}
