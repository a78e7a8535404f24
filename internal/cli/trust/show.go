package trust

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/cli/terminal"
	"github.com/dynmcp/dynmcp/internal/definition"
	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/lint"
	"github.com/dynmcp/dynmcp/internal/pins"
	"github.com/dynmcp/dynmcp/schema"
)

// visible escapes invisible characters, and those that reorder text, as \u{…}, because a person
// decides by the printed text.
func visible(s string) string {
	return display.Visible(s, func(r rune) bool { return display.Invisible(r) && r != '\n' && r != '\t' })
}

// show prints a difference: the changes, or the whole of a new definition.
func (r *Review) show(d difference) {
	r.Out.Printf("  %-8s%s", d.label(), visible(d.name))
	switch d.verdict.Kind {
	case pins.LooksLike, pins.Renamed, pins.Moved:
		r.Out.Printf(": %s", d.verdict)
	}
	r.Out.Printf("\n")
	if d.verdict.Kind == pins.Gone {
		return
	}
	now := decode(definition.Of(d.tool.Raw))
	before, kept := r.Files.Definition(d.before)
	if kept {
		compareValues("", decode(before), now, r.line)
	} else {
		if d.before != "" {
			r.line("what was approved is not kept here; this is what is listed:")
		}
		members := now.(map[string]any)
		delete(members, "name")
		for _, name := range slices.Sorted(maps.Keys(members)) {
			r.line(name + ": " + text(members[name]))
		}
	}
	r.lint(d.server, d.tool)
}

// ShowChanges prints the differences between two listings of a server, and returns the number of
// tools that differ.
func ShowChanges(out *terminal.Writer, before, now []definition.Tool) (n int) {
	r := &Review{Out: out}
	was := map[string]definition.Tool{}
	for _, t := range before {
		was[t.Name] = t
	}
	for _, t := range now {
		old, had := was[t.Name]
		delete(was, t.Name)
		switch {
		case !had:
			out.Printf("  new     %s\n", visible(t.Name))
		case old.Digest != t.Digest:
			out.Printf("  changed %s\n", visible(t.Name))
			compareValues("", decode(definition.Of(old.Raw)), decode(definition.Of(t.Raw)), r.line)
		default:
			continue
		}
		n++
	}
	for _, name := range slices.Sorted(maps.Keys(was)) {
		out.Printf("  gone    %s\n", visible(name))
	}
	return n + len(was)
}

func (r *Review) line(s string) {
	r.Out.Printf("    %s\n", strings.ReplaceAll(visible(s), "\n", "\n    "))
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

// text returns a value as JSON on one line, but a string as it is.
func text(value any) string {
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
	say(path + ": " + text(before) + " → " + text(now))
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
			say(at + ": added " + text(is))
		case !has:
			say(at + ": removed " + text(was))
		default:
			compareValues(at, was, is, say)
		}
	}
}

// Names returns the names of the tools of all enabled servers, from stored listings. They are needed
// because a definition may mention tools of another server.
func (r *Review) Names() *lint.Names {
	names := &lint.Names{}
	for _, s := range r.Config.Servers {
		if s.Disabled {
			continue
		}
		tools, _ := r.listed(s) // empty if the server was never listed
		for _, t := range tools {
			names.Add(s.Name, t.Name)
		}
	}
	return names
}

// Lint returns the findings in the tools of a view, approved or not, one line for each. Those of the
// lowest grade are in many harmless tools, and need low.
func Lint(view *catalog.View, names *lint.Names, low bool) (lines []string) {
	for _, t := range slices.Concat(view.Tools(), view.AwaitingApproval()) {
		for _, f := range lint.Check(t.Server, t.Upstream, t.Raw, names) {
			if low || f.Grade != lint.Low {
				lines = append(lines, fmt.Sprintf("%s: tool %s: %s", t.Server, visible(t.Upstream), f))
			}
		}
	}
	return lines
}

func (r *Review) lint(s schema.Server, t definition.Tool) {
	if r.names == nil {
		r.names = r.Names()
	}
	for _, f := range lint.Check(s.Name, t.Name, t.Raw, r.names) {
		r.line("! " + f.String())
	}
}
