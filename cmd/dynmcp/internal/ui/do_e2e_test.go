//go:build e2e

package ui

import (
	"slices"
	"strings"
	"testing"
)

// A text of the page is never an option of the command that it is passed to.
func TestTextsOfThePageAreNotOptions(t *testing.T) {
	for name, act := range acts {
		args := act.args(order{Server: "s", Tool: "-x", Text: "-x", Arguments: "-x", Version: "-x", Via: "-x", As: "-x", Secrets: "-x"})
		option := slices.IndexFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "-x") })
		if end := slices.Index(args, "--"); option >= 0 && (end < 0 || end > option) {
			t.Errorf("%s: %q", name, args)
		}
	}
}
