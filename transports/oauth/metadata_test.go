package oauth

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/oauth/logins"
)

// Resource metadata that must not be used fails the login of a person and of a machine. The
// authorization server on the server's own origin is not used instead.
func TestUnusableResourceMetadata(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		named            string // address in the challenge; "" means the correct one
		resource, issuer string // "" means the correct one
		want             string
	}{
		"the resource of another origin":                     {resource: "https://other.example.test/mcp", want: "is that of another resource, https://other.example.test/mcp"},
		"another resource of the origin, and another issuer": {resource: "/else", issuer: "https://auth.example.test", want: "is that of another resource"},
		"a private issuer":                                   {issuer: "https://10.0.0.1", want: "names an authorization server at https://10.0.0.1: refused"},
		"an issuer of the cloud":                             {issuer: "http://169.254.169.254", want: "names an authorization server at http://169.254.169.254: refused"},
		"an issuer in a file":                                {issuer: "file:///etc/passwd", want: "names an authorization server at file:///etc/passwd: refused"},
		"metadata of the cloud":                              {named: "http://169.254.169.254/latest?key=s3cret", want: "names its resource metadata at http://169.254.169.254/latest: refused"},
		"metadata in a file":                                 {named: "file:///etc/passwd", want: "names its resource metadata at file:///etc/passwd: refused"},
		"metadata that a redirect leads to":                  {named: "/redirect", want: "its resource metadata: refused http://10.0.0.1"},
	} {
		for _, grant := range []string{"", schema.GrantClientCredentials} {
			t.Run(name+" "+grant, func(t *testing.T) {
				t.Parallel()
				as := mcptest.NewAuthServer(t, mcptest.AuthOptions{Client: "machine", Key: "key of machine", Wrap: func(w http.ResponseWriter, r *http.Request) bool {
					base := "http://" + r.Host
					absolute := func(address string) string {
						if strings.HasPrefix(address, "/") {
							return base + address
						}
						return address
					}
					switch {
					case r.URL.Path == "/mcp" && test.named != "":
						w.Header().Set("WWW-Authenticate", fmt.Sprintf("Bearer resource_metadata=%q", absolute(test.named)))
						w.WriteHeader(http.StatusUnauthorized)
						return true
					case r.URL.Path == "/redirect":
						http.Redirect(w, r, "http://10.0.0.1/metadata", http.StatusFound)
						return true
					case r.URL.Path != "/resource":
						return false
					}
					found := map[string]any{"resource": base + "/mcp", "authorization_servers": []string{base}}
					if test.resource != "" {
						found["resource"] = absolute(test.resource)
					}
					if test.issuer != "" {
						found["authorization_servers"] = []string{test.issuer}
					}
					w.Header().Set("Content-Type", "application/json")
					_ = json.NewEncoder(w).Encode(found)
					return true
				}})
				server := serverOf(as, &schema.Auth{Grant: grant, ClientID: "machine", ClientSecret: "key of machine"})
				store := logins.NewFiles(t.TempDir() + "/logins")
				var err error
				if grant == "" {
					_, err = flowFor(t, store, server).Run(deadline(t))
				} else {
					_, session := clientFor(t, store, server)
					resp, asked := http.Post(server.URL, "application/json", strings.NewReader("{}"))
					if asked != nil {
						t.Fatal(asked)
					}
					resp.Body.Close()
					_, err = session.clientCredentials(deadline(t), resp.Header)
				}
				if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "s3cret") {
					t.Errorf("got %v, want %q", err, test.want)
				}
				if as.Count("authorize")+as.Count("token")+as.Count("machine")+as.Count("register") != 0 {
					t.Error("the login went on")
				}
			})
		}
	}
}

// A server may spell its own address differently if it is its own authorization server.
func TestResourceOfTheSameOrigin(t *testing.T) {
	t.Parallel()
	loggedIn(t, serverOf(mcptest.NewAuthServer(t, mcptest.AuthOptions{Name: "BASE/"}), nil))
}

// A page in place of metadata, as single-page applications send it, is ignored.
func TestResourceMetadataThatIsAPage(t *testing.T) {
	t.Parallel()
	as := mcptest.NewAuthServer(t, mcptest.AuthOptions{Resource: "none", Wrap: func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasPrefix(r.URL.Path, resourceWellKnown) {
			fmt.Fprint(w, "<html>")
			return true
		}
		return false
	}})
	loggedIn(t, serverOf(as, nil))
}

// A token that is not a valid Bearer token is rejected, whatever requested it. A DPoP token is
// rejected if no proof was sent.
func TestTokensThatAreNoBearerTokens(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ answer, want string }{
		"mac":          {`{"access_token":"t0ken","token_type":"mac","refresh_token":"r"}`, `type "mac", and not Bearer`},
		"DPoP":         {`{"access_token":"t0ken","token_type":"DPoP"}`, `type "DPoP", and not Bearer`},
		"lines":        {`{"access_token":"t0ken\r\nX-Evil: 1","token_type":"Bearer"}`, "no header can carry"},
		"NUL":          {`{"access_token":"t0ken\u0000","token_type":"Bearer"}`, "no header can carry"},
		"letters":      {`{"access_token":"t0kén","token_type":"Bearer"}`, "no header can carry"},
		"case":         {`{"access_token":"t0ken","token_type":"bEARER"}`, ""},
		"without type": {`{"access_token":"t0ken"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			as := mcptest.NewAuthServer(t, mcptest.AuthOptions{Client: "machine", Key: "key of machine", Wrap: func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path != "/token" {
					return false
				}
				writeJSON(w, "%s", test.answer)
				return true
			}})
			server := serverOf(as, nil)
			store := logins.NewFiles(t.TempDir() + "/logins")
			_, person := flowFor(t, store, server).Run(deadline(t))
			kept, _ := store.Load(logins.KeyOf(server))

			server.Auth = &schema.Auth{Grant: schema.GrantClientCredentials, ClientID: "machine", ClientSecret: "key of machine"}
			_, session := clientFor(t, store, server)
			_, machine := session.clientCredentials(deadline(t), http.Header{})

			l := aLogin()
			l.TokenURL = as.Base + "/token"
			refreshed := session.refresh(deadline(t), l)
			for what, err := range map[string]error{"login": person, "machine": machine, "refresh": refreshed} {
				if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
					t.Errorf("%s: got %v, want %q", what, err, test.want)
				}
				if err != nil && strings.Contains(err.Error(), "t0k") {
					t.Errorf("%s: the error has the token: %v", what, err)
				}
			}
			if (kept == nil) != (test.want != "") || test.want != "" && l.AccessToken != aLogin().AccessToken {
				t.Errorf("kept %+v, refreshed %+v", kept, l)
			}
		})
	}
}

// Only the first authorization server is used: a private address in a later one does no harm.
func TestFurtherAuthorizationServers(t *testing.T) {
	t.Parallel()
	g := remoteGuard(t)
	d := discovery{guard: g, server: g.server}
	body := httptest.NewRecorder().Body
	_ = json.NewEncoder(body).Encode(map[string]any{"resource": g.server.String(), "authorization_servers": []string{"https://8.8.8.8", "https://10.0.0.1"}})
	if shown, err := d.ofResource(&url.URL{Path: resourceWellKnown + "/mcp"}, body.Bytes()); shown == nil || err != nil {
		t.Error(shown, err)
	}
}

// A client of the config stays with the issuer of its last login, unless its id is the address of its
// metadata, which any issuer may read (SEP-2352).
func TestWhichClientsStayWithAnIssuer(t *testing.T) {
	for id, stays := range map[string]bool{"abc": true, "https://dynmcp.example.test/client.json": false, "": false} {
		d := discovery{auth: schema.Auth{ClientID: id}, before: &logins.Login{Issuer: "https://one.test"}, issuer: "https://two.test", entry: "w"}
		err := d.checkIssuer(authorizationServer{Issuer: "https://two.test", Token: "https://two.test/token"})
		if (err != nil) != stays {
			t.Errorf("client id %q at another issuer: %v", id, err)
		}
	}
}
