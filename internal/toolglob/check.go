package toolglob

import (
	"slices"
	"strings"
)

// Classes are what patterns may name beside globs: tools by what they say of themselves in
// their annotations. Those that say nothing are destructive.
var Classes = []string{"@destructive", "@write", "@readonly"}

// Check returns what is wrong with a pattern of a tool_filter, and what to write; both are
// empty if nothing is.
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

// CheckGlob is Check for a glob that names no tools.
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

// CheckMatch is Check for what a rule of the policy names: server/tool, each of them a
// pattern, or a class.
func CheckMatch(pattern string) (what, hint string) {
	server, tool, both := strings.Cut(pattern, "/")
	if strings.HasPrefix(pattern, "@") {
		server, tool, both = "", pattern, true
	}
	if !both || tool == "" {
		return "this names no tools", `write server/tool, such as "github/*" or "*/delete_*", or a class such as @destructive`
	}
	for _, part := range []string{server, tool} {
		if part != "" {
			if what, hint := Check(part); what != "" {
				return what, hint
			}
		}
	}
	return "", ""
}
