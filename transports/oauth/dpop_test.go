package oauth

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/oauth/logins"
)

// Tokens are bound to a key if the server asks for it, in logins of persons and machines. Every
// request, including a refresh, has its own proof.
func TestTokensThatAreBoundToAKey(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string]mcptest.AuthOptions{
		"challenge": {Bind: "challenge"},
		"metadata":  {Bind: "metadata"},
		"nonces":    {Bind: "challenge", Nonces: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opts.Client, opts.Key = "machine", "key of machine"
			as := mcptest.NewAuthServer(t, opts)
			server := serverOf(as, nil)
			store := loggedIn(t, server)
			before, err := store.Load(logins.KeyOf(server))
			if err != nil || before.DPoPKey == "" {
				t.Fatalf("the login was stored without its key, %v", err)
			}
			client, _ := clientFor(t, store, server)
			wantStatus(t, client, server, "{}", http.StatusOK)
			wantStatus(t, client, server, "{}", http.StatusOK)
			as.Expire()
			wantStatus(t, client, server, "{}", http.StatusOK)
			after, err := store.Load(logins.KeyOf(server))
			if err != nil || as.Count("refresh") != 1 || after.DPoPKey != before.DPoPKey || after.AccessToken == before.AccessToken {
				t.Errorf("%d refreshes, the same key: %t, %v", as.Count("refresh"), after.DPoPKey == before.DPoPKey, err)
			}

			server.Auth = &schema.Auth{Grant: schema.GrantClientCredentials, ClientID: "machine", ClientSecret: "key of machine"}
			client, _ = clientFor(t, logins.NewFiles(t.TempDir()+"/logins"), server)
			wantStatus(t, client, server, "{}", http.StatusOK)
			if as.Count("call") != 4 || as.Count("invalid_dpop_proof") != 0 || (as.Count("use_dpop_nonce") > 0) != opts.Nonces {
				t.Errorf("%d calls, %d wrong proofs, %d without the nonce", as.Count("call"), as.Count("invalid_dpop_proof"), as.Count("use_dpop_nonce"))
			}
		})
	}
}

// Each token is tried with one new nonce. A request whose body cannot be read twice is sent once.
func TestNoncesWithoutEnd(t *testing.T) {
	t.Parallel()
	asked := 0
	as := mcptest.NewAuthServer(t, mcptest.AuthOptions{Bind: "challenge", Wrap: func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/mcp" || r.Header.Get("DPoP") == "" {
			return false
		}
		asked++
		w.Header().Set("DPoP-Nonce", strings.Repeat("n", asked))
		w.Header().Set("WWW-Authenticate", `DPoP error="use_dpop_nonce"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}})
	server := serverOf(as, nil)
	store := loggedIn(t, server)
	client, session := clientFor(t, store, server)
	wantStatus(t, client, server, "{}", http.StatusUnauthorized)
	if as.Count("refresh") != 1 || asked != 4 { // two with each of two tokens
		t.Errorf("%d refreshes, %d requests", as.Count("refresh"), asked)
	}
	asked = 0
	req, err := http.NewRequestWithContext(deadline(t), http.MethodPost, server.URL, struct{ *strings.Reader }{strings.NewReader("{}")})
	if err != nil {
		t.Fatal(err)
	}
	session.mu.Lock()
	session.renewedAt = time.Now()
	session.mu.Unlock()
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := discard(resp); err != nil || asked != 1 {
		t.Errorf("%d requests, %v", asked, err)
	}
}

// For an unbound token, no key is stored. With a broken key, no token is sent.
func TestKeysThatProveNothing(t *testing.T) {
	t.Parallel()
	as := mcptest.NewAuthServer(t, mcptest.AuthOptions{Bind: "metadata", Wrap: func(_ http.ResponseWriter, r *http.Request) bool {
		r.Header.Del("DPoP")
		return false
	}})
	server := serverOf(as, nil)
	store := loggedIn(t, server)
	if l, err := store.Load(logins.KeyOf(server)); err != nil || l.DPoPKey != "" {
		t.Errorf("a key was stored, %v", err)
	}
	client, _ := clientFor(t, store, server)
	wantStatus(t, client, server, "{}", http.StatusOK)

	err := store.Update(deadline(t), logins.KeyOf(server), func(l *logins.Login) bool {
		l.DPoPKey = "br0ken"
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	client, _ = clientFor(t, store, server)
	if _, err := client.Post(server.URL, "application/json", strings.NewReader("{}")); err == nil || !strings.Contains(err.Error(), "key that its tokens") || strings.Contains(err.Error(), "br0ken") {
		t.Errorf("got %v", err)
	}
	if as.Count("call") != 1 {
		t.Errorf("%d calls", as.Count("call"))
	}
}
