// Package lazyregexp compiles regular expressions at their first use. Otherwise every start would pay
// for all of them: those of a package with twenty take longer than the rest of its
// initialisation and the config together.
package lazyregexp

import (
	"regexp"
	"sync"
)

// New returns a function that returns expr compiled. It panics at each call if expr is invalid.
func New(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
