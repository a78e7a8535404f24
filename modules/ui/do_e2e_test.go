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
		o := order{Act: name, Server: "s", Tool: "-x", Text: "-x", Arguments: "-x", Version: "-x", Via: "-x", As: "-x", Secrets: "-x", OpenAPI: "-x", URL: "-x", Tags: "-x"}
		args := act.args(o)
		if act.last != nil {
			args = append(args, act.last(o)...)
		}
		option := slices.IndexFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "-x") })
		if end := slices.Index(args, "--"); option >= 0 && (end < 0 || end > option) {
			t.Errorf("%s: %q", name, args)
		}
		if (name == "set" || name == "use") && args[len(args)-1] != o.Text {
			t.Errorf("%s: %q has no text", name, args)
		}
	}
}

// What a tool or a new server gets may be secret, and is on no command line, which other users can
// read.
func TestInputOfThePageIsNotOnTheCommandLine(t *testing.T) {
	for name, act := range acts {
		o := order{Server: "s", Tool: "t", Arguments: `{"key":"s3cr3t"}`, Answers: map[string]string{"key": "s3cr3t"}}
		if args := strings.Join(act.args(o), " "); strings.Contains(args, "s3cr3t") {
			t.Errorf("%s: %s", name, args)
		}
		if want := map[string]string{"call": o.Arguments, "add": `{"key":"s3cr3t"}`}[name]; want != "" && (act.in == nil || string(act.in(o)) != want) {
			t.Errorf("%s: the input is not %s", name, want)
		}
	}
}
