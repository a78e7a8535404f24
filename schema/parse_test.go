package schema

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/tailscale/hujson"

	"github.com/dynmcp/dynmcp/schema/syntax"
)

// allSurfaces is the section of a module with all surfaces.
var allSurfaces = []Section{{Surfaces: Surfaces}}

// parse does not panic on any input. A config that it accepts is complete, and every error
// has a position in the file.
func fuzzParse(f *testing.F, name string) {
	for _, input := range inputs(f, "testdata/*.txt") {
		f.Add([]byte(input))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		cfg, err := parse(name, data, LoadOptions{Dir: dir, Environ: environ})
		checkLenient(t, name, data, dir, cfg, err)
		if err == nil {
			checkComplete(t, cfg)
			return
		}
		for _, e := range placed(t, err) {
			checkPlace(t, data, e)
		}
	})
}

// JSON without comments gives the same config when it is read as YAML.
func TestJSONIsYAML(t *testing.T) {
	same := 0
	for file, input := range inputs(t, "testdata/*.json.txt") {
		standard, err := hujson.Standardize([]byte(input))
		if err != nil {
			continue
		}
		opts := LoadOptions{Dir: t.TempDir(), Environ: environ}
		want, err := parse("a", standard, opts)
		if err != nil {
			continue
		}
		got, err := parse("a.yaml", standard, opts)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		want.Warnings, got.Warnings = nil, nil // they begin with the name
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(Config{})); diff != "" {
			t.Errorf("%s (-JSON +YAML):\n%s", file, diff)
		}
		same++
	}
	if same < 15 {
		t.Errorf("only %d configs compared", same)
	}
}

// checkLenient checks that a config is the same if entries with errors are none of the file. If only
// they have errors, each of them is off, or its warning says that it is left out or has another name.
func checkLenient(t *testing.T, name string, data []byte, dir string, cfg *Config, wrong error) {
	t.Helper()
	lenient, err := parse(name, data, LoadOptions{Dir: dir, Environ: environ, Lenient: true})
	switch {
	case wrong == nil && (err != nil || !cmp.Equal(cfg, lenient, cmp.AllowUnexported(Config{}))):
		t.Errorf("%s is right, and lenient %v:\n%s", data, err, cmp.Diff(cfg, lenient, cmp.AllowUnexported(Config{})))
	case wrong != nil && err == nil:
		for _, s := range lenient.Servers {
			if s.Off != nil && s.Off.Why() != "" {
				return
			}
		}
		if warned := strings.Join(lenient.Warnings, "\n"); !strings.Contains(warned, "left out") && !strings.Contains(warned, "is called") {
			t.Errorf("%s: lenient shows nothing of %v", data, wrong)
		}
	}
}

func FuzzParseJSON(f *testing.F) { fuzzParse(f, "mcp.json") }
func FuzzParseYAML(f *testing.F) { fuzzParse(f, "mcp.yaml") }

// placed returns all errors with a position in an error of parse.
func placed(t *testing.T, err error) []*syntax.Error {
	t.Helper()
	var all []*syntax.Error
	var errs syntax.Errors
	if errors.As(err, &errs) {
		all = append(all, errs...)
	}
	var missing *MissingVariablesError
	if errors.As(err, &missing) {
		all = append(all, missing.Uses...)
	}
	if len(all) == 0 {
		t.Errorf("an error without a position: %v", err)
	}
	return all
}

func checkPlace(t *testing.T, data []byte, e *syntax.Error) {
	t.Helper()
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	lines := bytes.Split(data, []byte("\n"))
	if e.Line < 1 || e.Line > len(lines) {
		t.Fatalf("line %d of %d: %v", e.Line, len(lines), e)
	}
	if width := utf8.RuneCount(lines[e.Line-1]); e.Column < 1 || e.Column > width+1 {
		t.Fatalf("column %d of %d: %v", e.Column, width, e)
	}
	if e.Err == nil || e.Err.Error() == "" || strings.ContainsAny(e.Error(), "\n\r") {
		t.Errorf("not one line: %q", e)
	}
}

// checkComplete checks what readers of a Config rely on.
func checkComplete(t *testing.T, cfg *Config) {
	t.Helper()
	if len(cfg.Expose) == 0 {
		t.Errorf("nothing to serve: %+v", cfg)
	}
	names := map[string]bool{}
	for _, s := range cfg.Servers {
		if !serverName().MatchString(s.Name) || names[s.Name] {
			t.Errorf("invalid or duplicate name %q", s.Name)
		}
		names[s.Name] = true
		if s.Disabled && s.Transport == "" {
			continue // it only switches another off
		}
		if s.Transport == Stdio && (s.Command == "" || s.URL != "") || s.Transport != Stdio && (s.URL == "" || s.Command != "") {
			t.Errorf("neither a stdio nor a remote server: %+v", s)
		}
		if s.LoadTimeout <= 0 || s.MaxMessageBytes <= 0 || s.Timeout < 0 || s.LoadBudget < 0 {
			t.Errorf("limits out of range: %+v", s)
		}
	}
}

// People and models read errors and warnings, so these must not contain values of variables,
// headers or credentials, not even if the secret or the syntax beside it is what is wrong.
func TestNoSecretInErrors(t *testing.T) {
	const canary = "c4nary-s3cret"
	for _, doc := range []string{
		`{"mcp": {"a": {"command": "x", "env": {"KEY": CANARY}}}}`,
		`{"mcp": {"a": {"command": "x", "env": {"KEY": "CANARY" "X": 1}}}}`,
		`{"mcp": {"a": {"command": "x", "env": {"KEY": "CANARY}}}}`,
		`{"mcp": {"a": {"command": "x", "env": {"KEY": 'CANARY'}}}}`,
		`{"mcp": {"a": {"command": "x", "env": {"KEY": "CANARY\q"}}}}`,
		`{"mcp": {"a": {"command": "x", "env": {"KEY": ["CANARY"]}}}}`,
		`{"mcp": {"a": {"command": "x", "env": "CANARY"}}}`,
		`{"mcp": {"a": {"command": "x", "env": {"KEY": "CANARY\u0000"}}}}`,
		`{"mcp": {"a": {"url": "CANARY", "headers": {"A": {"x": "CANARY"}, "B": "CANARY\n"}}}}`,
		`{"mcp": {"a": {"url": "https://u:CANARY@ h/?k=CANARY", "headers": "CANARY"}}}`,
		`{"mcp": {"a": {"url": "https://a.test", "auth": {"client_id": ["CANARY"], "client_secret": {"x": "CANARY"}}}}}`,
		`{"mcp": {"a": {"url": "https://a.test", "auth": "CANARY"}}}`,
		`{"mcp": {"a": {"transport": "${CANARY}", "load": "${CANARY}", "timeout": "${CANARY}", "description": ["${CANARY}"], "tool_filter": ["[${CANARY}"]}}}`,
		`{"mcp": {"a": {"command": "x", "timeuot": "${CANARY}", "path_aliases": {"t": "${CANARY}/"}, "inherit_env": "${CANARY}", "disabled": "${CANARY}"}}}`,
		`{"mcp": {"a": {"command": "${NO_SUCH} ${CANARY}"}}, "gateway": {"token": ["${CANARY}"], "listen": "${CANARY}", "allowed_origins": ["${CANARY}"]}}`,
		`{"tree": [{"path": "${CANARY}", "source": {"command": "x", "mcp": "${CANARY}", "backend": "${CANARY}"}}, {"path": "${CANARY}", "type": "${CANARY}"}]}`,
		"mcp:\n  a:\n    command: x\n    env: {KEY: CANARY\n",
		"mcp:\n  a:\n    command: x\n    env:\n      KEY: \"CANARY\n",
		"mcp:\n  a:\n    command: x\n    env:\n      KEY: @CANARY\n",
		"mcp:\n  a:\n    command: x\n    env:\n      KEY: CANARY: CANARY\n",
		"mcp:\n  a:\n    command: x\n    env:\n      KEY: *CANARY\n",
		"mcp:\n  a:\n    command: x\n    env:\n    KEY: CANARY\n   X: CANARY\n",
		"mcp:\n  a:\n    command: x\n    env:\n      KEY: !CANARY x\n",
		"mcp:\n  a:\n    command: x\n    env:\n      KEY: [CANARY\n",
	} {
		name := "mcp.json"
		if !strings.HasPrefix(doc, "{") {
			name = "mcp.yaml"
		}
		data := strings.ReplaceAll(strings.ReplaceAll(doc, "${CANARY}", "${SECRET}"), "CANARY", canary)
		_, err := parse(name, []byte(data), LoadOptions{Dir: t.TempDir(), Environ: []string{"SECRET=" + canary}})
		if err == nil {
			t.Errorf("no error for %s", doc)
		} else if strings.Contains(err.Error(), canary[:6]) {
			t.Errorf("%s\ngives an error with the secret:\n%v", doc, err)
		}
	}
}

// Secrets has the values that a redactor must hide, and not the words around them.
func TestSecrets(t *testing.T) {
	doc := `{
		"mcp": {
			"a": {
				"command": "x", "description": "not a secret",
				"args": ["--key=${VARIABLE}"],
				"env": {
					"GITHUB_TOKEN": "literal-token", "MODE": "literal-mode", "OTHER": "${OTHER}", "GH": "ghp_literal",
					"DB": "postgres://me:literal-db@db.test/x?key=literal-db-query", "CONN": "Server=literal-host;Password=literal-conn;", "URL": "${NONE:-http://literal-default.test/?a=b}"
				}
			},
			"b": {
				"url": "https://user:literal-password@b.test/mcp?api_key=literal-query",
				"headers": {"Authorization": "Bearer literal-bearer", "X-Key": "literal-header"},
				"auth": {"client_id": "public-id", "client_secret": "literal-client-secret"}
			}
		},
		"gateway": {"token": "literal-gateway"}
	}`
	cfg, err := parse("mcp.json", []byte(doc), LoadOptions{Dir: t.TempDir(), Environ: []string{"VARIABLE=from-variable", "OTHER=from-other"}})
	if err != nil {
		t.Fatal(err)
	}
	secrets := strings.Join(cfg.Secrets(), "\n")
	for _, want := range []string{
		"from-variable", "from-other", "literal-token", "literal-password", "literal-query", "literal-bearer",
		"ghp_literal", "postgres://me:literal-db@db.test/x?key=literal-db-query", "literal-db", "literal-db-query", "literal-conn",
		"Bearer literal-bearer", "literal-header", "literal-client-secret", "literal-gateway",
	} {
		if !strings.Contains("\n"+secrets+"\n", "\n"+want+"\n") {
			t.Errorf("%q is not among the secrets %q", want, cfg.Secrets())
		}
	}
	for _, not := range []string{"not a secret", "literal-mode", "literal-default", "public-id", "--key="} {
		if strings.Contains(secrets, not) {
			t.Errorf("%q is among the secrets %q", not, cfg.Secrets())
		}
	}
}

// Values of variables like HOME, defaults, and texts that the config has in plain text
// elsewhere are not secret. All other values of variables are.
func TestValuesThatAreNotSecret(t *testing.T) {
	const doc = `{
		"mcp": {
			"a": {
				"command": "x", "cwd": "${HOME}/data", "description": "Runs for ${USER}.",
				"args": ["${LEVEL:-warning}", "${NODE_ENV:-production}", "${SIZE:-}", "${REGION}", "${MODE}", "--key", "plain-key"],
				"env": {"MODE": "verbose-mode", "TOKEN_DIR": "${TMPDIR}", "DB": "${DB_URL}", "A": "${IN_HEADER}", "B": "${IN_TOKEN}", "C": "${IN_KEY}", "D": "${OTHER_FILE}"}
			},
			"b": {"url": "https://eu-central.test/mcp", "headers": {"X-Mode": "${HEADER:-header-default}", "X-Key": "plain-header"}, "max_message_bytes": 1234567}
		},
		"gateway": {"token": "plain-token"}
	}`
	cfg, err := layered(t, map[string]string{"near.json": doc, "far.json": `{"mcp": {"c": {"command": "in-other-file"}}}`}, []string{
		"HOME=/home/someone", "USER=someone", "TMPDIR=/tmp/someone", "PATH=/usr/bin:/bin", "NODE_ENV=production", "REGION=eu-central", "SIZE=1234567", "MODE=verbose-mode",
		"DB_URL=postgres://db/hunter22", "IN_HEADER=plain-header", "IN_TOKEN=plain-token", "IN_KEY=plain-key", "OTHER_FILE=in-other-file", "WHO=not-used",
	}, "near.json", "far.json")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"header-default", "plain-header", "plain-key", "plain-token", "postgres://db/hunter22"}
	if diff := cmp.Diff(want, cfg.Secrets()); diff != "" {
		t.Errorf("secrets (-want +got):\n%s", diff)
	}
}

// BenchmarkParse reads a config of 50 servers, as every start and reload does.
func BenchmarkParse(b *testing.B) {
	var doc strings.Builder
	doc.WriteString(`{"mcp": {`)
	for i := range 50 {
		fmt.Fprintf(&doc, `"server-%d": {"command": "npx", "args": ["-y", "${SPEED}"], "description": "Does things.", "tool_overrides": {"t": {"summary": "s"}}},`, i)
	}
	doc.WriteString(`}}`)
	opts := LoadOptions{Dir: b.TempDir(), Environ: environ}
	for b.Loop() {
		if _, err := parse("mcp.json", []byte(doc.String()), opts); err != nil {
			b.Fatal(err)
		}
	}
}

// Ports end at 65535.
func TestPorts(t *testing.T) {
	for port, want := range map[int]string{0: "", 65535: "", 65536: "there is no such port"} {
		_, err := parse("mcp.json", fmt.Appendf(nil, `{"mcp":{"a":{"url":"https://a.test/mcp","auth":{"client_id":"x","callback_port":%d}}}}`, port), LoadOptions{Dir: t.TempDir(), Environ: environ})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%d: got %v, want %q", port, err, want)
		}
		_, err = parse("mcp.json", fmt.Appendf(nil, `{"mcp":{"a":{"command":"x"}},"gateway":{"listen":"127.0.0.1:%d"}}`, port), LoadOptions{Dir: t.TempDir(), Environ: environ})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), "invalid listen address") {
			t.Errorf("to listen on %d: got %v", port, err)
		}
	}
}

// Entries come in the order of the file, whichever list they are in.
func TestEntriesAreInTheOrderOfTheFile(t *testing.T) {
	data := "{\n\"mcpServers\": {\n\"c\": {\"command\": \"x\"},\n\"a\": {\"command\": \"x\"}\n},\n\"mcp\": {\n\"b\": {\"command\": \"x\"}\n}\n}"
	entries, err := Entries("mcp.json", []byte(data))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name)
	}
	if got := strings.Join(names, " "); got != "c a b" {
		t.Errorf("got %s", got)
	}
}
