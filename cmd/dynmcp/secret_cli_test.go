package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	zalando "github.com/zalando/go-keyring"

	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/secret"
	"github.com/dynmcp/dynmcp/module"
)

// The library's own mock replaces the keyring of this process.
func TestSecretsInTheKeyring(t *testing.T) {
	zalando.MockInit()
	home := t.TempDir()
	for _, name := range []string{"HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "XDG_STATE_HOME", "XDG_CONFIG_HOME"} {
		t.Setenv(name, home)
	}
	t.Setenv("DYNMCP_KEYRING", "on")
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere")
	t.Chdir(home)
	run := func(stdin string, args ...string) string {
		t.Helper()
		var out bytes.Buffer
		cmd := rootCommand()
		cmd.SetArgs(args)
		cmd.SetIn(strings.NewReader(stdin))
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		if err := cmd.Execute(); err != nil {
			t.Errorf("%q: %v", args, err)
		}
		if strings.Contains(out.String(), "CANARY") {
			t.Errorf("%q shows a secret: %s", args, out.String())
		}
		return out.String()
	}
	keeps := func(name, want string) {
		t.Helper()
		if got, err := zalando.Get(secret.Service, name); got != want {
			t.Errorf("the keyring has %q, %v for %s, want %q", got, err, name, want)
		}
	}

	run("CANARY two\n", "secret", "set", "two")
	run("CANARY one", "secret", "set", "one")
	run("CANARY two, again\n\n", "secret", "set", "two")
	keeps("one", "CANARY one")
	keeps("two", "CANARY two, again\n")
	if got := run("", "secret", "ls"); got != "one\ntwo\n" {
		t.Errorf("listed: %q", got)
	}
	dir, err := conf.StateDir()
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, "secrets.txt")); err != nil || runtime.GOOS != "windows" && info.Mode() != fs.FileMode(0o600) {
		t.Errorf("the list of names: %v, %v", info.Mode(), err)
	}

	if err := os.Mkdir(".cursor", 0o700); err != nil {
		t.Fatal(err)
	}
	const hosted = `{"mcpServers": {"github": {"command": "npx", "args": ["x"], "env": {"GITHUB_TOKEN": "ghp_CANARY123456789012345678901234567890"}}}}`
	if err := os.WriteFile(".cursor/mcp.json", []byte(hosted), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := run("", "import", "cursor", "--project", "--secrets", "keyring"); !strings.Contains(got, "1 secret would be put into the keyring: GITHUB_TOKEN") {
		t.Errorf("import says: %s", got)
	}
	if got := run("", "import", "cursor", "--project", "--secrets", "keyring", "--write"); !strings.Contains(got, "Put 1 secret into the keyring: GITHUB_TOKEN") {
		t.Errorf("import says: %s", got)
	}
	keeps("GITHUB_TOKEN", "ghp_CANARY123456789012345678901234567890")
	if text, err := os.ReadFile("mcp.json"); !strings.Contains(string(text), `"GITHUB_TOKEN": "${keyring:GITHUB_TOKEN}"`) {
		t.Errorf("the config: %s, %v", text, err)
	}
	run("", "import", "cursor", "--project", "--secrets", "keyring", "--write", "--force")
	if got := run("", "secret", "ls"); got != "GITHUB_TOKEN\none\ntwo\n" {
		t.Errorf("a secret is used again: %q", got)
	}
	from := conf.Flags{}
	cfg, err := from.Load(module.With(t.Context(), modules))
	if err != nil || cfg.Servers[0].Off != nil || cfg.Servers[0].Env["GITHUB_TOKEN"] != "ghp_CANARY123456789012345678901234567890" {
		t.Errorf("loaded: %v, %v", cfg.Servers, err)
	}

	if err := os.WriteFile("plain.json", []byte(`{"mcp": {"a": {"command": "x", "env": {"TOKEN": "CANARY three"}}}} // mine
`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := run("", "secret", "move", "-c", "plain.json", "--yes"); !strings.Contains(got, "Put 1 secret into the keyring: A_TOKEN") {
		t.Errorf("secret move says: %s", got)
	}
	keeps("A_TOKEN", "CANARY three")
	if text, err := os.ReadFile("plain.json"); string(text) != `{"mcp": {"a": {"command": "x", "env": {"TOKEN": "${keyring:A_TOKEN}"}}}} // mine
` {
		t.Errorf("the config: %s, %v", text, err)
	}
	run("", "secret", "rm", "A_TOKEN")

	run("", "secret", "rm", "one")
	keeps("one", "")
	if got := run("", "secret", "ls"); got != "GITHUB_TOKEN\ntwo\n" {
		t.Errorf("listed: %q", got)
	}
	again := rootCommand()
	again.SetArgs([]string{"secret", "rm", "one"})
	if err := again.Execute(); err == nil || err.Error() != "there is no secret one" {
		t.Errorf("removed again: %v", err)
	}
	if err := zalando.Delete(secret.Service, "two"); err != nil { // by somebody else
		t.Fatal(err)
	}
	run("", "secret", "rm", "two")
	if got := run("", "secret", "ls"); got != "GITHUB_TOKEN\n" {
		t.Errorf("listed: %q", got)
	}
}
