package toolglob

import (
	"slices"
	"strings"
)

// Classes are the classes of tools that a pattern may name instead of a glob, by the annotations
// of the tools. A tool without annotations is destructive.
var Classes = []string{"@destructive", "@write", "@readonly"}

// Declared is the class of tools whose annotations say that they are destructive, which are part of
// @destructive. Only the rules of a policy name it.
const Declared = "@destructive!"

// Check returns what is wrong with a pattern of a tool_filter, and a hint; both are empty for a
// valid pattern.
func Check(pattern string) (what, hint string) {
	pattern = strings.TrimPrefix(pattern, "!")
	switch {
	case strings.TrimSpace(pattern) == "":
		return "this pattern is empty", "write a tool name, with * for any letters"
	case pattern[0] == '@' && !slices.Contains(Classes, pattern):
		return "there is no such class of tools", `want @readonly, @write or @destructive; write \@ before a name that begins so`
	}
	return CheckGlob(pattern)
}

// CheckGlob is Check for a glob over other names than those of tools.
func CheckGlob(pattern string) (what, hint string) {
	if _, err := Compile(pattern); err != nil {
		return "this is not a glob: " + err.Error(), `write \ before a character that is to stand for itself`
	}
	return "", ""
}

// CheckOfServers is Check for a pattern over server/tool.
func CheckOfServers(pattern string) (what, hint string) {
	if what, hint = Check(pattern); what != "" {
		return what, hint
	}
	if p := strings.TrimPrefix(pattern, "!"); !strings.Contains(p, "/") && !strings.ContainsRune("@*{", rune(p[0])) {
		return "this names no tools", `write server/tool, such as "github/*", or a class such as @readonly`
	}
	return "", ""
}

// CheckMatch is Check for the match of a policy rule: a class, or server/tool with a pattern for
// each.
func CheckMatch(pattern string) (what, hint string) {
	server, tool, both := strings.Cut(pattern, "/")
	if strings.HasPrefix(pattern, "@") {
		server, tool, both = "", pattern, true
	}
	if !both || tool == "" {
		return "this names no tools", `write server/tool, such as "github/*" or "*/delete_*", or a class such as @destructive`
	}
	for _, part := range []string{server, tool} {
		if part != "" && part != Declared {
			if what, hint := Check(part); what != "" {
				return what, hint
			}
		}
	}
	return "", ""
}
