package oauth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/oauth/logins"
)

func TestLogin(t *testing.T) {
	t.Parallel()
	known := &schema.Auth{ClientID: "known", ClientSecret: "a secret+of/it"}
	for name, test := range map[string]struct {
		server mcptest.AuthOptions
		auth   *schema.Auth
		scopes string // expected in the request
	}{
		"as most servers are":                       {},
		"scopes of the challenge":                   {server: mcptest.AuthOptions{Scopes: []string{"read", "list"}}, scopes: "read list"},
		"scopes of the config":                      {server: mcptest.AuthOptions{}, auth: &schema.Auth{Scope: "mine  too"}, scopes: "mine too"},
		"an issuer with a path":                     {server: mcptest.AuthOptions{Issuer: "/tenant"}},
		"OpenID, inserted":                          {server: mcptest.AuthOptions{Issuer: "/tenant", Metadata: "oidc"}},
		"OpenID, appended":                          {server: mcptest.AuthOptions{Issuer: "/tenant", Metadata: "oidc-after"}},
		"resource metadata below its path":          {server: mcptest.AuthOptions{Resource: "path"}},
		"resource metadata at the root":             {server: mcptest.AuthOptions{Resource: "root"}},
		"a challenge that cannot be read":           {server: mcptest.AuthOptions{Resource: "path", Wrap: malformedChallenge}},
		"a server that lets all initialize":         {server: mcptest.AuthOptions{Scopes: []string{"read"}, Wrap: openInitialize}, scopes: "read"},
		"no resource metadata":                      {server: mcptest.AuthOptions{Resource: "none"}},
		"no metadata at all":                        {server: mcptest.AuthOptions{Resource: "none", Metadata: "none"}},
		"iss":                                       {server: mcptest.AuthOptions{Iss: "right"}},
		"clients that are registered with a secret": {server: mcptest.AuthOptions{Secret: true}},
		"a client of the config":                    {server: mcptest.AuthOptions{NoRegistration: true, Client: "known", Key: "a secret+of/it"}, auth: known},
		"a public client of the config":             {server: mcptest.AuthOptions{NoRegistration: true, Client: "known"}, auth: &schema.Auth{ClientID: "known"}},
		"a client metadata document":                {server: mcptest.AuthOptions{NoRegistration: true, Document: true}, auth: &schema.Auth{ClientID: "https://dynmcp.example.test/client.json"}},
		"a document where that is not known":        {server: mcptest.AuthOptions{}, auth: &schema.Auth{ClientID: "https://dynmcp.example.test/client.json"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			as := mcptest.NewAuthServer(t, test.server)
			server := serverOf(as, test.auth)
			store := loggedIn(t, server)
			offline := ""
			if test.server.Metadata != "none" {
				offline = " offline_access" // SEP-2207
			}
			want := slices.Sorted(strings.FieldsSeq(test.scopes + offline))
			if got := as.Asked(); len(got) != 1 || !slices.Equal(slices.Sorted(strings.FieldsSeq(got[0])), want) {
				t.Errorf("asked for %q, want %q", got, test.scopes)
			}
			l, err := store.Load(logins.KeyOf(server))
			if err != nil || l == nil {
				t.Fatalf("nothing was stored: %v", err)
			}
			if issuer := as.Base + test.server.Issuer; l.Issuer != issuer {
				t.Errorf("issuer %q, want %q", l.Issuer, issuer)
			}
			client, _ := clientFor(t, store, server)
			wantStatus(t, client, server, "{}", http.StatusOK)
			// The stored login is enough for a refresh.
			as.Expire()
			wantStatus(t, client, server, "{}", http.StatusOK)
			if got := as.Count("refresh"); got != 1 {
				t.Errorf("%d refreshes, want 1", got)
			}
		})
	}
}

func openInitialize(w http.ResponseWriter, r *http.Request) bool {
	if r.URL.Path != "/mcp" {
		return false
	}
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	if bytes.Contains(body, []byte("initialize")) {
		w.Header().Set("Mcp-Session-Id", "s")
		fmt.Fprint(w, "{}")
		return true
	}
	return false
}

func malformedChallenge(w http.ResponseWriter, r *http.Request) bool {
	if r.URL.Path == "/mcp" && r.Header.Get("Authorization") == "" {
		w.Header().Set("WWW-Authenticate", `Bearer scope=""`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
	return false
}

func TestLoginRefuses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		server mcptest.AuthOptions
		auth   *schema.Auth
		want   string
	}{
		"another issuer's code":       {server: mcptest.AuthOptions{Iss: "wrong"}, want: "does not match expected issuer"},
		"an issuer with a slash more": {server: mcptest.AuthOptions{Iss: "slash"}, want: "does not match expected issuer"},
		"iss that is not there":       {server: mcptest.AuthOptions{Iss: "missing"}, want: "iss parameter"},
		"a server without PKCE":       {server: mcptest.AuthOptions{PKCE: []string{}}, want: "PKCE"},
		"a server with plain PKCE":    {server: mcptest.AuthOptions{PKCE: []string{"plain"}}, want: "does not offer PKCE with S256"},
		"no way to have a client":     {server: mcptest.AuthOptions{NoRegistration: true}, want: `"client_id" into "auth"`},
		"a secret that is not right":  {server: mcptest.AuthOptions{Client: "known", Key: "right"}, auth: &schema.Auth{ClientID: "known", ClientSecret: "wr0ng-secret"}, want: "invalid_client"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			as := mcptest.NewAuthServer(t, test.server)
			server := serverOf(as, test.auth)
			store := logins.NewFiles(t.TempDir() + "/logins")
			_, err := flowFor(t, store, server).Run(deadline(t))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if l, _ := store.Load(logins.KeyOf(server)); l != nil {
				t.Error("a login was stored")
			}
		})
	}
}

// An invalid login page in the metadata of an authorization server is not shown.
func TestPagesOfEvilServersAreNotShown(t *testing.T) {
	t.Parallel()
	for _, page := range []string{
		"javascript:alert(1)", "file:///etc/passwd", "a:$(calc)?x", "--upload-pack=x", `http://x" & calc`, `\\host\share`, "http://169.254.169.254/", "https://user@127.0.0.1/", "http://x/$(touch x)",
	} {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			as := mcptest.NewAuthServer(t, mcptest.AuthOptions{Wrap: func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path != "/.well-known/oauth-authorization-server" {
					return false
				}
				base := "http://" + r.Host
				w.Header().Set("Content-Type", "application/json")
				_ = json.NewEncoder(w).Encode(map[string]any{
					"issuer": base, "authorization_endpoint": page, "token_endpoint": base + "/token", "registration_endpoint": base + "/register",
					"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"},
				})
				return true
			}})
			flow := flowFor(t, logins.NewFiles(t.TempDir()+"/logins"), serverOf(as, nil))
			flow.Show = func(address string) { t.Errorf("shown: %s", address) }
			if _, err := flow.Run(deadline(t)); err == nil {
				t.Error("no error")
			}
		})
	}
}

// An endpoint that never answers fails the login after a timeout.
func TestEndpointsThatNeverAnswer(t *testing.T) {
	usual := requestTime
	t.Cleanup(func() { requestTime = usual })
	requestTime = time.Second
	for _, path := range []string{"/.well-known/oauth-authorization-server", "/register", "/token"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			as := mcptest.NewAuthServer(t, mcptest.AuthOptions{Wrap: func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path != path {
					return false
				}
				_, _ = io.Copy(io.Discard, r.Body)
				<-r.Context().Done()
				return true
			}})
			store := logins.NewFiles(t.TempDir() + "/logins")
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			if _, err := flowFor(t, store, serverOf(as, nil)).Run(ctx); err == nil || ctx.Err() != nil {
				t.Errorf("got %v", err)
			}
		})
	}
}

// A callback with another state is ignored: the login continues.
func TestLoginOfSomebodyElseIsIgnored(t *testing.T) {
	t.Parallel()
	as := mcptest.NewAuthServer(t, mcptest.AuthOptions{})
	flow := flowFor(t, logins.NewFiles(t.TempDir()+"/logins"), serverOf(as, nil))
	browse := flow.Show
	flow.Show = func(address string) {
		u, _ := url.Parse(address)
		if got := mcptest.Browse(t, u.Query().Get("redirect_uri")+"?code=code-of-an-attacker&state=of-an-attacker"); got != http.StatusBadRequest {
			t.Errorf("the browser saw %d", got)
		}
		browse(address)
	}
	if _, err := flow.Run(deadline(t)); err != nil {
		t.Fatal(err)
	}
	if as.Count("token") != 1 {
		t.Errorf("%d codes were exchanged", as.Count("token"))
	}
}

// If the user pastes something else than the address of this login, the login fails with an error
// that says so.
func TestPastedAddressOfAnotherLogin(t *testing.T) {
	t.Parallel()
	as := mcptest.NewAuthServer(t, mcptest.AuthOptions{})
	for text, want := range map[string]string{
		"yes": "what was pasted is not the address",
		"http://127.0.0.1:1/callback?code=c&state=other":     "of another login: state mismatch",
		` "http://127.0.0.1:1/callback?code=c&state=other" `: "of another login: state mismatch",
	} {
		pasted := make(chan string, 1)
		flow := &Flow{LoginOptions: LoginOptions{Store: logins.NewFiles(t.TempDir() + "/logins")}, Server: serverOf(as, nil), Pasted: pasted, Show: func(string) { pasted <- text }}
		if _, err := flow.Run(deadline(t)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v", text, err)
		}
	}
}

func TestLoginEndsWithItsDeadline(t *testing.T) {
	t.Parallel()
	as := mcptest.NewAuthServer(t, mcptest.AuthOptions{})
	ctx, cancel := context.WithCancelCause(deadline(t))
	flow := flowFor(t, logins.NewFiles(t.TempDir()+"/logins"), serverOf(as, nil))
	flow.Show = func(string) { cancel(errors.New("enough")) }
	if _, err := flow.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	ended, end := context.WithDeadline(deadline(t), time.Now().Add(-time.Second))
	defer end()
	flow.Show = func(string) {}
	if _, err := flow.Run(ended); err == nil {
		t.Error("no error")
	}
}

// The user may paste the callback address if the browser runs on another machine.
func TestLoginByPastedAddress(t *testing.T) {
	t.Parallel()
	as := mcptest.NewAuthServer(t, mcptest.AuthOptions{})
	server := serverOf(as, nil)
	store := logins.NewFiles(t.TempDir() + "/logins")
	pasted := make(chan string, 2)
	flow := &Flow{LoginOptions: LoginOptions{Store: store}, Server: server, Pasted: pasted, Show: func(address string) {
		client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		resp, err := client.Get(address)
		if err != nil {
			t.Error(err)
			return
		}
		resp.Body.Close()
		client.CloseIdleConnections()
		pasted <- ""
		pasted <- `  "` + resp.Header.Get("Location") + "\"\n" // quoted, as a shell requires it
	}}
	if _, err := flow.Run(deadline(t)); err != nil {
		t.Fatal(err)
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}

// The next login requests the scopes that were missing, with those granted before (MCP "Step-Up
// Authorization Flow").
func TestLoginAsksForWhatWasMissing(t *testing.T) {
	t.Parallel()
	as := mcptest.NewAuthServer(t, mcptest.AuthOptions{Scopes: []string{"read"}, WriteFor: "write:all"})
	server := serverOf(as, nil)
	store := loggedIn(t, server)
	client, session := clientFor(t, store, server)
	wantStatus(t, client, server, `{"tool":"read"}`, http.StatusOK)
	resp := wantStatus(t, client, server, `{"tool":"write"}`, http.StatusForbidden)
	if hint, _ := session.Hint(resp); hint != `run "dynmcp login web": this needs the scopes write:all` {
		t.Errorf("hint %q", hint)
	}
	if l, _ := store.Peek(logins.KeyOf(server)); !slices.Equal(l.Wanted, []string{"write:all"}) {
		t.Errorf("wanted %q", l.Wanted)
	}
	if _, err := flowFor(t, store, server).Run(deadline(t)); err != nil {
		t.Fatal(err)
	}
	if asked := as.Asked(); !strings.Contains(asked[1], "read") || !strings.Contains(asked[1], "write:all") {
		t.Errorf("asked for %q", asked)
	}
	// The process that got the 403 uses the new login.
	wantStatus(t, client, server, `{"tool":"write"}`, http.StatusOK)
}

// The secret of a client is sent to the issuer of the first login only.
func TestAnotherAuthorizationServerGetsNoSecret(t *testing.T) {
	t.Parallel()
	thief := mcptest.NewAuthServer(t, mcptest.AuthOptions{Client: "known", Key: "s3cret-of-known"})
	var moved atomic.Bool
	as := mcptest.NewAuthServer(t, mcptest.AuthOptions{Client: "known", Key: "s3cret-of-known", Wrap: namesIssuer(&moved, func() string { return thief.Base })})
	server := serverOf(as, &schema.Auth{ClientID: "known", ClientSecret: "s3cret-of-known"})
	store := loggedIn(t, server)
	moved.Store(true)
	_, err := flowFor(t, store, server).Run(deadline(t))
	if err == nil || !strings.Contains(err.Error(), "does not match") {
		t.Errorf("got %v", err)
	}
	if thief.Count("token")+thief.Count("authorize") != 0 {
		t.Error("the other server got a request")
	}
}

// If a server names another issuer, the login there has its own client, and the new issuer gets
// no secret of the first one. A logout reaches both.
func TestAnotherIssuerHasItsOwnLogin(t *testing.T) {
	t.Parallel()
	var second *mcptest.AuthServer
	var moved atomic.Bool
	first := mcptest.NewAuthServer(t, mcptest.AuthOptions{Secret: true, Wrap: namesIssuer(&moved, func() string { return second.Base })})
	var mu sync.Mutex
	var sent []string
	second = mcptest.NewAuthServer(t, mcptest.AuthOptions{Secret: true, Elsewhere: first.URL, Wrap: func(w http.ResponseWriter, r *http.Request) bool {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		mu.Lock()
		defer mu.Unlock()
		sent = append(sent, fmt.Sprint(r.URL, r.Header, string(body)))
		return false
	}})
	server := serverOf(first, nil)
	store := loggedIn(t, server)
	given := first.Secrets()
	moved.Store(true)
	made, err := flowFor(t, store, server).Run(deadline(t))
	if err != nil || made.Issuer != second.Base || second.Count("register") != 1 {
		t.Fatalf("got %+v, %v, %d clients registered", made, err, second.Count("register"))
	}
	mu.Lock()
	for _, request := range sent {
		for _, secret := range given {
			if strings.Contains(request, secret) || strings.Contains(request, url.QueryEscape(secret)) {
				t.Errorf("the second issuer got a secret of the first: %s", request)
			}
		}
	}
	mu.Unlock()
	all, err := store.LoadAll(logins.KeyOf(server))
	if err != nil || len(all) != 2 || all[0].Issuer != second.Base || all[1].Issuer != first.Base {
		t.Errorf("got %+v, %v: want both logins, the most recent first", all, err)
	}
	if was, err := (LoginOptions{Store: store}).Logout(deadline(t), server, ""); !was || err != nil {
		t.Errorf("logout: %t, %v", was, err)
	}
	for _, as := range []*mcptest.AuthServer{first, second} {
		if as.Count("revoke") != 2 || as.Count("unregister") != 1 {
			t.Errorf("%d revocations, %d clients deleted", as.Count("revoke"), as.Count("unregister"))
		}
	}
}

func TestLoginSaysWhyNot(t *testing.T) {
	t.Parallel()
	t.Run("a server that wants no login", func(t *testing.T) {
		t.Parallel()
		as := mcptest.NewAuthServer(t, mcptest.AuthOptions{Wrap: func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != "/mcp" {
				http.NotFound(w, r)
			}
			return true
		}})
		_, err := flowFor(t, logins.NewFiles(t.TempDir()+"/logins"), serverOf(as, nil)).Run(deadline(t))
		if err == nil || !strings.Contains(err.Error(), "does not ask for a login (HTTP status 200 OK)") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("nothing there", func(t *testing.T) {
		t.Parallel()
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		server := schema.Server{Name: "web", Transport: schema.StreamableHTTP, URL: "http://" + l.Addr().String() + "/mcp?key=s3cret-key"}
		_, err = flowFor(t, logins.NewFiles(t.TempDir()+"/logins"), server).Run(deadline(t))
		if err == nil || !strings.Contains(err.Error(), "refused") || strings.Contains(err.Error(), "s3cret-key") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a port that is taken", func(t *testing.T) {
		t.Parallel()
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		as := mcptest.NewAuthServer(t, mcptest.AuthOptions{})
		server := serverOf(as, &schema.Auth{CallbackPort: l.Addr().(*net.TCPAddr).Port})
		if _, err := flowFor(t, logins.NewFiles(t.TempDir()+"/logins"), server).Run(deadline(t)); err == nil || !strings.Contains(err.Error(), "listen for the browser") {
			t.Errorf("got %v", err)
		}
	})
}

func TestLogout(t *testing.T) {
	t.Parallel()
	as := mcptest.NewAuthServer(t, mcptest.AuthOptions{Secret: true})
	server := serverOf(as, nil)
	store := loggedIn(t, server)
	client, _ := clientFor(t, store, server)
	wantStatus(t, client, server, "{}", http.StatusOK)
	was, err := LoginOptions{Store: store}.Logout(deadline(t), server, "")
	if !was || err != nil {
		t.Fatalf("got %t, %v", was, err)
	}
	if as.Count("revoke") != 2 || as.Count("unregister") != 1 {
		t.Errorf("%d revocations, %d clients deleted", as.Count("revoke"), as.Count("unregister"))
	}
	wantStatus(t, client, server, "{}", http.StatusUnauthorized)
	if was, err = (LoginOptions{Store: store}).Logout(deadline(t), server, ""); was || err != nil {
		t.Errorf("got %t, %v", was, err)
	}
}
