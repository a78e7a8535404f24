package secrets

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dynmcp/dynmcp/internal/lazyregexp"
)

var uuid = lazyregexp.New(`(?i)^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// looksRandom reports whether a word looks machine-generated: a UUID, or a run of at least so many
// letters and digits that no name of a program or a project has.
func looksRandom(word string, least int) bool {
	if len(word) == 36 && uuid().MatchString(word) {
		return true
	}
	notInToken := func(r rune) bool { return !isWordRune(r) && !strings.ContainsRune("~=+.-", r) }
	if len(word) < least || strings.ContainsFunc(word, notInToken) {
		return false
	}
	for _, run := range strings.FieldsFunc(word, func(r rune) bool { return r == '_' || !isWordRune(r) }) {
		if len(run) < 12 {
			continue
		}
		changes := 0 // between upper case, lower case and digits
		for i := 1; i < len(run); i++ {
			if charClass(run[i]) != charClass(run[i-1]) {
				changes++
			}
		}
		if strings.ContainsAny(run, "0123456789") && (changes >= 4 || changes >= 2 && len(run) >= 24) {
			return true
		}
	}
	return false
}

// looksOpaque reports whether a value is meaningless to a reader: letters and digits in one run, or in
// groups of equal length as in licence keys.
func looksOpaque(value string) bool {
	mixed := func(s string) bool {
		return strings.ContainsAny(s, "0123456789") && strings.ContainsFunc(s, unicode.IsLetter)
	}
	if strings.ContainsFunc(value, func(r rune) bool { return !isWordRune(r) && !strings.ContainsRune("~=+-", r) }) {
		return looksRandom(value, 16)
	}
	groups := strings.FieldsFunc(value, func(r rune) bool { return r == '_' || !isWordRune(r) })
	long := func(group string) bool { return len(group) >= 8 && mixed(group) }
	other := func(group string) bool { return len(group) < 4 || len(group) != len(groups[0]) }
	return slices.ContainsFunc(groups, long) || len(groups) > 2 && mixed(value) && !slices.ContainsFunc(groups, other)
}

func charClass(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return 0
	case c >= 'a':
		return 1
	}
	return 2
}

func isWordRune(r rune) bool { return r < utf8.RuneSelf && isWordByte(byte(r)) }

func isWordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}
