package oauth

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/transports/oauth/logins"
)

// A login reaches the next request of a running session, and so does a logout, although the server
// answers without one.
func TestStoredLoginReachesTheNextRequest(t *testing.T) {
	t.Parallel()
	var sent string
	as := mcptest.NewAuthServer(t, mcptest.AuthOptions{Resource: "path", Public: true, Wrap: func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/mcp" {
			sent = r.Header.Get("Authorization")
		}
		return false
	}})
	server := serverOf(as, nil)
	store := logins.NewFiles(t.TempDir() + "/logins")
	client, _ := clientFor(t, store, server)
	wantStatus(t, client, server, "{}", http.StatusOK)
	if sent != "" {
		t.Fatalf("sent %q without a login", sent)
	}
	for range 3 { // the second login replaces one that still works
		if _, err := flowFor(t, store, server).Run(deadline(t)); err != nil {
			t.Fatal(err)
		}
		kept, err := store.Load(logins.KeyOf(server))
		if err != nil {
			t.Fatal(err)
		}
		wantStatus(t, client, server, "{}", http.StatusOK)
		if sent != "Bearer "+kept.AccessToken {
			t.Error("the request has not the token of the last login")
		}
	}
	if _, err := (LoginOptions{Store: store}).Logout(deadline(t), server, ""); err != nil {
		t.Fatal(err)
	}
	wantStatus(t, client, server, "{}", http.StatusOK)
	if sent != "" {
		t.Error("the request after a logout has a token")
	}
}

// The scope of a 401 at a call is requested at the next login, although there is none yet.
func TestScopeOfA401(t *testing.T) {
	t.Parallel()
	as := mcptest.NewAuthServer(t, mcptest.AuthOptions{Resource: "path", Public: true, Wrap: func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/mcp" || r.Header.Get("Authorization") != "" || r.Header.Get("X-Tool") == "" {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Bearer scope="secret:read secret:list"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}})
	server := serverOf(as, nil)
	store := logins.NewFiles(t.TempDir() + "/logins")
	client, _ := clientFor(t, store, server)
	called := func() int {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader("{}"))
		req.Header.Set("X-Tool", "secret")
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = discard(resp)
		return resp.StatusCode
	}
	for range 2 {
		if got := called(); got != http.StatusUnauthorized {
			t.Fatalf("status %d", got)
		}
	}
	if l, err := store.Peek(logins.KeyOf(server)); err != nil || l.State(l.Issued) != "not logged in" {
		t.Errorf("got %+v, %v", l, err)
	}
	if was, err := (LoginOptions{Store: store}).Logout(deadline(t), server, ""); was || err != nil {
		t.Errorf("logout without a login: %t, %v", was, err)
	}
	called()
	if _, err := flowFor(t, store, server).Run(deadline(t)); err != nil {
		t.Fatal(err)
	}
	if asked := as.Asked(); !strings.Contains(asked[0], "secret:read") || !strings.Contains(asked[0], "secret:list") {
		t.Errorf("asked for %q", asked)
	}
	if got := called(); got != http.StatusOK {
		t.Errorf("status %d", got)
	}
	if l, err := store.Peek(logins.KeyOf(server)); err != nil || len(l.Wanted) != 0 {
		t.Errorf("still wanted: %+v, %v", l, err)
	}
}

// If a refreshed token has fewer scopes, the next login asks for the others again.
func TestRefreshWithFewerScopes(t *testing.T) {
	t.Parallel()
	as := mcptest.NewAuthServer(t, mcptest.AuthOptions{Scopes: []string{"read", "write"}, Wrap: func(w http.ResponseWriter, r *http.Request) bool {
		if isRefresh(r) {
			writeJSON(w, `{"access_token":"fewer","token_type":"Bearer","expires_in":3600,"scope":"read"}`)
			return true
		}
		return false
	}})
	server := serverOf(as, nil)
	store := loggedIn(t, server)
	age(t, store, server, 0)
	client, _ := clientFor(t, store, server)
	post(t, client, server, "{}")
	l, err := store.Peek(logins.KeyOf(server))
	if err != nil || !slices.Equal(l.Scopes, []string{"read"}) || !slices.Contains(l.Wanted, "write") || l.State(l.Issued) != "logged in, more scopes wanted" {
		t.Errorf("got %+v, %v", l, err)
	}
	if _, err := flowFor(t, store, server).Run(deadline(t)); err != nil {
		t.Fatal(err)
	}
	if asked := as.Asked(); !strings.Contains(asked[1], "read") || !strings.Contains(asked[1], "write") {
		t.Errorf("asked for %q", asked)
	}
}

// A client is registered with a method that the metadata lists.
func TestMethodOfARegisteredClient(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		methods []string
		secret  bool
	}{
		"public":               {[]string{"client_secret_basic", "none"}, false},
		"a secret in the form": {[]string{"private_key_jwt", "client_secret_post"}, true},
		"a secret in a header": {[]string{"client_secret_basic"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			as := mcptest.NewAuthServer(t, mcptest.AuthOptions{Methods: test.methods, Secret: test.secret})
			server := serverOf(as, nil)
			store := loggedIn(t, server)
			as.Expire()
			client, _ := clientFor(t, store, server)
			wantStatus(t, client, server, "{}", http.StatusOK)
			if as.Count("register") != 1 || as.Count("refresh") != 1 {
				t.Errorf("%d registrations, %d refreshes", as.Count("register"), as.Count("refresh"))
			}
		})
	}
}
