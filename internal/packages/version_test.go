package packages

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPackages(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("PATH", cache) // no container engine
	for line, want := range map[string]string{
		"npx -y @modelcontextprotocol/server-filesystem@2025.8.21 /tmp": "npm:@modelcontextprotocol/server-filesystem@2025.8.21",
		"npx --ignore-scripts -y left@1.0.0":                            "npm:left@1.0.0",
		"npx -y @x/y@latest":                                            "npm:@x/y@latest",
		"npx.cmd --package=@x/y@1.0.0-rc.1 y-server":                    "npm:@x/y@1.0.0-rc.1",
		"cmd /c npx -y left@1.0.0":                                      "npm:left@1.0.0",
		"npm exec -y -- left@1.0.0":                                     "npm:left@1.0.0",
		"pnpm dlx left@1.0.0":                                           "npm:left@1.0.0",
		"uvx mcp-server-fetch":                                          "pypi:mcp-server-fetch",
		"uvx --python 3.12 mcp-server-fetch==2025.1":                    "pypi:mcp-server-fetch@2025.1",
		"uvx --from git+https://x/y@main server":                        "pypi:git+https://x/y@main",
		"uv tool run mcp-server-git@1.2":                                "pypi:mcp-server-git@1.2",
		"pipx run mcp-server-git":                                       "pypi:mcp-server-git",
		"docker run -i --rm -e TOKEN ghcr.io/g/s:1.2":                   "oci:ghcr.io/g/s:1.2",
		"docker run --rm -i --mount type=bind,src=/a,dst=/b mcp/fs@sha256:" + strings.Repeat("a", 64) + " /b": "oci:mcp/fs@sha256:" + strings.Repeat("a", 64),
		"docker compose up":        "",
		"node server.js":           "",
		"npx":                      "",
		"env TOKEN=1 npx left@1.2": "npm:left@1.2",
	} {
		words := strings.Fields(line)
		if got := Running(t.Context(), words[0], words[1:], map[string]string{"npm_config_cache": cache, "UV_CACHE_DIR": cache}); got != want {
			t.Errorf("%s: got %q, want %q", line, got, want)
		}
	}
}

// npx installs a package in a directory that is named by the hash of the requested specification.
func TestVersionThatNpxHasInstalled(t *testing.T) {
	cache := t.TempDir()
	const npxPackage, npxDirectory = "@modelcontextprotocol/server-filesystem", "a3241bba59c344f5" // as npm 11 names it
	dir := filepath.Join(cache, "_npx", npxDirectory, "node_modules", filepath.FromSlash(npxPackage))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"name":"x","version":"2025.9.12"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	got := Running(t.Context(), "npx", []string{"-y", npxPackage}, map[string]string{"npm_config_cache": cache})
	if want := "npm:" + npxPackage + "@2025.9.12"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// uvx keeps the wheels of what it has installed.
func TestVersionThatUvxHasInstalled(t *testing.T) {
	cache := t.TempDir()
	dir := filepath.Join(cache, "archive-v0", "xYz", "mcp_server_time-2025.9.25.dist-info")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "METADATA"), []byte("Metadata-Version: 2.1\nName: mcp-server-time\nVersion: 2025.9.25\n\nVersion: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"UV_CACHE_DIR": cache}
	for spec, want := range map[string]string{"mcp-server-time": "pypi:mcp-server-time@2025.9.25", "mcp-server-time==1.2": "pypi:mcp-server-time@1.2"} {
		if got := Running(t.Context(), "uvx", []string{spec}, env); got != want {
			t.Errorf("%s: got %s, want %s", spec, got, want)
		}
	}
}
