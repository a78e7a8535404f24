package secretref

import (
	"errors"
	"strings"
)

// Split returns the words of a command line as a POSIX shell would split them, with quotes and
// backslashes. Other characters have no special meaning.
func Split(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	begun := false
	var quote rune // the quote that is open
	escaped := false
	for _, c := range line {
		switch {
		case escaped && c == '\n': // the line continues
			escaped = false
		case escaped:
			if quote == '"' && !strings.ContainsRune("$`\"\\", c) {
				word.WriteByte('\\')
			}
			word.WriteRune(c)
			escaped, begun = false, true
		case c == '\\' && quote != '\'':
			escaped = true
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote, begun = c, true
		case quote == 0 && strings.ContainsRune(" \t\n", c):
			if begun {
				words = append(words, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteRune(c)
			begun = true
		}
	}
	if quote != 0 || escaped {
		return nil, errors.New("a quote is not closed")
	}
	if begun {
		words = append(words, word.String())
	}
	return words, nil
}
