//go:build unix

package upstream

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
)

// Each hint is followed, and then the server works: it names what is wrong.
func TestFollowedHintsHelp(t *testing.T) {
	t.Parallel()
	process := mcptest.ServeFake(t)
	moved := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/mcp" {
			http.Redirect(w, r, "/mcp/?key=secret", http.StatusMovedPermanently)
			return
		}
		http.Redirect(w, r, process.URL, http.StatusTemporaryRedirect)
	}))
	defer moved.Close()
	prefixed := func(prefix, mounted string) schema.Server {
		inner := &sse{endpoint: "event: endpoint\ndata: " + mounted + "/m?s=secret\n\n"}
		outer := httptest.NewServer(http.StripPrefix(prefix, inner))
		t.Cleanup(outer.Close)
		return schema.Server{Name: "up", Transport: schema.SSE, URL: outer.URL + prefix + "/sse"}
	}
	dir := t.TempDir()
	script := filepath.Join(dir, "server")
	fake := mcptest.Fake(t)
	for path, text := range map[string]string{script: "#!/usr/bin/env nodelike\n", filepath.Join(dir, "nodelike"): "#!/bin/sh\nexec '" + fake + "'\n"} {
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	url := func(url string) schema.Server {
		return schema.Server{Name: "up", Transport: schema.StreamableHTTP, URL: url}
	}
	for _, tt := range []struct {
		name            string
		wrong, followed schema.Server
		cause, hint     string
	}{
		{"301 of the same origin", url(moved.URL + "/mcp"), url(process.URL), "redirect to " + moved.URL + "/mcp/ (HTTP status 301 of ", "write that address as its url"},
		{"307 to another origin", url(moved.URL + "/mcp/"), url(process.URL), "redirect to " + strings.TrimSuffix(process.URL, "/mcp") + " (HTTP status 307 of " + moved.URL, "if it has moved there"},
		{"endpoint without the prefix", prefixed("/team", ""), prefixed("/team", "/team"), "/m, as the endpoint event", "the path that it is mounted at"},
		{"no interpreter", schema.Server{Name: "up", Transport: schema.Stdio, Command: script}, schema.Server{Name: "up", Transport: schema.Stdio, Command: script, Env: map[string]string{"PATH": dir + ":" + os.Getenv("PATH")}}, "", `"env": {"PATH": "FOLDER:${PATH}"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := tryDial(t, tt.wrong, ConnOptions{})
			f, ok := errors.AsType[*transports.Failure](err)
			if !ok || !strings.Contains(f.Error(), tt.cause) || !strings.Contains(f.Advice(), tt.hint) || strings.Contains(f.Text(), "secret") {
				t.Fatalf("got %v, %+v, want %s, %s", err, f, tt.cause, tt.hint)
			}
			if _, err := tryDial(t, tt.followed, ConnOptions{HandshakeOnly: true}); err != nil {
				t.Errorf("after the hint: %v", err)
			}
		})
	}
}
