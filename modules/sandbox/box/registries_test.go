//go:build linux || darwin

package box

import (
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Of the configs of package runners a server gets the addresses of registries, and no passwords.
func TestRegistries(t *testing.T) {
	home := t.TempDir()
	for name, text := range map[string]string{
		".npmrc": `registry=https://npm.example.com/a/
@team:registry = "https://team.example.com"
@other:registry=https://user:hunter2@other.example.com
//npm.example.com/:_authToken=hunter2
_auth=hunter2
registry = https://npm.example.com/?token=hunter2
registry=https://${TOKEN}@npm.example.com/
;registry=hunter2
strict-ssl=true
email=me@example.com
`,
		".config/pip/pip.conf": `[global]
index-url = https://pypi.example.com/simple
extra_index_url = https://one.example.com https://u:hunter2@two.example.com
  https://u:hunter2@three.example.com
trusted-host = pypi.example.com
[install]
client-cert = hunter2
`,
		".config/uv/uv.toml": `index-url = "https://u:hunter2@pypi.example.com"
extra-index-url = ["https://u:hunter2@one.example.com", "https://two.example.com"]
keyring-provider = "hunter2"
[[index]]
name = "mirror"
url = "https://mirror.example.com/simple"
default = true
[[index]]
name = "secret"
url = "https://hunter2@secret.example.com/simple"
`,
	} {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	npmrc := "registry=https://npm.example.com/a/\n@team:registry = \"https://team.example.com\"\nstrict-ssl=true\n"
	for name, c := range map[string]struct {
		server Server
		want   []copied
	}{
		"no runner": {Server{}, nil},
		"npx":       {Server{Runner: "npx"}, []copied{{".npmrc", "NPM_CONFIG_USERCONFIG", npmrc}}},
		"pipx": {Server{Runner: "pipx"}, []copied{{"pip.conf", "PIP_CONFIG_FILE",
			"[global]\nindex-url = https://pypi.example.com/simple\ntrusted-host = pypi.example.com\n[install]\n"}}},
		"bun": {Server{Runner: "bun"}, []copied{{".npmrc", "NPM_CONFIG_USERCONFIG", npmrc}}},
		"uvx": {Server{Runner: "uvx"}, []copied{{"uv.toml", "UV_CONFIG_FILE",
			"extra-index-url = ['https://two.example.com']\n\n[[index]]\nname = 'mirror'\nurl = 'https://mirror.example.com/simple'\ndefault = true\n"}}},
		"one that the entry allows":       {Server{Runner: "npx", Read: []string{"~/.npmrc"}}, nil},
		"one that the entry may change":   {Server{Runner: "npx", Write: []string{home}}, nil},
		"one that the environment names":  {Server{Runner: "npx", Env: []string{"npm_config_userconfig=/no/rc"}}, nil},
		"one in a home that has none":     {Server{Runner: "npx", Env: []string{"HOME=/no"}}, nil},
		"one of a server without a home":  {Server{Runner: "npx", Env: []string{"HOME="}}, nil},
		"one beside what the entry names": {Server{Runner: "npx", Read: []string{"~/.npm"}}, []copied{{".npmrc", "NPM_CONFIG_USERCONFIG", npmrc}}},
	} {
		c.server.Env = append([]string{"HOME=" + home}, c.server.Env...)
		if diff := cmp.Diff(c.want, c.server.registries(), cmp.AllowUnexported(copied{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if got := publicTOML("index = hunter2"); got != "" {
		t.Errorf("a broken uv.toml: got %q", got)
	}

	for _, trace := range []*Trace{nil, {Learn: true}} {
		if trace != nil && runtime.GOOS != "linux" {
			continue
		}
		server := Server{Name: "a", Runner: "npx", Dir: t.TempDir(), Env: []string{"HOME=" + home}, BestEffort: true, Trace: trace}
		box, err := New(server, slog.New(slog.DiscardHandler), func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		defer box.Close()
		if err := box.built(); err != nil {
			t.Fatal(err)
		}
		path := box.Temp + "/.npmrc"
		if text, err := os.ReadFile(path); err != nil || string(text) != npmrc {
			t.Errorf("got %q, %v", text, err)
		}
		if !slices.ContainsFunc(box.Env(), func(entry string) bool { return strings.HasSuffix(entry, "_USERCONFIG="+path) }) {
			t.Errorf("got %v", box.Env())
		}
	}
}
