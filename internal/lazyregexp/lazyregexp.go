// Package lazyregexp compiles regular expressions when they are first used. Every
// start would pay for all of them otherwise: those of a package that has twenty take
// longer than the rest of its initialisation and the config together.
package lazyregexp

import (
	"regexp"
	"sync"
)

// New returns a function that returns expr compiled. It panics, each time, if expr
// is invalid.
func New(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
