package catalog

import (
	"regexp"
	"strings"
)

// filter is a tool filter: with any positive pattern only matches pass, then
// what a "!" pattern matches goes. The order of patterns does not matter.
type filter struct{ allow, deny []*regexp.Regexp }

func newFilter(patterns []string) filter {
	var f filter
	for _, p := range patterns {
		if denied, ok := strings.CutPrefix(p, "!"); ok {
			f.deny = append(f.deny, glob(denied))
		} else {
			f.allow = append(f.allow, glob(p))
		}
	}
	return f
}

func (f filter) passes(name string) bool {
	return (len(f.allow) == 0 || anyMatch(f.allow, name)) && !anyMatch(f.deny, name)
}

func anyMatch(globs []*regexp.Regexp, name string) bool {
	for _, g := range globs {
		if g.MatchString(name) {
			return true
		}
	}
	return false
}

// glob compiles a shell pattern: * any text, ? one character, [abc] and [!abc]
// one of or none of a set. A tool name is no path, so * crosses slashes; a
// bracket that opens no set stands for itself, so that every pattern means
// something.
func glob(pattern string) *regexp.Regexp {
	var b strings.Builder
	b.WriteString(`(?s)\A`)
	for p := strings.ToValidUTF8(pattern, "\uFFFD"); p != ""; {
		switch {
		case p[0] == '*':
			b.WriteString(`.*`)
			p = p[1:]
		case p[0] == '?':
			b.WriteString(`.`)
			p = p[1:]
		default:
			expr, rest := globLiteral(p)
			b.WriteString(expr)
			p = rest
		}
	}
	b.WriteString(`\z`)
	return regexp.MustCompile(b.String())
}

// globLiteral translates the set or the plain text that starts p.
func globLiteral(p string) (expr, rest string) {
	if end := strings.IndexByte(p, ']'); p[0] == '[' && end > 1 && p[1:end] != "!" {
		set := p[1:end]
		not := ""
		if set[0] == '!' || set[0] == '^' {
			not, set = "^", set[1:]
		}
		expr = "[" + not + strings.NewReplacer(`\`, `\\`, `[`, `\[`, `^`, `\^`).Replace(set) + "]"
		if _, err := regexp.Compile(expr); err == nil { // a set may hold an inverted range
			return expr, p[end+1:]
		}
	}
	n := strings.IndexAny(p[1:], "*?[") + 1
	if n == 0 {
		n = len(p)
	}
	return regexp.QuoteMeta(p[:n]), p[n:]
}
