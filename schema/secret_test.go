package schema

import (
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// schemes are those that a program resolves.
var schemes = []string{"cmd", "keyring"}

// vault resolves references to secrets, and records which.
type vault struct {
	mu    sync.Mutex
	asked []string
}

func (v *vault) secret(reference string) (value, problem, hint string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.asked = append(v.asked, reference)
	if strings.Contains(reference, "gone") {
		return "", reference + " has no value", "find it"
	}
	return "CANARY of " + reference, "", ""
}

func TestSecretReferences(t *testing.T) {
	const doc = `{"mcp": {
  "a": {"command": "x", "args": ["${keyring:A}", "-${cmd:op read op://x/y}-${keyring:A}", "$${file:/x}", "${file:-x}", "${other:x}"]},
  "b": {"command": "x", "timeout": "${file:/short}"},
  "c": {"command": "x", "env": {"A": "${keyring:gone}", "B": "${file:/gone}", "C": "${keyring:gone} ${NOWHERE}"}},
  "d": {"command": "x", "disabled": true, "env": {"A": "${keyring:UNUSED}"}}
}}`
	v := &vault{}
	opts := LoadOptions{Environ: []string{}, Schemes: schemes, Secret: v.secret}
	_, err := parse("mcp.json", []byte(doc), opts)
	if err == nil || !strings.Contains(err.Error(), "mcp.b.timeout: ") || strings.Contains(err.Error(), "CANARY") {
		t.Errorf("a secret that is not a duration: %v", err)
	}
	v.asked = nil
	cfg, err := parse("mcp.json", []byte(strings.Replace(doc, `, "timeout": "${file:/short}"`, "", 1)), opts)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(v.asked)
	if diff := cmp.Diff([]string{"cmd:op read op://x/y", "file:/gone", "keyring:A", "keyring:gone"}, v.asked); diff != "" {
		t.Errorf("asked for (-want +got):\n%s", diff)
	}
	want := []string{"CANARY of keyring:A", "-CANARY of cmd:op read op://x/y-CANARY of keyring:A", "${file:/x}", "x", "${other:x}"}
	if diff := cmp.Diff(want, cfg.Servers[0].Args); diff != "" {
		t.Errorf("args (-want +got):\n%s", diff)
	}
	off := &Off{Missing: []string{"NOWHERE"}, Failed: []string{"keyring:gone has no value", "file:/gone has no value"},
		Hint: "set it in the environment or in .env, or write ${NOWHERE:-default}; find it"}
	if diff := cmp.Diff(off, cfg.Servers[2].Off); diff != "" {
		t.Errorf("off (-want +got):\n%s", diff)
	}
	if got, want := cfg.Servers[2].Off.Why(), "NOWHERE is not set, keyring:gone has no value, file:/gone has no value"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, secret := range []string{"CANARY of keyring:A", "CANARY of cmd:op read op://x/y"} {
		if !slices.Contains(cfg.Secrets(), secret) {
			t.Errorf("%q is not among the secrets %q", secret, cfg.Secrets())
		}
	}
	if got := cfg.Servers[3].Env["A"]; got != "${keyring:UNUSED}" {
		t.Errorf("a disabled server has %q", got)
	}
}

// Secrets of unselected servers, and of servers that Only does not name, are not looked up.
func TestSecretReferencesOfUnselectedParts(t *testing.T) {
	const doc = `{"mcp": {"a": {"command": "x", "description": "a profile", "args": ["${keyring:A}"]}, "b": {"command": "x", "args": ["${keyring:B}"]}},
		"gateway": {"token": "${keyring:T}"}}`
	all := func(c *Config) (*Config, error) { return c, nil }
	first := func(c *Config) (*Config, error) { return &Config{Servers: c.Servers[:1]}, nil }
	for _, test := range []struct {
		doc  string
		opts LoadOptions
		want string
	}{
		{doc, LoadOptions{}, "A B T"},
		{doc, LoadOptions{Select: first}, "A T"},
		{strings.Replace(doc, "profile", "server", 1), LoadOptions{Select: all, Only: []string{"b"}}, "B"},
	} {
		v := &vault{}
		test.opts.Environ, test.opts.Schemes, test.opts.Secret = []string{}, schemes, v.secret
		if _, err := TextFiles(t.Context(), filepath.Join(t.TempDir(), "mcp.json"), []byte(test.doc), test.opts).Load(); err != nil {
			t.Fatal(err)
		}
		slices.Sort(v.asked)
		if got := strings.ReplaceAll(strings.Join(v.asked, " "), "keyring:", ""); got != test.want {
			t.Errorf("only %q: asked for %s, want %s", test.opts.Only, got, test.want)
		}
	}
}

func TestSecretReferencesThatFail(t *testing.T) {
	load := func(doc string, opts LoadOptions) string {
		t.Helper()
		opts.Environ, opts.Schemes, opts.Secret = []string{}, schemes, new(vault).secret
		_, err := parse("mcp.json", []byte(doc), opts)
		if err == nil {
			t.Fatal("got no error")
		}
		return err.Error()
	}
	for name, test := range map[string]struct {
		doc, want string
		strict    bool
	}{
		"gateway": {`{"mcp": {"a": {"command": "x"}}, "gateway": {"token": "${keyring:gone}"}}`, "gateway.token: keyring:gone has no value; find it", false},
		"strict":  {`{"mcp": {"a": {"command": "x", "args": ["${keyring:gone}"]}}}`, "mcp.a.args[0]: keyring:gone has no value; find it", true},
		"nested":  {`{"mcp": {"a": {"command": "x", "args": ["${cmd:x ${A}}"]}}}`, "mcp.a.args[0]: a reference cannot contain another ${…}; write the reference out", false},
	} {
		if got := load(test.doc, LoadOptions{Strict: test.strict}); !strings.Contains(got, test.want) {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

// Without a Secret function references to secrets stay as written.
func TestSecretReferencesStayAsWritten(t *testing.T) {
	const doc = `{"mcp": {"a": {"url": "https://${keyring:HOST}/mcp", "headers": {"X": "${cmd:op read}"}, "timeout": "${file:/t}"}}, "gateway": {"token": "${keyring:T}"}}`
	cfg, err := parse("mcp.json", []byte(doc), LoadOptions{Environ: []string{}, Schemes: schemes})
	if err != nil {
		t.Fatal(err)
	}
	s := cfg.Servers[0]
	if s.Off != nil || s.URL != "https://${keyring:HOST}/mcp" || s.Headers["X"] != "${cmd:op read}" || len(cfg.Secrets()) > 0 || len(cfg.Warnings) > 0 {
		t.Errorf("got %+v, hidden %q, warnings %q", s, cfg.Secrets(), cfg.Warnings)
	}
	cfg, err = parse("mcp.json", []byte(strings.Replace(doc, "{", `{"env": "disable", `, 1)), LoadOptions{Environ: []string{}, Schemes: schemes, Secret: func(string) (string, string, string) { panic("asked") }})
	if err == nil || !strings.Contains(err.Error(), "timeout") {
		t.Errorf("with env: disable: %v, %v", cfg, err)
	}
}

// A reference of a scheme whose module the program lacks is refused, whether secrets are looked up or not.
func TestSchemesThatTheProgramLacks(t *testing.T) {
	const problem = "${keyring:…} needs the module secrets, which this build does not have"
	const doc = `{"mcp": {"a": {"command": "x", "args": ["${keyring:A}"]}, "b": {"command": "x", "args": ["${cmd:op read}", "$${keyring:A}"]}, "c": {"command": "x", "args": ["${keyring:A}"], "disabled": true}}}`
	for _, secret := range []func(string) (string, string, string){nil, new(vault).secret} {
		opts := LoadOptions{Environ: []string{}, Schemes: []string{"cmd"}, Secret: secret}
		cfg, err := parse("mcp.json", []byte(doc), opts)
		if err != nil {
			t.Fatal(err)
		}
		if a, b, c := cfg.Servers[0], cfg.Servers[1], cfg.Servers[2]; a.Off == nil || a.Off.Why() != problem || b.Off != nil || c.Off != nil {
			t.Errorf("off: %+v, %+v, %+v", a.Off, b.Off, c.Off)
		}
		_, err = parse("mcp.json", []byte(`{"mcp": {"a": {"command": "x"}}, "gateway": {"token": "${keyring:T}"}}`), opts)
		if err == nil || !strings.Contains(err.Error(), "gateway.token: "+problem) {
			t.Errorf("in the gateway: %v", err)
		}
	}
}
