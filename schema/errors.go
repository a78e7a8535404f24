package schema

import (
	"fmt"
	"strings"

	"github.com/dynmcp/dynmcp/schema/syntax"
)

// MissingVariablesError lists the undefined variables that a config file refers
// to.
type MissingVariablesError struct {
	// Names are the variables, sorted, each once.
	Names []string
	// Uses are the references to them, in file order.
	Uses []*syntax.Error
}

// Error names all variables and then, one per line, where each is used.
func (e *MissingVariablesError) Error() string {
	noun := "variable"
	if len(e.Names) > 1 {
		noun = "variables"
	}
	lines := []string{fmt.Sprintf("missing environment %s: %s", noun, strings.Join(e.Names, ", "))}
	for _, use := range e.Uses {
		lines = append(lines, use.Error())
	}
	return strings.Join(lines, "\n")
}
