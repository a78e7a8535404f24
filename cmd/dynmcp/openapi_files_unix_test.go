//go:build unix

package main_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// A host on stdio is asked for its roots, and a file in them is sent. The files of a host over HTTP are
// not those of this machine.
func TestOpenAPISendsFilesOfTheRoots(t *testing.T) {
	t.Parallel()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "got %s", body)
	}))
	t.Cleanup(api.Close)
	dir := t.TempDir()
	root := filepath.Join(dir, "root")
	if err := os.Mkdir(root, 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, root, "cat.png", "a cat")
	writeFile(t, dir, "secret", "a secret")
	writeFile(t, dir, "api.json", `{"openapi":"3.0.3","info":{"title":"Cats","version":"1"},"paths":{"/cats":{"post":{"operationId":"put","requestBody":{"content":{"image/png":{}}}}}}}`)
	entries := []entry{{name: "cats", fields: map[string]any{"description": "Cats.", "openapi": filepath.Join(dir, "api.json"), "url": api.URL}}}
	cat, secret := fmt.Sprintf(`{"body":"file://%s/cat.png"}`, root), fmt.Sprintf(`{"body":"file://%s/secret"}`, dir)

	socket := socketPath(t)
	serveOn(t, socket, mcptest.Config(t, document(entries)))
	for _, era := range []string{handshake, stateless} {
		host := joinWithRoot(t, socket, era, root)
		contains(t, host.use("cats/put", cat).Text(), "got a cat")
		contains(t, host.use("cats/put", secret).Text(), "Nothing was sent", "not in the roots of the host, "+root)
		contains(t, host.use("cats/put", `{"body":"QQ=="}`).Text(), "got A")
	}
	contains(t, joinWithout(t, socket).use("cats/put", cat).Text(), "Nothing was sent", "the host does not support roots")

	web := serveHTTP(t, mcptest.Config(t, document(entries))).begin("/mcp")
	answer := web.call("/mcp", 2, "tools/call", string(useParams("cats/put", cat)))
	contains(t, answer.Text(), "Nothing was sent", "connected to dynmcp over stdio")
}
