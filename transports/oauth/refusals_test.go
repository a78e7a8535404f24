package oauth

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/oauth/logins"
)

// A refusal is a row of the table in docs/login.md.
type refusal struct {
	produce func(t *testing.T, a *schema.Auth) error // logs in with "auth"
	auth    schema.Auth                              // of the entry that is refused
	// follow changes it as the message says; the login works then. Nil if no key answers the refusal, or
	// if what answers it is not in the entry.
	follow func(*schema.Auth)
	says   string // in the message: the key, or what else answers it
}

// Every refusal of docs/login.md, and some more, is produced as it is written, names what answers it or that
// nothing does, and with that answer the login works.
func TestRefusalsOfTheManual(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/login.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (.+) \\|$").FindAllStringSubmatch(string(text), -1)
	cases, walked := refusals(), 0
	for _, row := range rows {
		message, answer := row[1], row[2]
		test, ok := cases[message]
		if !ok {
			t.Errorf("no test of %q", message)
			continue
		}
		if strings.HasPrefix(answer, "no key") {
			test.says = noKey
			cases[message] = test
		}
		walked++
	}
	if walked < 12 {
		t.Errorf("%d refusals in docs/login.md", walked)
	}
	for message, test := range cases { // also those that explain themselves
		t.Run(message, func(t *testing.T) {
			t.Parallel()
			form := ".*" + strings.ReplaceAll(regexp.QuoteMeta(message), "…", ".*") + ".*"
			err := test.produce(t, &test.auth)
			if err == nil || !regexp.MustCompile("^(?s:"+form+")$").MatchString(err.Error()) {
				t.Fatalf("got %v", err)
			}
			if !strings.Contains(err.Error(), test.says) {
				t.Errorf("%q does not say %q", err, test.says)
			}
			if test.follow == nil {
				return
			}
			test.follow(&test.auth)
			if err := test.produce(t, &test.auth); err != nil {
				t.Errorf("with the answer: %v", err)
			}
		})
	}
}

func refusals() map[string]refusal {
	known := schema.Auth{ClientID: "known"}
	at := func(opts mcptest.AuthOptions) func(*testing.T, *schema.Auth) error {
		opts.Client = "known"
		return func(t *testing.T, a *schema.Auth) error { return loginAt(t, mcptest.NewAuthServer(t, opts), a) }
	}
	named := func(format string) func(*testing.T, *schema.Auth) error {
		return at(mcptest.AuthOptions{Wrap: func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/resource" {
				writeJSON(w, format, "http://"+r.Host)
				return true
			}
			return false
		}})
	}
	apart := mcptest.AuthOptions{Issuer: "/tenant", Claims: "BASE", Iss: "right"}
	return map[string]refusal{
		"the server does not ask for a login (HTTP status 200 OK), …": {
			says: `"headers"`, follow: func(a *schema.Auth) { a.Scope = "by its headers" }, produce: loginNotAsked,
		},
		"refused …: it is not a public address; …": {
			says: `"allow_private"`, follow: func(a *schema.Auth) { a.AllowPrivate = []string{"127.0.0.0/8"} }, produce: dialPrivate,
		},
		"refused …: a private address needs a name …": {says: "a name", produce: func(t *testing.T, a *schema.Auth) error {
			_, err := discover(&http.Client{}, schema.Server{URL: "https://10.0.0.1/mcp", Auth: a}, nil, nil)
			return err
		}},
		"the server names an authorization server at …: refused …": {
			produce: named(`{"resource":"%[1]s/mcp","authorization_servers":["http://169.254.169.254"]}`),
		},
		"its resource metadata is that of another resource, …": {
			produce: named(`{"resource":"%[1]s/else","authorization_servers":["https://auth.example.test"]}`),
		},
		"metadata issuer … does not match issuer URL …": {
			says: `"issuer" into "auth"`, follow: func(a *schema.Auth) { a.Issuer = "BASE" }, produce: at(apart),
		},
		`metadata issuer … does not match the "issuer" …`: {
			auth: schema.Auth{Issuer: "BASE/"}, says: "correct the key", follow: func(a *schema.Auth) { a.Issuer = "BASE" }, produce: at(apart),
		},
		`… has no metadata that "issuer" …`: {
			auth: schema.Auth{Issuer: "BASE"}, says: "remove the key", follow: func(a *schema.Auth) { a.Issuer = "" },
			produce: at(mcptest.AuthOptions{Resource: "none", Metadata: "none"}),
		},
		"… has no code_challenge_methods_supported, …": {
			says: `"code_challenge": "S256"`, follow: func(a *schema.Auth) { a.CodeChallenge = "S256" }, produce: at(mcptest.AuthOptions{PKCE: []string{}}),
		},
		"the authorization server does not offer PKCE with S256, but …": {
			auth: schema.Auth{CodeChallenge: "S256"}, says: noKey, produce: at(mcptest.AuthOptions{PKCE: []string{"plain"}}),
		},
		"the authorization server has no client registration: …": {
			says: `"client_id"`, follow: func(a *schema.Auth) { a.ClientID = "known" }, produce: at(mcptest.AuthOptions{NoRegistration: true}),
		},
		"nobody has logged in in time; if the login page refuses …": {
			auth: known, says: `"callback"`, follow: func(a *schema.Auth) { a.Callback = "http://localhost:PORT/back" }, produce: loginRegistered,
		},
		"nobody has logged in in time; --timeout …": {says: "--timeout", produce: func(t *testing.T, a *schema.Auth) error {
			flow := flowFor(t, logins.NewFiles(t.TempDir()+"/logins"), serverOf(mcptest.NewAuthServer(t, mcptest.AuthOptions{}), a))
			ctx, end := late(t)
			flow.Show = func(string) { end() }
			_, err := flow.Run(ctx)
			return err
		}},
		"the browser came back with the issuer …":           {produce: at(mcptest.AuthOptions{Iss: "wrong"})},
		"the browser came back without the iss parameter …": {says: noKey, produce: at(mcptest.AuthOptions{Iss: "missing"})},
		`the token endpoint gave a token of type "mac", …`:  {produce: at(mcptest.AuthOptions{Wrap: macTokens})},
		"the pasted address is of another login: state mismatch": {produce: func(t *testing.T, a *schema.Auth) error {
			pasted := make(chan string, 1)
			flow := flowFor(t, logins.NewFiles(t.TempDir()+"/logins"), serverOf(mcptest.NewAuthServer(t, mcptest.AuthOptions{}), a))
			flow.Pasted, flow.Show = pasted, func(string) { pasted <- "http://127.0.0.1:1/callback?code=c&state=other" }
			_, err := flow.Run(deadline(t))
			return err
		}},
		"… does not match pre-registered credentials issuer …": {
			auth: known, says: `"dynmcp login web --forget"`, follow: func(a *schema.Auth) { a.Scope = "after a logout" }, produce: loginMoved,
		},
		"refresh its login: …": {produce: failedRefresh},
	}
}

// loginAt logs in and sends a request. BASE in an issuer is the address of the server.
func loginAt(t *testing.T, as *mcptest.AuthServer, a *schema.Auth) error {
	own := *a
	own.Issuer = strings.ReplaceAll(own.Issuer, "BASE", as.Base)
	server := serverOf(as, &own)
	store := logins.NewFiles(t.TempDir() + "/logins")
	if _, err := flowFor(t, store, server).Run(deadline(t)); err != nil {
		return err
	}
	client, _ := clientFor(t, store, server)
	if resp := post(t, client, server, "{}"); resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	return nil
}

// A lateContext is one whose deadline has passed when end is called: under load no real one passes just then.
type lateContext struct {
	context.Context
	over chan struct{}
}

// late returns a context, and what makes its deadline pass.
func late(t *testing.T) (ctx context.Context, end func()) {
	over := make(chan struct{})
	return lateContext{deadline(t), over}, sync.OnceFunc(func() { close(over) })
}

func (c lateContext) Done() <-chan struct{} { return c.over }

func (c lateContext) Err() error {
	select {
	case <-c.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// loginNotAsked logs in to a server that needs a key; with a scope, the key is in the headers.
func loginNotAsked(t *testing.T, a *schema.Auth) error {
	as := mcptest.NewAuthServer(t, mcptest.AuthOptions{Wrap: func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/mcp" {
			http.NotFound(w, r)
		}
		return true
	}})
	server := serverOf(as, nil)
	if a.Scope != "" {
		server.Headers = map[string]string{"Authorization": "Bearer key"}
		if Applies(server) {
			return errors.New("a login applies")
		}
		return nil
	}
	_, err := flowFor(t, logins.NewFiles(t.TempDir()+"/logins"), server).Run(deadline(t))
	return err
}

// dialPrivate connects to a name with a private address.
func dialPrivate(t *testing.T, a *schema.Auth) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	names := newNames(t)
	names.mean("127.0.0.1")
	g := remoteGuard(t, a.AllowPrivate...)
	g.resolver = names.resolver()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	conn, err := g.dial(t.Context(), "tcp", net.JoinHostPort("login.example.test", port))
	if err == nil {
		conn.Close()
	}
	return err
}

// loginRegistered logs in at a server that accepts only a redirect to localhost.
func loginRegistered(t *testing.T, a *schema.Auth) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
	l.Close()
	as := mcptest.NewAuthServer(t, mcptest.AuthOptions{Client: "known", Redirect: "http://localhost:" + port + "/back"})
	own := *a
	own.Callback = strings.ReplaceAll(own.Callback, "PORT", port)
	flow := flowFor(t, logins.NewFiles(t.TempDir()+"/logins"), serverOf(as, &own))
	ctx, end := deadline(t), func() {}
	if a.Callback == "" { // the login page refuses
		ctx, end = late(t)
	}
	show := flow.Show
	flow.Show = func(address string) {
		show(address)
		end()
	}
	_, err = flow.Run(ctx)
	return err
}

func macTokens(w http.ResponseWriter, r *http.Request) bool {
	if r.URL.Path == "/token" {
		writeJSON(w, `{"access_token":"t0ken","token_type":"mac"}`)
	}
	return r.URL.Path == "/token"
}

// loginMoved logs in at a server that names another authorization server than at the first login; with
// a scope, after a logout.
func loginMoved(t *testing.T, a *schema.Auth) error {
	issuer := "/old"
	as := mcptest.NewAuthServer(t, mcptest.AuthOptions{Client: "known"})
	server := serverOf(as, a)
	store := logins.NewFiles(t.TempDir() + "/logins")
	if err := store.Save(logins.KeyOf(server), &logins.Login{Server: "web", Issuer: as.Base + issuer, ClientID: "known"}); err != nil {
		t.Fatal(err)
	}
	if a.Scope != "" {
		if _, err := (LoginOptions{Store: store}).Logout(deadline(t), server, ""); err != nil {
			return err
		}
	}
	_, err := flowFor(t, store, server).Run(deadline(t))
	return err
}

func failedRefresh(t *testing.T, a *schema.Auth) error {
	as := mcptest.NewAuthServer(t, mcptest.AuthOptions{Wrap: func(w http.ResponseWriter, r *http.Request) bool {
		if isRefresh(r) {
			http.Error(w, "no", http.StatusBadGateway)
			return true
		}
		return false
	}})
	server := serverOf(as, a)
	store := loggedIn(t, server)
	age(t, store, server, -time.Second)
	client, _ := clientFor(t, store, server)
	resp, err := client.Post(server.URL, "application/json", strings.NewReader("{}"))
	if err == nil {
		resp.Body.Close()
	}
	return err
}

// With an issuer of the entry, other metadata may have that issuer. The client of the config is still
// only given to the endpoint of the previous login.
func TestStatedIssuerOfAThief(t *testing.T) {
	t.Parallel()
	as := mcptest.NewAuthServer(t, mcptest.AuthOptions{Client: "known", Key: "s3cret", Issuer: "/tenant", Claims: "https://login.example.test"})
	server := serverOf(as, &schema.Auth{ClientID: "known", ClientSecret: "s3cret", Issuer: "https://login.example.test"})
	store := logins.NewFiles(t.TempDir() + "/logins")
	before := &logins.Login{Server: "web", Issuer: "https://login.example.test", TokenURL: "https://login.example.test/token", ClientID: "known"}
	if err := store.Save(logins.KeyOf(server), before); err != nil {
		t.Fatal(err)
	}
	_, err := flowFor(t, store, server).Run(deadline(t))
	if err == nil || !strings.Contains(err.Error(), "does not match pre-registered credentials issuer") || as.Count("authorize")+as.Count("token") != 0 {
		t.Errorf("got %v, %d authorizations", err, as.Count("authorize"))
	}
}

// localhost is both loopback addresses, whichever a browser tries.
func TestCallbackAtLocalhost(t *testing.T) {
	t.Parallel()
	c, err := listen(&schema.Auth{Callback: "http://localhost/back"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	if !strings.HasPrefix(c.RedirectURL, "http://localhost:") || !strings.HasSuffix(c.RedirectURL, "/back") {
		t.Errorf("redirect %q", c.RedirectURL)
	}
	_, port, _ := net.SplitHostPort(strings.TrimSuffix(strings.TrimPrefix(c.RedirectURL, "http://"), "/back"))
	hosts := []string{"127.0.0.1"}
	if l, err := net.Listen("tcp6", "[::1]:0"); err == nil {
		l.Close()
		hosts = append(hosts, "::1")
	}
	for _, host := range hosts {
		_, _ = c.expect("st4te", "")
		if status, _, _ := get(t, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/back?code=c&state=st4te"); status != http.StatusOK {
			t.Errorf("%s: status %d", host, status)
		}
		<-c.results
	}
}
