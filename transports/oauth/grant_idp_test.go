package oauth

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/oauth/logins"
)

// identityProvider returns the address of a provider that exchanges the ID token "id-of-ann" for
// the result of answer.
func identityProvider(t *testing.T, answer func(form url.Values) string) string {
	mux := http.NewServeMux()
	provider := httptest.NewServer(mux)
	t.Cleanup(provider.Close)
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, `{"issuer":%q,"token_endpoint":%q}`, provider.URL, provider.URL+"/token")
	})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		w.Header().Set("Content-Type", "application/json")
		if r.Form.Get("grant_type") != "urn:ietf:params:oauth:grant-type:token-exchange" || r.Form.Get("subject_token") != "id-of-ann" || r.Form.Get("client_secret") != "key at idp" {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"error":"invalid_grant"}`)
			return
		}
		fmt.Fprint(w, answer(r.Form))
	})
	return provider.URL
}

// An ID token is exchanged at the company's provider for a grant. The server's own authorization
// server gets the grant with the client's secret, and never the ID token.
func TestIdentityProviderOfACompany(t *testing.T) {
	t.Parallel()
	kind := "urn:ietf:params:oauth:token-type:id-jag"
	as := mcptest.NewAuthServer(t, mcptest.AuthOptions{Wrap: func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/mcp" && r.Header.Get("Authorization") == "Bearer for-ann" {
			fmt.Fprint(w, "{}")
			return true
		}
		if r.URL.Path != "/token" {
			return false
		}
		_ = r.ParseForm()
		id, secret, _ := r.BasicAuth()
		if r.Form.Get("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" || r.Form.Get("assertion") != "grant-of-ann" || id != "machine" || secret != "key" {
			t.Errorf("asked with %v by %s", r.Form, id)
		}
		writeJSON(w, `{"access_token":"for-ann","token_type":"Bearer"}`)
		return true
	}})
	idp := identityProvider(t, func(form url.Values) string {
		if form.Get("audience") != as.Base || form.Get("resource") != as.URL || form.Get("client_id") != "dynmcp" || form.Get("scope") != "read" {
			t.Errorf("exchange for %v", form)
		}
		return fmt.Sprintf(`{"access_token":"grant-of-ann","issued_token_type":%q,"token_type":"N_A"}`, kind)
	})
	path := filepath.Join(t.TempDir(), "token")
	server := serverOf(as, &schema.Auth{
		Grant: schema.GrantJWTBearer, ClientID: "machine", ClientSecret: "key", Scope: "read", AssertionFile: path,
		IDP: idp, IDPClientID: "dynmcp", IDPClientSecret: "key at idp",
	})
	client, session := clientFor(t, logins.NewFiles(t.TempDir()+"/logins"), server)
	write := func(token string) {
		if err := os.WriteFile(path, []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("id-of-bob")
	if _, err := session.clientCredentials(deadline(t), http.Header{}); err == nil || !strings.Contains(err.Error(), "idp "+idp) || strings.Contains(err.Error(), "id-of") {
		t.Errorf("another ID token: %v", err)
	}
	write("id-of-ann")
	for range 2 { // the second finds the same issuer
		wantStatus(t, client, server, "{}", http.StatusOK)
		session.mu.Lock()
		session.login = nil
		session.renewedAt = session.retryAt
		session.mu.Unlock()
	}
	kind = "urn:ietf:params:oauth:token-type:access_token"
	if _, err := session.clientCredentials(deadline(t), http.Header{}); err == nil || !strings.Contains(err.Error(), "another token") {
		t.Errorf("a token of another type: %v", err)
	}
}
