package mcptest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest/authserver"
)

// AuthOptions configure an authorization server.
type AuthOptions = authserver.ServerOptions

// An AuthServer is an OAuth 2.1 authorization server and an MCP server that it protects, on one
// loopback address.
type AuthServer struct {
	URL  string // of the MCP server
	Base string // of both
	t    testing.TB
}

// NewAuthServer runs an authorization server in the process of the test, until the test ends.
func NewAuthServer(t testing.TB, opts AuthOptions) *AuthServer {
	t.Helper()
	server := httptest.NewUnstartedServer(nil)
	base := "http://" + server.Listener.Addr().String()
	server.Config.Handler = authserver.New(base, opts)
	server.Start()
	t.Cleanup(server.Close)
	return &AuthServer{base + "/mcp", base, t}
}

// StartAuthServer runs an authorization server as a process, in which Wrap has no effect.
func StartAuthServer(t testing.TB, opts AuthOptions) *AuthServer {
	t.Helper()
	s := Serve(t, HostOptions{Args: []string{Binary(t, "github.com/dynmcp/dynmcp/internal/mcptest/fakeauth"), string(encode(opts))}})
	return &AuthServer{s.URL + "/mcp", s.URL, t}
}

// Count returns how often something happened; see authserver.State.
func (s *AuthServer) Count(what string) int { return s.state().Counts[what] }

// Asked returns the scopes of each authorization so far.
func (s *AuthServer) Asked() []string { return s.state().Asked }

// Secrets returns the texts that must not be shown: tokens, codes, secrets of clients.
func (s *AuthServer) Secrets() []string { return s.state().Secrets }

// Unlogged returns the texts that must not be in a log: the secrets, and the states and verifiers
// of logins.
func (s *AuthServer) Unlogged() []string {
	state := s.state()
	return slices.Concat(state.Secrets, state.Passing)
}

// Expire makes all access tokens invalid, now.
func (s *AuthServer) Expire() { s.control(http.MethodPost, "/expire", nil) }

// Revoke ends all logins.
func (s *AuthServer) Revoke() { s.control(http.MethodPost, "/revoke", nil) }

func (s *AuthServer) state() (state authserver.State) {
	s.control(http.MethodGet, "", &state)
	return state
}

func (s *AuthServer) control(method, path string, into any) {
	s.t.Helper()
	req, err := http.NewRequest(method, s.Base+authserver.Control+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		s.t.Fatalf("the authorization server: %v", err)
	}
	defer resp.Body.Close()
	if into != nil {
		err = json.NewDecoder(resp.Body).Decode(into)
	}
	if err != nil || resp.StatusCode != http.StatusOK {
		s.t.Fatalf("the authorization server: %s, %v", resp.Status, err)
	}
}

// Browse opens the address of a login page like a browser: it follows redirects, also to the
// callback, and returns the last status.
func Browse(t testing.TB, address string) int {
	t.Helper()
	resp, err := http.Get(address)
	if err != nil {
		t.Errorf("open the login page: %v", err)
		return 0
	}
	defer resp.Body.Close()
	return resp.StatusCode
}
