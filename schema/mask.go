package schema

import (
	"bytes"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// masked stands for a value that is not shown.
const masked = "***"

// Mask returns a config file, ours or a host's, for people to look at: what may
// be a secret in it is written as ***. Those are the values of env and headers,
// of keys that are called like secrets, what follows such words in a list, and
// addresses with more than a path. References to variables are shown. Lines stay lines.
// A file that cannot be read is not shown at all.
func Mask(name string, data []byte) []byte {
	data, restore := unixText(data)
	if value, err := hujson.Parse(data); err == nil {
		return restore(maskJSON(data, value))
	}
	src := &source{name: name, data: data}
	root, failure := src.parse()
	if failure != nil {
		return nil
	}
	return restore(maskYAML(data, root))
}

// LooksSecret reports whether a value called key may be a secret, by its name and
// its looks.
func LooksSecret(key, value string) bool {
	_, reference, _ := nextReference(value)
	switch {
	case value == "" || reference != "" && !strings.Contains(value, "://"):
		return false
	case secretName.MatchString(key):
		return true
	case strings.Contains(value, "://"):
		_, rest, _ := strings.Cut(value, "://")
		return strings.ContainsAny(rest, "?@#")
	}
	_, assigned, ok := strings.Cut(value, "=")
	return ok && assigned != "" && secretName.MatchString(value[:strings.Index(value, "=")])
}

// secretMaps are keys whose values are all taken for secrets.
var secretMaps = []string{"env", "headers", "http_headers", "requestInit"}

// tells reports whether a text may be a secret: within is the key of the object
// or list that holds it, key its own or, in a list, the item before it.
func tells(within, key, value string) bool {
	_, reference, _ := nextReference(value)
	return LooksSecret(key, value) || reference == "" && value != "" && slices.Contains(secretMaps, within)
}

func maskJSON(data []byte, root hujson.Value) []byte {
	var out bytes.Buffer
	shown := 0
	var walk func(within, key string, v hujson.Value)
	walk = func(within, key string, v hujson.Value) {
		switch inner := v.Value.(type) {
		case *hujson.Object:
			for _, m := range inner.Members {
				walk(key, m.Name.Value.(hujson.Literal).String(), m.Value)
			}
		case *hujson.Array:
			before := ""
			for _, item := range inner.Elements {
				walk(key, before, item)
				before = ""
				if l, ok := item.Value.(hujson.Literal); ok && l.Kind() == '"' {
					before = option(l.String())
				}
			}
		case hujson.Literal:
			if inner.Kind() == '"' && tells(within, key, inner.String()) {
				out.Write(data[shown:v.StartOffset])
				out.WriteString(quoted(masked))
				shown = v.EndOffset
			}
		}
	}
	walk("", "", root)
	out.Write(data[shown:])
	return out.Bytes()
}

// option is a word of a command line if what follows it may be its value.
func option(word string) string {
	if strings.HasPrefix(word, "-") && !strings.Contains(word, "=") {
		return word
	}
	return ""
}

// walk visits n and all keys and values below it. A value comes with its key, in
// a list with the option before it, and with the key of what holds it.
func walk(within, key string, n *node, visit func(within, key string, n *node)) {
	visit(within, key, n)
	for _, m := range n.members {
		visit("", "", &node{kind: text, at: m.at, scalar: m.key})
		walk(key, m.key, m.value, visit)
	}
	before := ""
	for _, item := range n.items {
		walk(key, before, item, visit)
		before = option(item.scalar)
	}
}

// maskYAML hides secrets to the ends of their lines, and the lines behind up to
// the next value.
func maskYAML(data []byte, root *node) []byte {
	type place struct {
		pos
		secret bool
	}
	var places []place
	walk("", "", root, func(within, key string, n *node) {
		places = append(places, place{n.at, n.kind == text && tells(within, key, n.scalar)})
	})
	slices.SortStableFunc(places, func(a, b place) int { return a.compare(b.pos) })
	lines := strings.SplitAfter(string(data), "\n")
	for i, p := range places {
		if !p.secret {
			continue
		}
		last := len(lines)
		if i+1 < len(places) {
			last = places[i+1].line - 1
		}
		hideLines(lines, p.pos, last)
	}
	return []byte(strings.Join(lines, ""))
}

// hideLines hides the text at p to the end of its line, and the lines behind
// it up to the one of index last: they may be more of it.
func hideLines(lines []string, p pos, last int) {
	head := []rune(lines[p.line-1])
	if p.col <= len(head) {
		lines[p.line-1] = string(head[:p.col-1]) + masked + "\n"
	}
	for i := p.line; i < last; i++ {
		if !isBlank(lines[i]) {
			lines[i] = masked + "\n"
		}
	}
}
