// Package mask displays texts of configs without values that may be secret.
package mask

import (
	"bytes"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/internal/secrets"
	"github.com/dynmcp/dynmcp/schema/syntax"
)

// secretMaps are keys of objects whose values are all treated as secrets.
var secretMaps = append([]string{"env", "environment"}, secrets.HeaderMaps...)

// Text replaces a hidden value.
const Text = "***"

// File returns a config file, ours or a host's, with *** in place of possible secrets: all
// values of env and headers, and those that secrets.Find finds elsewhere. References to
// variables stay. The number of lines does not change. It returns nil for a file that cannot
// be parsed.
func File(name string, data []byte) []byte {
	data, restore := syntax.UnixText(data)
	if root, err := syntax.ParseJSON(name, data); err == nil {
		return restore(maskJSON(data, root))
	}
	root, err := (&syntax.Source{Name: name, Data: data}).Parse()
	if err != nil {
		return nil
	}
	return restore(maskYAML(data, root))
}

// maskText returns a string as File shows it, given the within and key of secrets.Find.
func maskText(within, key, value string) string {
	if slices.Contains(secretMaps, within) && value != "" && !refers(value) {
		return Text
	}
	return secrets.Hide(value, secrets.Find(within, key, value), Text)
}

// refers reports whether a text contains a ${…}.
func refers(text string) bool {
	_, rest, found := strings.Cut(text, "${")
	return found && strings.Contains(rest, "}")
}

func maskJSON(data []byte, root *syntax.Node) []byte {
	var out bytes.Buffer
	shown := 0
	Walk("", "", root, func(within, key string, n *syntax.Node) {
		if n.Kind != syntax.Text || n.To == 0 { // keys have no span
			return
		}
		if text := maskText(within, key, n.Scalar); text != n.Scalar {
			out.Write(data[shown:n.From])
			out.WriteString(syntax.Quote(text))
			shown = n.To
		}
	})
	out.Write(data[shown:])
	return out.Bytes()
}

// Walk visits n and all keys and values below it, each with the within and key of
// secrets.Find.
func Walk(within, key string, n *syntax.Node, visit func(within, key string, n *syntax.Node)) {
	visit(within, key, n)
	for _, m := range n.Members {
		visit("", "", &syntax.Node{Kind: syntax.Text, At: m.At, Scalar: m.Key})
		Walk(key, m.Key, m.Value, visit)
	}
	before := ""
	for _, item := range n.Items {
		Walk(key, before, item, visit)
		before = secrets.Option(item.Scalar)
	}
}

// maskYAML hides secrets up to the end of their line, and the lines after it up to
// the next key or value.
func maskYAML(data []byte, root *syntax.Node) []byte {
	type place struct {
		syntax.Pos
		secret bool
	}
	var positions []place
	Walk("", "", root, func(within, key string, n *syntax.Node) {
		positions = append(positions, place{n.At, n.Kind == syntax.Text && maskText(within, key, n.Scalar) != n.Scalar})
	})
	slices.SortStableFunc(positions, func(a, b place) int { return a.Compare(b.Pos) })
	lines := strings.SplitAfter(string(data), "\n")
	for i, p := range positions {
		if !p.secret {
			continue
		}
		last := len(lines)
		if i+1 < len(positions) {
			last = positions[i+1].Line - 1
		}
		hideLines(lines, p.Pos, last)
	}
	return []byte(strings.Join(lines, ""))
}

// hideLines hides the text from p to the end of its line, and the following lines, which may
// continue it, up to the one of index last.
func hideLines(lines []string, p syntax.Pos, last int) {
	head := []rune(lines[p.Line-1])
	if p.Col <= len(head) {
		lines[p.Line-1] = string(head[:p.Col-1]) + Text + "\n"
	}
	for i := p.Line; i < last; i++ {
		if strings.TrimSpace(lines[i]) != "" {
			lines[i] = Text + "\n"
		}
	}
}
