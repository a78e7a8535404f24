package schema

import (
	"slices"
	"strings"
)

// elsewhere are keys that other programs' configs have, and what is written
// for them here.
var elsewhere = map[string]string{
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

// hintForKey says what to write instead of an unknown key.
func hintForKey(key string, known []string) string {
	if near := nearest(key, known); near != "" {
		return `did you mean "` + near + `"?`
	}
	if hint, ok := elsewhere[key]; ok {
		return hint
	}
	return "known are " + strings.Join(known, ", ")
}

// didYouMean says what to write instead of a value that is not allowed.
func didYouMean(value string, allowed []string) string {
	if near := nearest(value, allowed); near != "" {
		return `did you mean "` + near + `"?`
	}
	return "want " + oneOf(allowed)
}

// oneOf lists the allowed values of a key.
func oneOf(values []string) string {
	last := len(values) - 1
	if last == 0 {
		return values[0]
	}
	return strings.Join(values[:last], ", ") + " or " + values[last]
}

// nearest is the candidate that s is most likely meant to be, empty when none
// is near: at most one letter in three may differ.
func nearest(s string, candidates []string) string {
	best, least := "", max(1, len(s)/3)+1
	for _, candidate := range candidates {
		if d := distance(fold(s), fold(candidate)); d < least {
			best, least = candidate, d
		}
	}
	return best
}

// fold makes spellings alike that differ only in case and separators.
func fold(s string) string {
	return strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(s))
}

// distance counts the letters to insert, remove or replace to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = slices.Min([]int{cost, diagonal + 1, row[j] + 1})
		}
	}
	return row[len(b)]
}
