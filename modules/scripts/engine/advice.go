package engine

import (
	"regexp"
	"strings"

	"github.com/dynmcp/dynmcp/internal/lazyregexp"
)

// mistakes are mistakes of models and what to do instead. The first match for the line of a syntax
// error is used: before matches the line up to the position of the error, from the rest. $0 is the
// match of from, or else of before.
var mistakes = []struct {
	before, from func() *regexp.Regexp
	say          string
}{
	{nil, lazyregexp.New(`^import\b`), "import is not available: a script has tools, call, search, describe, resource and console"},
	{nil, lazyregexp.New(`^export\b`), "export is not available: return the result"},
	{nil, lazyregexp.New(`^enum\b`), "enum is TypeScript: write const Name = {…}"},
	{lazyregexp.New(`\bfor\s*$`), lazyregexp.New(`^await\b`), "for await is not available: use for (const x of await Promise.all(list))"},
	{lazyregexp.New(`\b(?:interface|type|declare|namespace|abstract)\s+$`), nil, "type declarations are not supported: remove the one that begins with `$0`"},
	{lazyregexp.New(`\b(?:private|public|protected|readonly|override)\s+$`), nil, "type annotations are not supported: remove `$0`"},
	{nil, lazyregexp.New(`^(?:as|satisfies)\s+[\w$.]+(?:\[\])*`), "type annotations are not supported: remove `$0`"},
	{lazyregexp.New(`[\w$)\]}]\s*$`), lazyregexp.New(`^\??\s*:\s*(?:[A-Za-z_$][\w$.]*(?:<[^=;()]*>)?(?:\[\])*(?:\s*[|&]\s*[\w$.'"]+(?:\[\])*)*|\{[^}]*\}(?:\[\])*)`), "type annotations are not supported: remove `$0`"},
	{lazyregexp.New(`[\w$)\]]$`), lazyregexp.New(`^!`), "type annotations are not supported: remove `!`"},
	{lazyregexp.New(`<[\w$\s,.|\[\]]+$`), lazyregexp.New(`^>`), "type parameters are not supported: remove `$0>`"},
	{nil, lazyregexp.New(`^<[\w$\s,.|\[\]]+>`), "type parameters are not supported: remove `$0`"},
}

// advise returns the advice for a place in the source, "" if there is none.
func advise(source string, line, column int) string {
	lines := strings.Split(source, "\n")
	if line < 1 || line > len(lines) || column < 1 || column > len(lines[line-1])+1 {
		return ""
	}
	before, from := lines[line-1][:column-1], lines[line-1][column-1:]
	for _, a := range mistakes {
		match := ""
		if a.before != nil {
			if match = a.before().FindString(before); match == "" {
				continue
			}
		}
		if a.from != nil {
			found := a.from().FindString(from)
			if found == "" {
				continue
			}
			if !strings.Contains(a.say, "$0>") {
				match = found
			}
		}
		return strings.ReplaceAll(a.say, "$0", strings.TrimSpace(match))
	}
	return ""
}
