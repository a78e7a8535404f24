// Package toolglob compiles patterns for the names of tools.
package toolglob

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/dynmcp/dynmcp/internal/lazyregexp"
)

// globToken is a set in brackets, a character after a \, or a character.
var globToken = lazyregexp.New(`(?s)\[[!^]?(?:\\.|[^\\\]])+\]|\\.|.`)

// Compile converts a pattern of a tool_filter, without its leading !, to a regular expression. In
// a pattern * is any text, ? one character, [a-z] and [!a-z] a character that is in a set or not
// in it, {a,b} one of several patterns, and \ takes the next character literally. The name of a
// tool is not a path: a slash is a character like any other.
func Compile(pattern string) (*regexp.Regexp, error) {
	var expr strings.Builder
	expr.WriteString(`(?s)\A`)
	braces := 0
	for _, token := range globToken().FindAllString(pattern, -1) {
		switch {
		case token == "*":
			expr.WriteString(".*")
		case token == "?":
			expr.WriteString(".")
		case token == "{":
			braces++
			expr.WriteString("(?:")
		case token == "}" && braces == 0:
			return nil, errors.New("a } without a {")
		case token == "}":
			braces--
			expr.WriteString(")")
		case token == "," && braces > 0:
			expr.WriteString("|")
		case token == "[" || token == "[!]" || token == "[^]":
			return nil, errors.New("a [ that is not closed, or has nothing in it")
		case token == `\`:
			return nil, errors.New(`nothing follows the \`)
		case token[0] == '[':
			expr.WriteString(globSet(token))
		default:
			expr.WriteString(regexp.QuoteMeta(strings.TrimPrefix(token, `\`)))
		}
	}
	if braces > 0 {
		return nil, errors.New("a { that is not closed")
	}
	compiled, err := regexp.Compile(expr.String() + `\z`)
	if err != nil {
		return nil, errors.New("a range that ends before it begins") // the error would show the pattern
	}
	return compiled, nil
}

var setMember = lazyregexp.New(`(?s)\\.|[^-]`)

func globSet(token string) string {
	members, not := token[1:len(token)-1], ""
	if members[0] == '!' || members[0] == '^' {
		members, not = members[1:], "^"
	}
	return "[" + not + setMember().ReplaceAllStringFunc(members, func(s string) string {
		r, _ := utf8.DecodeLastRuneInString(s)
		return fmt.Sprintf(`\x{%x}`, r)
	}) + "]"
}

// Apart reports whether two matches of policy rules are known to match no tool both: the names of
// their servers, or of their tools, are others without globs.
func Apart(a, b string) bool {
	server, tool, _ := strings.Cut(a, "/")
	otherServer, otherTool, _ := strings.Cut(b, "/")
	differ := func(a, b string) bool {
		return a != "" && b != "" && a != b && !strings.ContainsAny(a+b, `*?[]{}\!@`)
	}
	return differ(server, otherServer) || differ(tool, otherTool)
}
