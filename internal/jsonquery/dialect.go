package jsonquery

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"strings"
)

// Models and people use more JSONPath than the RFC has. Two additional operators of filters
// are accepted:
//
//	@.name contains 'file'          contains(@.name, 'file')
//	@.description =~ /file/i        search(@.description, '(?i)file')

// moved records a replacement: from offset to on, the new text equals the old one from offset
// from on.
type moved struct{ to, from int }

// original returns the offset in the old text of one in the new.
func original(offset int, all []moved) int {
	at := offset
	for _, m := range all {
		if offset >= m.to {
			at = offset - m.to + m.from
		}
	}
	return at
}

// dialect translates the query to that of the RFC. Unknown parts are left for the parser to
// refuse.
func dialect(query string) (plain string, all []moved, err error) {
	var out strings.Builder
	keep := func(from, to int) {
		all = append(all, moved{out.Len(), from})
		out.WriteString(query[from:to])
	}
	for i := 0; i < len(query); {
		switch c := query[i]; {
		case c == '\'' || c == '"':
			end := skipQuoted(query, i)
			keep(i, end)
			i = end
		case c == '@':
			end := skipPath(query, i)
			operator := skipSpace(query, end)
			rest := query[operator:]
			switch {
			case strings.HasPrefix(rest, "contains") && !nameByte(rest, len("contains")):
				operand := skipSpace(query, operator+len("contains"))
				last := operand
				if operand < len(query) && (query[operand] == '\'' || query[operand] == '"') {
					last = skipQuoted(query, operand)
				}
				if last == operand {
					return "", nil, fmt.Errorf("contains wants a text in quotes at position %d", operand+1)
				}
				out.WriteString("contains(")
				keep(i, end)
				out.WriteString(", ")
				keep(operand, last)
				out.WriteString(")")
				i = last
			case strings.HasPrefix(rest, "=~"):
				operand := skipSpace(query, operator+2)
				expression, last, problem := regexpAt(query, operand)
				if problem != nil {
					return "", nil, fmt.Errorf("%w at position %d", problem, operand+1)
				}
				out.WriteString("search(")
				keep(i, end)
				all = append(all, moved{out.Len(), operand})
				out.WriteString(", " + singleQuoted(expression) + ")")
				i = last
			default:
				keep(i, end)
				i = end
			}
		default:
			keep(i, i+1)
			i++
		}
	}
	all = append(all, moved{out.Len(), len(query)})
	return out.String(), all, nil
}

// skipQuoted returns the offset after the quoted text that starts at i.
func skipQuoted(s string, i int) int {
	for j := i + 1; j < len(s); j++ {
		switch s[j] {
		case '\\':
			j++
		case s[i]:
			return j + 1
		}
	}
	return len(s)
}

// skipPath returns the offset after the path that starts with the @ or $ at i.
func skipPath(s string, i int) int {
	for i++; i < len(s); {
		switch {
		case s[i] == '.':
			i++
		case nameByte(s, i), s[i] == '*':
			i++
		case s[i] == '[':
			end := closing(s, i)
			if end < 0 || strings.ContainsRune(s[i:end], '?') {
				return i // a filter has paths of its own
			}
			i = end
		default:
			return i
		}
	}
	return i
}

// closing returns the offset after the bracket that closes the one at i, -1 if there is none.
func closing(s string, i int) int {
	for depth := 0; i < len(s); {
		switch s[i] {
		case '\'', '"':
			i = skipQuoted(s, i)
			continue
		case '[':
			depth++
		case ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
	return -1
}

// nameByte reports whether the byte at i belongs to a name without quotes.
func nameByte(s string, i int) bool {
	if i >= len(s) {
		return false
	}
	c := s[i]
	return c == '_' || c >= 0x80 || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

func skipSpace(s string, i int) int {
	return len(s) - len(strings.TrimLeft(s[i:], " \t\r\n"))
}

// regexpAt reads a regular expression between slashes, with optional flags of Go, or one in
// quotes.
func regexpAt(s string, i int) (expression string, end int, err error) {
	if i >= len(s) || !strings.ContainsRune(`/'"`, rune(s[i])) {
		return "", 0, errors.New("=~ wants a regular expression between slashes")
	}
	if end = skipQuoted(s, i); end-i < 2 || s[end-1] != s[i] {
		return "", 0, errors.New("the regular expression does not end")
	}
	expression = strings.ReplaceAll(s[i+1:end-1], `\`+s[i:i+1], s[i:i+1])
	flags := end
	for s[i] == '/' && end < len(s) && strings.IndexByte("imsU", s[end]) >= 0 {
		end++
	}
	if end > flags {
		expression = "(?" + s[flags:end] + ")" + expression
	}
	if _, wrong := syntax.Parse(expression, syntax.Perl); wrong != nil {
		return "", 0, wrong
	}
	return expression, end, nil
}

// singleQuoted returns a text as a literal of a query.
func singleQuoted(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'"
}
