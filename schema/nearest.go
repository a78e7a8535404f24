package schema

import "strings"

// foreignKeys are keys of other programs' configs, and what to write instead.
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
	if near := Nearest(key, known); near != "" {
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

// didYouMean is the hint for a value that is not allowed.
func didYouMean(value string, allowed []string) string {
	if near := Nearest(value, allowed); near != "" {
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

// Nearest returns the candidate most like s, or "" if none is: one letter in three
// may differ, or its beginning be left out, as in http for streamable-http.
func Nearest(s string, candidates []string) string {
	s = fold(s)
	best, least := "", max(1, len(s)/3)+1
	for _, candidate := range candidates {
		d := EditDistance([]rune(s), []rune(fold(candidate)))
		if len(s) > 2 && strings.HasSuffix(fold(candidate), s) {
			d = min(d, least-1)
		}
		if d < least {
			best, least = candidate, d
		}
	}
	return best
}

// fold removes differences in case and separators.
func fold(s string) string {
	return strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(s))
}

// EditDistance is the number of runes to insert, remove, replace or swap with
// their neighbour to make b of a, where no rune is edited twice (optimal string
// alignment).
func EditDistance(a, b []rune) int {
	before, prev, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			replace := 1
			if a[i-1] == b[j-1] {
				replace = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+replace)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, prev, row = prev, row, before
	}
	return prev[len(b)]
}
