package oauth

import (
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/internal/mcptest/authserver"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/oauth/logins"
)

// A login at a server of a company's own authority needs that authority, for all its requests; without
// it, or with a file that cannot be used, the error names the key.
func TestLoginWithAnAuthority(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(nil)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	var handler http.Handler
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(w, r) })
	server.StartTLS()
	t.Cleanup(server.Close)
	handler = authserver.New(server.URL, authserver.ServerOptions{})
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	entry := schema.Server{Name: "web", Transport: schema.StreamableHTTP, URL: server.URL + "/mcp"}
	store := logins.NewFiles(t.TempDir() + "/logins")
	for path, want := range map[string]string{"": `"ca" in "tls"`, ca + ".none": "tls.ca: "} {
		entry.TLS.CA = path
		if _, err := flowFor(t, store, entry).Run(deadline(t)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("with %q: got %v", path, err)
		}
	}
	entry.TLS.CA = ca
	flow := &Flow{LoginOptions: LoginOptions{Store: store}, Server: entry, Show: func(address string) {
		client := server.Client() // a browser that trusts the authority
		client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		resp, err := client.Get(address)
		if err != nil {
			t.Error(err)
			return
		}
		resp.Body.Close()
		mcptest.Browse(t, resp.Header.Get("Location"))
	}}
	if _, err := flow.Run(deadline(t)); err != nil {
		t.Fatal(err)
	}

	// The authority is needed wherever the server names something: here only its metadata lacks it.
	plain := mcptest.NewAuthServer(t, mcptest.AuthOptions{Wrap: func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/resource" {
			writeJSON(w, `{"resource":"http://%s/mcp","authorization_servers":[%q]}`, r.Host, server.URL)
			return true
		}
		return false
	}})
	if _, err := flowFor(t, store, serverOf(plain, nil)).Run(deadline(t)); err == nil || !strings.Contains(err.Error(), `"ca" in "tls"`) {
		t.Errorf("an authorization server that is not trusted: %v", err)
	}
}
