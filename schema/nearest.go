package schema

import (
	"strings"

	"github.com/dynmcp/dynmcp/internal/nearest"
)

// foreignKeys are keys of other programs' configs, with a hint.
var foreignKeys = map[string]string{
	"type":         `write "transport"`,
	"httpUrl":      `write "url"`,
	"serverUrl":    `write "url"`,
	"environment":  `write "env"`,
	"enabled":      `write "disabled"`,
	"envFile":      "variables come from .env in the working directory, or from the file given with --env",
	"includeTools": `write "tool_filter"`,
	"excludeTools": `write "tool_filter", with a ! before each name`,
	"alwaysAllow":  "remove it; what may be called is the host's to decide",
	"autoApprove":  "remove it; what may be called is the host's to decide",
	"inputs":       "remove it and write ${NAME} where a value is asked for",
}

// hintForKey is the hint for an unknown key.
func hintForKey(key string, known []string) string {
	if near := nearest.Word(key, known); near != "" {
		return `did you mean "` + near + `"?`
	}
	if hint, ok := foreignKeys[key]; ok {
		return hint
	}
	if len(known) > 12 {
		return "dynmcp schema prints all that are known"
	}
	return "known are " + strings.Join(known, ", ")
}
