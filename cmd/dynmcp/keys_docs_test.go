package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/packaging/keys"
)

// TestEveryKeyIsDocumented checks that the lists have every key of every object: docs/config.md, or
// the page that it names for a section.
func TestEveryKeyIsDocumented(t *testing.T) {
	text := read(t, "../../docs/config.md")
	for _, name := range []string{"activity", "catalogue", "gateway", "login", "policy", "profiles", "sandbox", "scripts", "surfaces", "webhooks"} {
		if !strings.Contains(text, "]("+name+".md#keys)") {
			t.Errorf("docs/config.md does not say that docs/%s.md has keys", name)
		}
		text += read(t, "../../docs/"+name+".md")
	}
	count := 0
	for name, object := range keys.Types(module.SectionsOf(module.With(t.Context(), modules))) {
		for i := range object.NumField() {
			key := object.Field(i).Tag.Get("json")
			if key == "" || key == "-" {
				continue
			}
			count++
			if !strings.Contains(text, "\n- `"+key+"`: ") {
				t.Errorf("%s.%s is not in docs/config.md or a page that it names", name, key)
			}
		}
	}
	if count < 60 {
		t.Errorf("only %d keys looked at", count)
	}
}

// An example is a config that a page shows.
type example struct {
	name, text string
	bad        bool // it is shown as a mistake
}

var fence = regexp.MustCompile("(?ms)^```(jsonc?|yaml)( bad)?\n(.*?)^```$")

// examples returns the configs that users read: those of the documentation and README, and
// the one to copy.
func examples(t *testing.T) []example {
	all := []example{{name: "config.example.json", text: read(t, "../../config.example.json")}}
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(pages, "../../README.md") {
		for _, b := range fence.FindAllStringSubmatch(read(t, path), -1) {
			name := filepath.Base(path) + "." + strings.TrimSuffix(b[1], "c")
			all = append(all, example{name, b[3], b[2] != ""})
		}
	}
	if len(all) < 20 {
		t.Errorf("only %d examples", len(all))
	}
	return all
}

// TestExamplesOfTheDocs validates every example by the parser and by the schema: both accept
// the good ones, and refuse the bad ones.
func TestExamplesOfTheDocs(t *testing.T) {
	bad := 0
	for _, e := range examples(t) {
		invalid := resolved(t).Validate(document(t, e.name, e.text))
		_, refused := load(t, e.name, []byte(e.text), variablesIn(e.text))
		switch {
		case e.bad && (invalid == nil || refused == nil):
			t.Errorf("%s: shown as bad, but the schema says %v and the parser %v:\n%s", e.name, invalid, refused, e.text)
		case !e.bad && invalid != nil:
			t.Errorf("%s: the schema refuses: %v\n%s", e.name, invalid, e.text)
		case !e.bad && refused != nil:
			t.Errorf("%s: the parser refuses: %v\n%s", e.name, refused, e.text)
		}
		if e.bad {
			bad++
		}
	}
	if bad < 4 {
		t.Errorf("only %d bad examples", bad)
	}
}

var reference = regexp.MustCompile(`\$\{([A-Z_]+)\}`)

// variablesIn defines the variables that a text refers to without a default.
func variablesIn(text string) []string {
	environ := []string{"PATH=/bin"}
	for _, m := range reference.FindAllStringSubmatch(text, -1) {
		environ = append(environ, m[1]+"=value")
	}
	return environ
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
