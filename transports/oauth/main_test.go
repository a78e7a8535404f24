package oauth

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	zalando "github.com/zalando/go-keyring"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/oauth/logins"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(helperDir); dir != "" {
		helper(dir)
		return
	}
	os.Setenv("DYNMCP_KEYRING", "off")
	zalando.MockInit() // never the keyring of the user who runs the tests
	mcptest.Main(m)
}

// serverOf returns the config entry of a protected server.
func serverOf(s *mcptest.AuthServer, a *schema.Auth) schema.Server {
	return schema.Server{Name: "web", Transport: schema.StreamableHTTP, URL: s.URL, Auth: a}
}

// flowFor returns a login with a browser that needs no user.
func flowFor(t *testing.T, store *logins.Store, server schema.Server) *Flow {
	pages := make(chan string, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for page := range pages {
			mcptest.Browse(t, page)
		}
	}()
	t.Cleanup(func() { close(pages); <-done })
	return &Flow{LoginOptions: LoginOptions{Store: store}, Server: server, Show: func(address string) { pages <- address }}
}

func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// loggedIn returns a store with a login at the server.
func loggedIn(t *testing.T, server schema.Server) *logins.Store {
	t.Helper()
	return loggedInAt(t, t.TempDir()+"/logins", server)
}

// loggedInAt returns a store in a directory with a login at the server.
func loggedInAt(t *testing.T, dir string, server schema.Server) *logins.Store {
	t.Helper()
	store := logins.NewFiles(dir)
	if _, err := flowFor(t, store, server).Run(deadline(t)); err != nil {
		t.Fatalf("login: %v", err)
	}
	return store
}

// clientFor returns an HTTP client with a new session of a server, as in a new process.
func clientFor(t *testing.T, store *logins.Store, server schema.Server) (*http.Client, *Session) {
	session := NewSessions(LoginOptions{Store: store}).For(server, "")
	base := &http.Transport{}
	t.Cleanup(base.CloseIdleConnections)
	return &http.Client{Transport: session.Transport(base)}, session
}

func post(t *testing.T, client *http.Client, server schema.Server, body string) *http.Response {
	t.Helper()
	resp, err := client.Post(server.URL, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = discard(resp)
	return resp
}

func wantStatus(t *testing.T, client *http.Client, server schema.Server, body string, want int) *http.Response {
	t.Helper()
	resp := post(t, client, server, body)
	if resp.StatusCode != want {
		t.Fatalf("status %d, want %d", resp.StatusCode, want)
	}
	return resp
}

// writeJSON answers a request with JSON.
func writeJSON(w http.ResponseWriter, format string, args ...any) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, format, args...)
}

// isRefresh reports whether a request refreshes a token.
func isRefresh(r *http.Request) bool {
	return r.URL.Path == "/token" && r.ParseForm() == nil && r.Form.Get("grant_type") == "refresh_token"
}

// namesIssuer returns a Wrap that, once moved is true, names another authorization server.
func namesIssuer(moved *atomic.Bool, other func() string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/resource" || !moved.Load() {
			return false
		}
		writeJSON(w, `{"resource":"http://%s/mcp","authorization_servers":[%q]}`, r.Host, other())
		return true
	}
}

func discard(resp *http.Response) (int64, error) {
	defer resp.Body.Close()
	return io.Copy(io.Discard, resp.Body)
}

func aLogin() *logins.Login {
	return &logins.Login{
		Server: "web", Issuer: "https://auth.example.test", Resource: "https://web.example.test/mcp", ClientID: "client",
		TokenURL: "https://auth.example.test/token", Issued: time.Now(), Expires: time.Now().Add(time.Hour),
		Secrets: logins.Secrets{AccessToken: "access-s3cret", RefreshToken: "refresh-s3cret"},
	}
}
