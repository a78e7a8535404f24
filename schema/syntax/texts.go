package syntax

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// SetTexts returns data, the file of this name whose tree is root, with other texts in the place
// of some of its texts. Every other byte stays as it is.
func SetTexts(name string, data []byte, root *Node, to map[*Node]string) ([]byte, error) {
	lines := strings.SplitAfter(string(data), "\n")
	nodes := slices.SortedFunc(maps.Keys(to), func(a, b *Node) int { return b.At.Compare(a.At) })
	// From the end on, so that positions hold. What an alias of YAML repeats is there once.
	for i, n := range nodes {
		if i > 0 && nodes[i-1].At == n.At {
			continue
		}
		line := []rune(lines[n.At.Line-1])
		before, rest := string(line[:n.At.Col-1]), string(line[n.At.Col-1:])
		for _, written := range []string{Quote(n.Scalar), `"` + n.Scalar + `"`, "'" + n.Scalar + "'", n.Scalar} {
			if after, ok := strings.CutPrefix(rest, written); ok {
				lines[n.At.Line-1] = before + Quote(to[n]) + after
				break
			}
		}
	}
	for _, n := range nodes {
		n.Scalar = to[n]
	}
	out := []byte(strings.Join(lines, ""))
	after, err := (&Source{Name: name, Data: out}).Parse()
	if err != nil || !bytes.Equal(after.Compact(), root.Compact()) {
		return nil, fmt.Errorf("%s is written in a way that cannot be changed without touching the rest; edit it by hand", name)
	}
	return out, nil
}
