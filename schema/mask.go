package schema

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// masked replaces a value that is not shown.
const masked = "***"

// Mask returns a config file, ours or a host's, with *** in place of values that
// may be secret: those of env and headers, of keys and options that are named like
// secrets, and URLs with more than a path. References to variables stay. The
// number of lines does not change. It returns nil for a file it cannot parse.
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

// secretName matches names of variables and options that hold a secret.
// secretAssignment matches what is assigned to one, as in a connection string, and
// knownToken the tokens of services that mark theirs.
var (
	secretName       = regexp.MustCompile(`(?i)key|token|secret|passw|credential|auth`)
	secretAssignment = regexp.MustCompile(`(?i)(?:key|token|secret|passw|credential|auth)[\w.-]*=([^\s;&]+)`)
	knownToken       = regexp.MustCompile(`^(?:gh[opsur]_|github_pat_|glpat-|sk[-_]|xox[a-z]-|AKIA|AIza|npm_|hf_|sbp_|eyJ[\w-]+\.|-----BEGIN )`)
)

// LooksSecret reports whether the value of a key, option or variable may be a
// secret: its name says so, or it is a URL with a query or credentials, has an
// assignment to such a name, or begins like a token.
func LooksSecret(key, value string) bool {
	_, reference, _ := nextReference(value)
	_, address, isURL := strings.Cut(value, "://")
	switch {
	case value == "" || reference != "" && !isURL:
		return false
	case secretName.MatchString(key) || isURL && strings.ContainsAny(address, "?@#"):
		return true
	}
	return secretAssignment.MatchString(value) || knownToken.MatchString(value)
}

// secretMaps are keys of objects all of whose values Mask hides.
var secretMaps = []string{"env", "headers", "http_headers", "requestInit"}

// isMasked reports whether Mask hides a string. within is the key of the object or
// list that holds it; key is its own or, in a list, the option before it.
func isMasked(within, key, value string) bool {
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
			if inner.Kind() == '"' && isMasked(within, key, inner.String()) {
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

// option returns an argument if the next one may be its value, "" otherwise.
func option(word string) string {
	if strings.HasPrefix(word, "-") && !strings.Contains(word, "=") {
		return word
	}
	return ""
}

// walk visits n and all keys and values below it, each with the within and key of
// isMasked.
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

// maskYAML hides secrets up to the end of their line, and the lines after it up to
// the next key or value.
func maskYAML(data []byte, root *node) []byte {
	type place struct {
		pos
		secret bool
	}
	var positions []place
	walk("", "", root, func(within, key string, n *node) {
		positions = append(positions, place{n.at, n.kind == text && isMasked(within, key, n.scalar)})
	})
	slices.SortStableFunc(positions, func(a, b place) int { return a.compare(b.pos) })
	lines := strings.SplitAfter(string(data), "\n")
	for i, p := range positions {
		if !p.secret {
			continue
		}
		last := len(lines)
		if i+1 < len(positions) {
			last = positions[i+1].line - 1
		}
		hideLines(lines, p.pos, last)
	}
	return []byte(strings.Join(lines, ""))
}

// hideLines hides the text from p to the end of its line and the lines after it,
// which may continue it, up to but not including the one of index last.
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
