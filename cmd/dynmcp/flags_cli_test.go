package main

import (
	"slices"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A flag means the same wherever it is: it has one type and one shorthand, a shorthand one name, and
// --json is about output. Older spellings are hidden.
func TestFlagsHaveOneMeaning(t *testing.T) {
	type meaning struct{ kind, short, at string }
	known, shorthands := map[string]meaning{}, map[string]string{}
	flags := 0
	check := func(cmd *cobra.Command, f *pflag.Flag) {
		if f.Hidden {
			return
		}
		flags++
		at := cmd.CommandPath()
		kind := f.Value.Type()
		if kind == "func" && f.Name == "timeout" {
			kind = "duration" // more than 0
		}
		if kind == "stringSlice" || kind == "stringArray" { // one or several of the same
			kind = "string"
		}
		if before, ok := known[f.Name]; ok && (before.kind != kind || before.short != f.Shorthand) {
			t.Errorf("--%s is a %s, -%s, of %s, and a %s, -%s, of %s", f.Name, before.kind, before.short, before.at, kind, f.Shorthand, at)
		} else if !ok {
			known[f.Name] = meaning{kind, f.Shorthand, at}
		}
		if f.Shorthand == "" {
			return
		}
		if name, ok := shorthands[f.Shorthand]; ok && name != f.Name {
			t.Errorf("-%s is --%s, and --%s of %s", f.Shorthand, name, f.Name, at)
		}
		shorthands[f.Shorthand] = f.Name
	}
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) { check(cmd, f) })
		for _, below := range cmd.Commands() {
			walk(below)
		}
	}
	walk(rootCommand())
	if json := known["json"]; json.kind != "bool" || flags < 300 {
		t.Errorf("--json is %+v; %d flags were seen", json, flags)
	}
	// What names an entry, a number and a file has one word each.
	for _, name := range []string{"as", "lines", "env-file", "json-output"} {
		if _, ok := known[name]; ok != slices.Contains([]string{"env-file"}, name) {
			t.Errorf("--%s: known is %t", name, ok)
		}
	}
}
