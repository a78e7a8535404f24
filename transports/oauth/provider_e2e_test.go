//go:build e2e

package oauth

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/oauth/logins"
)

// oidc-provider is an authorization server that others wrote, certified by the OpenID Foundation.
const oidcProvider = "oidc-provider@9.13.3"

// A shape is how a server of testdata/provider.mjs is protected.
type shape struct {
	Metadata  string `json:"metadata,omitempty"`  // of the resource: at "root", or below its path
	Challenge *bool  `json:"challenge,omitempty"` // names the metadata
	Scope     string `json:"scope,omitempty"`     // in the challenge
	Mount     string `json:"mount,omitempty"`     // path of the issuer
	JWT       bool   `json:"jwt,omitempty"`       // access tokens
	NoRefresh bool   `json:"norefresh,omitempty"`
	Client    bool   `json:"client,omitempty"` // is known, and none is registered
	Secret    string `json:"secret,omitempty"`
}

// npmModules returns the node_modules directory in which npx keeps the packages, NAME@VERSION each.
func npmModules(t *testing.T, packages ...string) string {
	var args []string
	for _, name := range packages {
		args = append(args, "--package="+name)
	}
	npx := mcptest.Npx(t, append(args, "--call=node -p process.env.PATH")...)
	find := exec.Command(npx[0], npx[1:]...)
	find.Dir = t.TempDir()
	path, err := find.Output()
	if err != nil {
		t.Fatalf("%q: %v", npx, err)
	}
	for _, bin := range filepath.SplitList(strings.TrimSpace(string(path))) {
		name := packages[0][:strings.LastIndex(packages[0], "@")]
		if _, err := os.Stat(filepath.Join(filepath.Dir(bin), filepath.FromSlash(name))); err == nil {
			return filepath.Dir(bin)
		}
	}
	t.Fatalf("npx has no %s on its path %q", packages[0], path)
	return ""
}

// startProviders starts a server for each shape, and returns their base URLs.
func startProviders(t *testing.T, modules string, shapes []shape) (bases []string) {
	text, err := json.Marshal(shapes)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("node", "testdata/provider.mjs", modules, string(text))
	cmd.Stderr = t.Output()
	alive, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		alive.Close()
		_ = cmd.Wait()
	})
	for lines := bufio.NewScanner(out); len(bases) < len(shapes) && lines.Scan(); {
		bases = append(bases, lines.Text())
	}
	if len(bases) < len(shapes) {
		t.Fatal("node does not serve")
	}
	return bases
}

var formAction = regexp.MustCompile(`<form[^>]*action="([^"]+)"`)

// logInAt opens the address of a login page, and fills in the pages of oidc-provider as a user does: his
// name, and then his consent. It returns the status of the page at the end.
func logInAt(t *testing.T, address string) int {
	jar, _ := cookiejar.New(nil)
	client := http.Client{Jar: jar}
	defer client.CloseIdleConnections()
	resp, err := client.Get(address)
	for range 2 {
		if err != nil {
			break
		}
		page, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		form := formAction.FindSubmatch(page)
		if form == nil {
			t.Errorf("no form at %s: %s", resp.Request.URL, page)
			return resp.StatusCode
		}
		prompt := "login"
		if strings.Contains(string(page), `value="consent"`) {
			prompt = "consent"
		}
		to, _ := resp.Request.URL.Parse(string(form[1]))
		resp, err = client.PostForm(to.String(), url.Values{"prompt": {prompt}, "login": {"ann"}, "password": {"any"}})
	}
	if err != nil {
		t.Error(err)
		return 0
	}
	resp.Body.Close()
	return resp.StatusCode
}

// counts returns what a server has done.
func counts(t *testing.T, base string) (n map[string]int) {
	resp, err := http.Get(base + "/test/counts")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// A protected server has a shape, and in the config an auth.
type protected struct {
	name  string
	shape shape
	auth  *schema.Auth
}

// protectedServers are the ten shapes in which oidc-provider protects an MCP server here.
func protectedServers() []protected {
	silent := false
	return []protected{
		{"metadata below the path", shape{}, nil},
		{"metadata at the root", shape{Metadata: "root"}, nil},
		{"a challenge without metadata", shape{Challenge: &silent}, nil},
		{"metadata at the root that no challenge names", shape{Metadata: "root", Challenge: &silent}, nil},
		{"scopes in the challenge", shape{Scope: "read write"}, nil},
		{"an issuer with a path", shape{Mount: "/tenant"}, nil},
		{"tokens that are JWTs", shape{JWT: true}, nil},
		{"no refresh tokens", shape{NoRefresh: true}, nil},
		{"a public client of the config", shape{Client: true}, &schema.Auth{ClientID: "known"}},
		{"a client with a secret", shape{Client: true, Secret: "a secret+of/it"}, &schema.Auth{ClientID: "known", ClientSecret: "a secret+of/it"}},
	}
}

func shapesOf(servers []protected) (shapes []shape) {
	for _, server := range servers {
		shapes = append(shapes, server.shape)
	}
	return shapes
}

// Whole logins at oidc-provider: discovery, registration, PKCE, the pages, a refresh, and the end with
// revocation and without the registered client.
func TestLoginsAtOIDCProvider(t *testing.T) {
	tests := protectedServers()
	bases := startProviders(t, npmModules(t, oidcProvider), shapesOf(tests))
	for i, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			base := bases[i]
			server := schema.Server{Name: "web", Transport: schema.StreamableHTTP, URL: base + "/mcp", Auth: test.auth}
			store := logins.NewFiles(t.TempDir() + "/logins")
			flow := flowFor(t, store, server)
			pages, done := make(chan string, 1), make(chan struct{})
			go func() {
				defer close(done)
				for page := range pages {
					if status := logInAt(t, page); status != http.StatusOK {
						t.Errorf("the last page has the status %d", status)
					}
				}
			}()
			flow.Show = func(address string) { pages <- address }
			_, err := flow.Run(deadline(t))
			close(pages)
			<-done
			if err != nil {
				t.Fatal(err)
			}
			client, _ := clientFor(t, store, server)
			wantStatus(t, client, server, "{}", http.StatusOK)
			if n := counts(t, base); n["granted"] != 1 || n["registered"] == 0 == (test.auth == nil) {
				t.Errorf("it counts %v", n)
			}
			if resp, err := http.Get(base + "/test/expire"); err == nil {
				resp.Body.Close()
			}
			if test.shape.NoRefresh {
				wantStatus(t, client, server, "{}", http.StatusUnauthorized)
				return
			}
			wantStatus(t, client, server, "{}", http.StatusOK)
			if n := counts(t, base); n["refreshed"] != 1 {
				t.Errorf("it counts %v, want a refresh", n)
			}
			if was, err := (LoginOptions{Store: store}).Logout(t.Context(), server, ""); err != nil || !was {
				t.Errorf("the end of the login: %t, %v", was, err)
			}
			if n := counts(t, base); n["revoked"] == 0 || n["deleted"] != n["registered"] {
				t.Errorf("it counts %v, want a revocation, and no client that is left", n)
			}
		})
	}
}
