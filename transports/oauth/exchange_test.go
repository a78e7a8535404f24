package oauth

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
)

// callerToken is a token of a user for the gateway, whose signature nobody here checks.
func callerToken(kind, user string, life time.Duration) string {
	part := func(v any) string {
		text, _ := json.Marshal(v)
		return base64.RawURLEncoding.EncodeToString(text)
	}
	return part(map[string]string{"typ": kind}) + "." + part(map[string]any{"sub": user, "exp": time.Now().Add(life).Unix()}) + ".sig"
}

// An exchanger is a token endpoint, and the server behind it. It answers with what a token was
// exchanged for.
type exchanger struct {
	*httptest.Server
	mu    sync.Mutex
	forms []url.Values
	deny  string // an error of the token endpoint
	old   string // a token that the server does not take any more
	life  int
}

func newExchanger(t *testing.T) *exchanger {
	x := &exchanger{life: 3600}
	x.Server = httptest.NewServer(x)
	t.Cleanup(x.Close)
	return x
}

func (x *exchanger) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if r.URL.Path == "/mcp" {
		if token := r.Header.Get("Authorization"); token == "Bearer "+x.old || !strings.HasPrefix(token, "Bearer new-") {
			w.WriteHeader(http.StatusUnauthorized)
		}
		fmt.Fprint(w, r.Header.Get("Authorization"))
		return
	}
	_ = r.ParseForm()
	if id, secret, ok := r.BasicAuth(); ok {
		r.PostForm.Set("basic", id+":"+secret)
	}
	x.forms = append(x.forms, r.PostForm)
	w.Header().Set("Content-Type", "application/json")
	if x.deny != "" {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error":%q}`, x.deny)
		return
	}
	token, kind := fmt.Sprintf("new-%d", len(x.forms)), typeAccess
	if r.PostForm.Get("requested_token_type") == oauthex.TokenTypeIDJAG {
		token, kind = "jag", oauthex.TokenTypeIDJAG
	}
	fmt.Fprintf(w, `{"access_token":%q,"issued_token_type":%q,"token_type":"Bearer","expires_in":%d}`, token, kind, x.life)
}

// call calls the server for a user, and returns the token that it got.
func (x *exchanger) call(t *testing.T, all *Exchanges, server schema.Server, user string) (string, error) {
	t.Helper()
	client := http.Client{Transport: all.For(server, user).Transport(http.DefaultTransport)}
	resp, err := client.Post(server.URL, "application/json", strings.NewReader("{}"))
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("status %d", resp.StatusCode)
	}
	var text [100]byte
	n, _ := resp.Body.Read(text[:])
	return strings.TrimPrefix(string(text[:n]), "Bearer "), nil
}

func TestExchangeForms(t *testing.T) {
	x := newExchanger(t)
	jwt := callerToken("at+jwt", "ann", time.Hour)
	id := callerToken("JWT", "ann", time.Hour)
	server := schema.Server{Name: "crm", Transport: schema.StreamableHTTP, URL: x.URL + "/mcp"}
	for _, test := range []struct {
		name, token string
		exchange    schema.Exchange
		want        []url.Values
	}{
		{"token exchange", jwt, schema.Exchange{Form: schema.FormTokenExchange, ClientID: "gw", ClientSecret: "s", Audience: "crm", Scope: "a b"}, []url.Values{{
			"grant_type": {oauthex.GrantTypeTokenExchange}, "subject_token": {jwt}, "subject_token_type": {typeAccess}, "requested_token_type": {typeAccess},
			"audience": {"crm"}, "resource": {server.URL}, "scope": {"a b"}, "basic": {"gw:s"},
		}}},
		{"on behalf of", jwt, schema.Exchange{Form: schema.FormOnBehalfOf, ClientID: "gw", Scope: "api://crm/.default"}, []url.Values{{
			"grant_type": {grantJWT}, "assertion": {jwt}, "requested_token_use": {"on_behalf_of"}, "scope": {"api://crm/.default"}, "client_id": {"gw"},
		}}},
		{"id-jag", id, schema.Exchange{Form: schema.FormIDJAG, ClientID: "gw", ClientSecret: "s", Audience: "https://as.example", Resource: "https://crm.example", GrantURL: x.URL + "/grant", GrantClientID: "at-crm"}, []url.Values{{
			"grant_type": {oauthex.GrantTypeTokenExchange}, "subject_token": {id}, "subject_token_type": {oauthex.TokenTypeIDToken}, "requested_token_type": {oauthex.TokenTypeIDJAG},
			"audience": {"https://as.example"}, "resource": {"https://crm.example"}, "basic": {"gw:s"},
		}, {"grant_type": {grantJWT}, "assertion": {"jag"}, "client_id": {"at-crm"}}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			x.forms = nil
			test.exchange.TokenURL = x.URL + "/token"
			server.Credentials = schema.Credentials{User: true, Exchange: &test.exchange}
			all := &Exchanges{Callers: &Callers{}}
			all.Callers.Verified("ann", test.token)
			if got, err := x.call(t, all, server, "ann"); err != nil || got != fmt.Sprintf("new-%d", len(test.want)) {
				t.Errorf("called with %q, %v", got, err)
			}
			if diff := cmp.Diff(test.want, x.forms); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

// What a token was exchanged for is of one user, is used until it expires or is refused, and the
// user's own token reaches the token endpoint only.
func TestExchangedTokensAreOfOneUser(t *testing.T) {
	x := newExchanger(t)
	server := schema.Server{Name: "crm", Transport: schema.StreamableHTTP, URL: x.URL + "/mcp",
		Credentials: schema.Credentials{User: true, Exchange: &schema.Exchange{Form: schema.FormTokenExchange, TokenURL: x.URL + "/token", ClientID: "gw"}}}
	all := &Exchanges{Callers: &Callers{}}
	call := func(user, want string) {
		t.Helper()
		if got, err := x.call(t, all, server, user); err != nil || got != want {
			t.Errorf("%s: called with %q, %v, want %q", user, got, err, want)
		}
	}
	refused := func(user string, code int64) {
		t.Helper()
		_, err := x.call(t, all, server, user)
		f, ok := errors.AsType[*transports.Failure](err)
		if !ok || f.Code != code || f.Outcome != transports.NotSent || !f.Personal {
			t.Errorf("%s: %v", user, err)
		}
	}
	refused("ann", transports.CodeAuthRequired) // she has not called with a token
	all.Callers.Verified("ann", callerToken("at+jwt", "ann", time.Hour))
	all.Callers.Verified("bob", callerToken("at+jwt", "bob", time.Hour))
	call("ann", "new-1")
	call("bob", "new-2")
	call("ann", "new-1")
	call("bob", "new-2")
	x.old = "new-1"
	call("ann", "new-3") // refused, and exchanged again
	call("bob", "new-2")
	all.Callers.Verified("cid", callerToken("at+jwt", "cid", -time.Second))
	refused("cid", transports.CodeAuthRequired) // it has expired
	all.Callers.Verified("dee", callerToken("at+jwt", "dee", time.Hour))
	x.deny = "invalid_grant"
	refused("dee", transports.CodeAuthRequired)
	all.Callers.Verified("eve", callerToken("at+jwt", "eve", time.Hour))
	x.deny = "server_error"
	refused("eve", transports.CodeUnreachable)
	requests := len(x.forms)
	refused("eve", transports.CodeUnreachable)
	if len(x.forms) != requests {
		t.Error("a failed exchange was tried again at once")
	}
	call("bob", "new-2")
}
