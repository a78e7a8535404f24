package typescript

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// omitted are keywords that say nothing about a value: the dialect, definitions for
// references, comments, and headers for programs between a model and a server.
var omitted = []string{"$schema", "$defs", "definitions", "$comment", "x-mcp-header"}

// comment takes all that is left of a schema: its description, and a tag for each keyword.
func (w *writer) comment(s *schema, tags []string, property string) string {
	for _, keyword := range omitted {
		s.take(keyword)
	}
	text := ""
	if raw := s.get("description"); raw != nil {
		description, ok := wire.Text(raw)
		description = strings.TrimSpace(display.Clean(strings.ReplaceAll(description, "\r\n", "\n")))
		if ok && plain(description) {
			s.take("description")
			text = description
		}
	}
	if title, ok := wire.Text(s.get("title")); ok && sameWords(title, property) {
		s.take("title")
	}
	for _, m := range s.members {
		if bytes.Contains(m.value, []byte(`"$ref"`)) || strings.HasPrefix(m.name, "$") || slices.Contains(combining, m.name) {
			w.failed = true // its target may be missing in the text, or it combines nothing
		}
		tags = append(tags, "@"+tagName(m.name)+" "+tagValue(m.value))
	}
	if text != "" && len(tags) > 0 {
		text += " "
	}
	return text + strings.Join(tags, " ")
}

// comment returns a comment for the end of a line.
func comment(text string) string {
	if strings.Contains(text, "\n") {
		return "/* " + text + " */"
	}
	return "// " + text
}

// plain reports whether a description can stand in a comment: nothing in it ends the comment
// or looks like a tag.
func plain(description string) bool {
	if strings.Contains(description, "*/") || strings.ContainsRune(description, '\uFFFD') {
		return false
	}
	before := ' '
	for _, r := range description {
		if before == '@' && r != ' ' {
			return false
		}
		if r == '@' && unicode.IsSpace(before) {
			before = r
			continue
		}
		before = r
		if r == '@' {
			before = 'a'
		}
	}
	return before != '@'
}

// tagName returns a keyword, quoted unless it is a word.
func tagName(name string) string {
	if isWord(name) {
		return name
	}
	return display.JSON(wire.Quote(name))
}

// tagValue returns a value without spaces; a string that is a word has no quotes.
func tagValue(raw json.RawMessage) string {
	if text, ok := wire.Text(raw); ok && isWord(text) && text != "true" && text != "false" && text != "null" {
		return text
	}
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return "null"
	}
	return strings.ReplaceAll(display.JSON(b.Bytes()), "*/", `*\/`)
}

// isWord reports whether a text is letters, digits and hyphens that begin with a letter.
func isWord(text string) bool {
	for i, r := range text {
		letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		if !letter && (i == 0 || r != '-' && (r < '0' || r > '9')) {
			return false
		}
	}
	return text != ""
}

// sameWords reports whether a title only repeats the name of a property.
func sameWords(title, name string) bool {
	fold := strings.NewReplacer(" ", "", "_", "", "-", "")
	return name != "" && strings.EqualFold(fold.Replace(title), fold.Replace(name))
}

// lessThan reports whether a number is less than n. Anything but an integer is.
func lessThan(raw json.RawMessage, n int) bool {
	is, err := strconv.Atoi(string(raw))
	return err != nil || is < n
}
