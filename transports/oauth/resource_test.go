package oauth

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/transports/oauth/logins"
)

// All spellings of a server's address, in its entry and in its metadata, lead to a login for the name
// that the metadata has, wherever the metadata is. The query of the entry is in every request to the
// server, and in no name of it that the metadata does not have.
func TestSpellingsOfAResource(t *testing.T) {
	t.Parallel()
	entries := map[string]string{ // HOST is the address in the entry
		"as in the metadata":        "http://HOST/mcp",
		"a query":                   "http://HOST/mcp?project_ref=abc&read_only=true",
		"an empty query":            "http://HOST/mcp?",
		"a fragment":                "http://HOST/mcp#here",
		"a query and a fragment":    "http://HOST/mcp?team=1#here",
		"a scheme in capitals":      "HTTP://HOST/mcp",
		"a slash at the end":        "http://HOST/mcp/",
		"a slash and a query":       "http://HOST/mcp/?team=1",
		"a query with encoded text": "http://HOST/mcp?q=a%2Fb+c",
	}
	hosts := []string{"127.0.0.1", "localhost", "LOCALHOST", "LocalHost"}
	documents := map[string]struct {
		where string
		names []string // HOST is the address of the server in lower case
	}{
		"named in the challenge": {"header", []string{"http://HOST/mcp", "http://HOST/mcp/", "HTTP://HOST/mcp"}},
		"below the path":         {"path", []string{"http://HOST/mcp", "http://HOST/mcp/"}},
		"at the root":            {"root", []string{"http://HOST", "http://HOST/", "http://HOST/mcp"}},
		"nowhere":                {"none", []string{""}},
	}
	var all sync.WaitGroup
	running := make(chan struct{}, 8)
	for kind, document := range documents {
		for _, name := range document.names {
			for spelling, entry := range entries {
				for _, host := range hosts {
					all.Go(func() {
						running <- struct{}{}
						defer func() { <-running }()
						what := fmt.Sprintf("metadata %s, as %q, and %s at %s", kind, name, spelling, host)
						tryResource(t, what, document.where, strings.ReplaceAll(name, "HOST", strings.ToLower(host)+":PORT"), host, entry)
					})
				}
			}
		}
	}
	all.Wait()
}

// tryResource logs in to a server whose metadata is at where, and sends a request.
func tryResource(t *testing.T, what, where, name, host, entry string) {
	apart := (host == "127.0.0.1") != (where == "none") // metadata names another origin, and without it there is none
	if where == "none" {                                // the entry's own name, without what is no part of a resource
		path := strings.TrimPrefix(entry[:strings.IndexAny(entry+"?", "?#")], entry[:len("http://HOST")])
		name = "http://" + strings.ToLower(host) + ":PORT" + path
	}
	var mu sync.Mutex
	var queries []string
	as := mcptest.NewAuthServer(t, mcptest.AuthOptions{Resource: where, Name: name, Apart: apart, Wrap: func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path = strings.TrimSuffix(r.URL.Path, "/"); r.URL.Path == "/mcp" {
			mu.Lock()
			defer mu.Unlock()
			queries = append(queries, r.URL.RawQuery)
		}
		return false
	}})
	port := as.Base[strings.LastIndex(as.Base, ":")+1:]
	server := serverOf(as, nil)
	server.URL = strings.ReplaceAll(entry, "HOST", host+":"+port)
	store := logins.NewFiles(t.TempDir() + "/logins")
	made, err := flowFor(t, store, server).Run(deadline(t))
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	if want := strings.ReplaceAll(name, "PORT", port); made.Resource != want {
		t.Errorf("%s: logged in to %q, want %q", what, made.Resource, want)
	}
	client, _ := clientFor(t, store, server)
	resp, err := client.Post(server.URL, "application/json", strings.NewReader("{}"))
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("%s: got %v, %v", what, resp, err)
		return
	}
	resp.Body.Close()
	query := ""
	if _, after, ok := strings.Cut(server.URL, "?"); ok {
		query, _, _ = strings.Cut(after, "#")
	}
	mu.Lock()
	defer mu.Unlock()
	if len(queries) < 2 || slices.ContainsFunc(queries, func(q string) bool { return q != query }) {
		t.Errorf("%s: the server got the queries %q, want %q", what, queries, query)
	}
}

func TestSameAs(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		entry, named string
		root, same   bool
	}{
		{"https://a.test/mcp", "https://a.test/mcp", false, true},
		{"https://a.test/mcp", "https://a.test:443/mcp", false, true},
		{"http://a.test:80/mcp", "http://a.test/mcp", false, true},
		{"https://A.test:443/mcp", "HTTPS://a.TEST/mcp/", false, true},
		{"https://a.test:/mcp", "https://a.test/mcp", false, true},
		{"https://[2001:DB8::1]:443/mcp", "https://[2001:db8::1]/mcp", false, true},
		{"https://a.test", "https://a.test/", false, true},
		{"https://a.test/mcp?x=1", "https://a.test/mcp", false, true},
		{"https://a.test/mcp?x=1", "https://a.test/mcp?x=1", false, true},
		{"https://a.test/mcp#x", "https://a.test/mcp#y", false, true},
		{"https://a.test/mcp", "https://a.test", true, true},
		{"https://a.test/mcp?x=1", "https://A.test/", true, true},

		{"https://a.test/mcp?x=1", "https://a.test/mcp?x=2", false, false},
		{"https://a.test/mcp", "https://a.test/mcp?x=2", false, false},
		{"https://a.test/mcp", "https://a.test", false, false},
		{"https://a.test/mcp", "https://a.test/mc", false, false},
		{"https://a.test/mcp", "https://a.test/MCP", false, false},
		{"https://a.test/mcp", "https://a.test/mcp/more", true, false},
		{"https://a.test/a%2Fb", "https://a.test/a/b", false, false},
		{"https://a.test/mcp", "http://a.test/mcp", false, false},
		{"https://a.test/mcp", "https://a.test:8443/mcp", true, false},
		{"https://a.test/mcp", "https://b.test/mcp", true, false},
		{"https://a.test/mcp", "https://a.test.evil.test/mcp", false, false},
		{"https://a.test/mcp", "https://a.test@evil.test/mcp", false, false},
		{"https://a.test/mcp", "a.test/mcp", false, false},
		{"https://a.test/mcp", "%", false, false},
		{"https://a.test/mcp", "", true, false},
	} {
		r, err := resourceOf(test.entry)
		if err != nil {
			t.Fatal(err)
		}
		if r.SameAs(test.named, test.root) != test.same {
			t.Errorf("%s, %s, root %t: want %t", test.entry, test.named, test.root, test.same)
		}
	}
}

// What is no metadata does not end the discovery at any of its addresses.
func TestDiscoveryGoesOn(t *testing.T) {
	t.Parallel()
	answers := map[string]func(w http.ResponseWriter, r *http.Request){
		"404": func(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) },
		"400": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusBadRequest) },
		"401": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusUnauthorized) },
		"403": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusForbidden) },
		"a page": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<!doctype html>")
		},
		"a page called JSON":     func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, "<!doctype html>") },
		"an empty object":        func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, "{}") },
		"another object":         func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, `{"ok":true}`) },
		"a list":                 func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, "[]") },
		"null":                   func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, "null") },
		"nothing":                func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, "") },
		"a redirect to a page":   func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/page", http.StatusFound) },
		"an issuer alone":        func(w http.ResponseWriter, r *http.Request) { writeJSON(w, `{"issuer":"http://%s/tenant"}`, r.Host) },
		"a resource alone":       func(w http.ResponseWriter, r *http.Request) { writeJSON(w, `{"resource":"http://%s/mcp"}`, r.Host) },
		"members of wrong types": func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, `{"issuer":1,"resource":2}`) },
	}
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			as := mcptest.NewAuthServer(t, mcptest.AuthOptions{Resource: "root", Issuer: "/tenant", Metadata: "oidc-after", Wrap: func(w http.ResponseWriter, r *http.Request) bool {
				switch r.URL.Path {
				case resourceWellKnown + "/mcp", "/.well-known/oauth-authorization-server/tenant", "/.well-known/openid-configuration/tenant":
					answer(w, r)
				case "/page":
					w.Header().Set("Content-Type", "text/html")
					fmt.Fprint(w, "<form>")
				default:
					return false
				}
				return true
			}})
			server := serverOf(as, nil)
			store := loggedIn(t, server)
			client, _ := clientFor(t, store, server)
			wantStatus(t, client, server, "{}", http.StatusOK)
		})
	}
}
