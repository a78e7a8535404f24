package reference

import (
	"strings"

	"github.com/dynmcp/dynmcp/internal/lazyregexp"
)

var notInVariable = lazyregexp.New(`[^A-Za-z0-9_]+`)

// VariableName converts a text to the name of a variable.
func VariableName(text string) string {
	return strings.ToUpper(strings.Trim(notInVariable().ReplaceAllString(text, "_"), "_"))
}
