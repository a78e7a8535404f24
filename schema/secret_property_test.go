package schema

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"pgregory.net/rapid"
)

// No text of a server that is used is a reference to a secret, wherever the server is in the
// file, whatever its keys are called, and whichever servers are selected.
func TestNoReferenceToASecretIsUsedAsText(t *testing.T) {
	names := []string{"a", "b", "c", "d"}
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		selected := rapid.SliceOfNDistinct(rapid.SampledFrom(names), 1, 4, rapid.ID).Draw(t, "selected")
		only := rapid.SampledFrom([][]string{nil, selected[:1]}).Draw(t, "only")
		indent := rapid.SampledFrom([]string{"block", "flow", "json"}).Draw(t, "syntax")
		name, doc := propertyDocument(t, rapid.Permutation(names).Draw(t, "order"), indent)
		opts := LoadOptions{Environ: []string{"REFERS=${cmd:gone}"}, Schemes: schemes, Secret: new(vault).secret, Only: only,
			Strict: rapid.Bool().Draw(t, "strict")}
		opts.Select = func(c *Config) (*Config, error) {
			other := *c
			other.Servers = slices.DeleteFunc(slices.Clone(c.Servers), func(s Server) bool { return !slices.Contains(selected, s.Name) })
			return &other, nil
		}
		cfg, err := TextFiles(t.Context(), filepath.Join(dir, name), []byte(doc), opts).Load()
		if err != nil {
			if opts.Strict && strings.Contains(err.Error(), "gone") || strings.Contains(err.Error(), "REFERS") {
				return
			}
			t.Fatalf("%v\n%s", err, doc)
		}
		for _, s := range cfg.Servers {
			text, err := json.Marshal(s) // each of its keys
			if err != nil {
				t.Fatal(err)
			}
			needed := only == nil || slices.Contains(only, s.Name)
			if refers := strings.Contains(string(text), "${"); refers && !s.Disabled {
				t.Errorf("%s has %s\n%s", s.Name, text, doc)
			} else if refers && needed && !strings.Contains(s.Off.Why(), "gone") && !strings.Contains(s.Off.Why(), "REFERS") {
				t.Errorf("%s is off: %s\n%s", s.Name, s.Off.Why(), doc)
			}
		}
	})
}

// propertyDocument draws a config of servers that refer to secrets.
func propertyDocument(t *rapid.T, order []string, form string) (name, doc string) {
	var b strings.Builder
	value := rapid.SampledFrom([]string{"${keyring:K}", "Bearer ${cmd:op read x}", "${file:/f}", "${keyring:gone}", "${REFERS}"})
	key := rapid.SampledFrom([]string{"A", "disabled", "command", "env"})
	fmt.Fprint(&b, "mcp:\n")
	for _, server := range order {
		maybe := func(key, text string) { // text has one value
			if rapid.Bool().Draw(t, key) {
				text, _, _ = strings.Cut(fmt.Sprintf(text+"\x00", value.Draw(t, "value of "+key)), "\x00")
				fmt.Fprintf(&b, "    %s: %s\n", key, text)
			}
		}
		fmt.Fprintf(&b, "  %s:\n", server)
		maybe("description", "%q")
		maybe("tool_overrides", "{t: {summary: %q, example_args: {q: [x]}}}")
		if rapid.Bool().Draw(t, "remote") {
			fmt.Fprintf(&b, "    headers:\n      %s: %q\n      disabled: \"true\"\n", "X-A", value.Draw(t, "header"))
			fmt.Fprintf(&b, "    url: %q\n", "https://h/"+rapid.SampledFrom([]string{"", value.Draw(t, "in url")}).Draw(t, "url"))
			maybe("auth", rapid.SampledFrom([]string{
				"{client_id: %q}", "{client_id: x, client_secret: %q}", "{scope: %q}", "{grant: client_credentials, client_id: x, private_key: %q}",
				"{grant: jwt_bearer, client_id: x, assertion_file: %q}", "{grant: jwt_bearer, client_id: x, assertion_file: /t, idp: \"https://idp/\", idp_client_id: %q}",
				"{grant: jwt_bearer, client_id: x, assertion_file: /t, idp: \"https://idp/\", idp_client_id: y, idp_client_secret: %q}",
			}).Draw(t, "kind of auth"))
		} else {
			fmt.Fprintf(&b, "    env: {%s: %q, X: \"true\", Y: %q}\n    args: [%q]\n", key.Draw(t, "key"), value.Draw(t, "env"), "true", value.Draw(t, "arg"))
			fmt.Fprintf(&b, "    command: %q\n", rapid.SampledFrom([]string{"x", value.Draw(t, "in command")}).Draw(t, "command"))
			maybe("cwd", "%q")
		}
	}
	fmt.Fprint(&b, "profiles: {one: [a]}\n")
	if form == "block" {
		return "mcp.yaml", b.String()
	}
	js, err := yaml.YAMLToJSON([]byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	if form == "flow" {
		return "mcp.yaml", string(js)
	}
	return "mcp.json", string(js)
}
