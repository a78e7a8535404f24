package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/oauth/logins"
)

func TestWithoutLoginTheServerSaysSo(t *testing.T) {
	t.Parallel()
	as := mcptest.NewAuthServer(t, mcptest.AuthOptions{})
	server := serverOf(as, nil)
	dir := t.TempDir() + "/logins"
	store := logins.NewFiles(dir)
	client, session := clientFor(t, store, server)
	resp := wantStatus(t, client, server, "{}", http.StatusUnauthorized)
	if hint, _ := session.Hint(resp); hint != `run "dynmcp login web"` {
		t.Errorf("hint %q", hint)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a request created the directory of logins: %v", err)
	}
	// The same process finds the login that another one makes.
	if _, err := flowFor(t, store, server).Run(deadline(t)); err != nil {
		t.Fatal(err)
	}
	wantStatus(t, client, server, "{}", http.StatusOK)
}

func TestHints(t *testing.T) {
	t.Parallel()
	_, session := clientFor(t, logins.NewFiles(t.TempDir()), schema.Server{Name: "web", URL: "https://web.example.test"})
	for _, test := range []struct {
		status          int
		challenge, want string
		login           bool // a login would help
	}{
		{401, `Bearer`, `run "dynmcp login web"`, true},
		{401, ``, `run "dynmcp login web", or give its key in "headers" of the config`, true},
		{401, `Basic realm="x"`, `run "dynmcp login web", or give its key in "headers" of the config`, true},
		{403, ``, ``, false},
		{403, `Bearer error="insufficient_scope", scope="a b"`, `run "dynmcp login web": this needs the scopes a b`, true},
	} {
		resp := &http.Response{StatusCode: test.status, Header: http.Header{}}
		if test.challenge != "" {
			resp.Header.Set("WWW-Authenticate", test.challenge)
		}
		if got, login := session.Hint(resp); got != test.want || login != test.login {
			t.Errorf("%d %s: got %q, %t, want %q, %t", test.status, test.challenge, got, login, test.want, test.login)
		}
	}
}

func TestTokensGoToTheServersOriginOnly(t *testing.T) {
	t.Parallel()
	as := mcptest.NewAuthServer(t, mcptest.AuthOptions{})
	server := serverOf(as, nil)
	client, _ := clientFor(t, loggedIn(t, server), server)
	var seen atomic.Value
	other := mcptest.NewAuthServer(t, mcptest.AuthOptions{Wrap: func(w http.ResponseWriter, r *http.Request) bool {
		seen.Store(r.Header.Get("Authorization"))
		return true
	}})
	resp, err := client.Get(other.URL)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if got := seen.Load(); got != "" {
		t.Errorf("another origin got %q", got)
	}
}

// A token is refreshed shortly before it expires.
func TestRefreshBeforeTheEnd(t *testing.T) {
	t.Parallel()
	as := mcptest.NewAuthServer(t, mcptest.AuthOptions{})
	server := serverOf(as, nil)
	store := loggedIn(t, server)
	age(t, store, server, time.Second)
	client, _ := clientFor(t, store, server)
	wantStatus(t, client, server, "{}", http.StatusOK)
	wantStatus(t, client, server, "{}", http.StatusOK)
	if got := as.Count("refresh"); got != 1 {
		t.Errorf("%d refreshes, want 1", got)
	}
}

// age makes the access token of a login expire after left.
func age(t *testing.T, store *logins.Store, server schema.Server, left time.Duration) {
	t.Helper()
	err := store.Update(deadline(t), logins.KeyOf(server), func(l *logins.Login) bool {
		l.Expires = time.Now().Add(left)
		l.Issued = l.Expires.Add(-time.Hour)
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestRefreshTokenThatStays(t *testing.T) {
	t.Parallel()
	as := mcptest.NewAuthServer(t, mcptest.AuthOptions{Wrap: dropRefreshTokens})
	server := serverOf(as, nil)
	store := loggedIn(t, server)
	before, _ := store.Load(logins.KeyOf(server))
	as.Expire()
	client, _ := clientFor(t, store, server)
	wantStatus(t, client, server, "{}", http.StatusOK)
	if after, _ := store.Load(logins.KeyOf(server)); after.RefreshToken != before.RefreshToken || after.AccessToken == before.AccessToken {
		t.Errorf("refresh token kept: %t, access token new: %t", after.RefreshToken == before.RefreshToken, after.AccessToken != before.AccessToken)
	}
}

// dropRefreshTokens answers refreshes without a new refresh token, with a token
// that the server does not check.
func dropRefreshTokens(w http.ResponseWriter, r *http.Request) bool {
	if r.URL.Path == "/mcp" && r.Header.Get("Authorization") == "Bearer renewed-token" {
		fmt.Fprint(w, "{}")
		return true
	}
	if !isRefresh(r) {
		return false
	}
	writeJSON(w, `{"access_token":"renewed-token","token_type":"Bearer","expires_in":3600}`)
	return true
}

// The tokens of a revoked login are deleted, its failures have a hint, and a new login works.
func TestLoginThatIsOver(t *testing.T) {
	t.Parallel()
	as := mcptest.NewAuthServer(t, mcptest.AuthOptions{})
	server := serverOf(as, nil)
	store := loggedIn(t, server)
	client, session := clientFor(t, store, server)
	wantStatus(t, client, server, "{}", http.StatusOK)
	as.Revoke()
	for range 3 {
		resp := wantStatus(t, client, server, "{}", http.StatusUnauthorized)
		if hint, _ := session.Hint(resp); hint != `run "dynmcp login web"` {
			t.Errorf("hint %q", hint)
		}
	}
	if l, _ := store.Peek(logins.KeyOf(server)); l == nil || l.HasToken || l.Renews {
		t.Errorf("stored: %+v", l)
	}
	if _, err := flowFor(t, store, server).Run(deadline(t)); err != nil {
		t.Fatal(err)
	}
	wantStatus(t, client, server, "{}", http.StatusOK)
}

// If the lock does not work and another process has used the refresh token, the tokens of that
// process are used and kept.
func TestRefreshTokenThatAnotherProcessSpent(t *testing.T) {
	t.Parallel()
	var store *logins.Store
	var server schema.Server
	as := mcptest.NewAuthServer(t, mcptest.AuthOptions{Wrap: func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/mcp" && r.Header.Get("Authorization") == "Bearer token-of-another" {
			fmt.Fprint(w, "{}")
			return true
		}
		if !isRefresh(r) {
			return false
		}
		theirs, err := store.Load(logins.KeyOf(server))
		if err != nil {
			t.Error(err)
			return false
		}
		theirs.AccessToken, theirs.RefreshToken = "token-of-another", "refresh-of-another"
		theirs.Issued, theirs.Expires = time.Now(), time.Now().Add(time.Hour)
		if err := store.Save(logins.KeyOf(server), theirs); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error":"invalid_grant"}`)
		return true
	}})
	server = serverOf(as, nil)
	store = loggedIn(t, server)
	age(t, store, server, -time.Second)
	client, _ := clientFor(t, store, server)
	wantStatus(t, client, server, "{}", http.StatusOK)
	if l, err := store.Load(logins.KeyOf(server)); err != nil || l.RefreshToken != "refresh-of-another" {
		t.Errorf("kept: %+v, %v", l, err)
	}
}

// If a refresh fails for now, no new login is required, and the refresh token is kept.
func TestRefreshThatFails(t *testing.T) {
	t.Parallel()
	var down atomic.Bool
	for name, fail := range map[string]func(w http.ResponseWriter){
		"500":     func(w http.ResponseWriter) { http.Error(w, "oops", http.StatusInternalServerError) },
		"no JSON": func(w http.ResponseWriter) { fmt.Fprint(w, "<html>") },
		"dead": func(w http.ResponseWriter) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				conn.Close()
			}
		},
		"endless": func(w http.ResponseWriter) {
			for range 2 << 10 {
				_, _ = w.Write(make([]byte, 1<<10))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			down.Store(false)
			as := mcptest.NewAuthServer(t, mcptest.AuthOptions{Wrap: func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path == "/token" && down.Load() {
					fail(w)
					return true
				}
				return false
			}})
			server := serverOf(as, nil)
			store := loggedIn(t, server)
			age(t, store, server, -time.Second)
			down.Store(true)
			client, session := clientFor(t, store, server)
			_, err := client.Post(server.URL, "application/json", strings.NewReader("{}"))
			var failure *transports.Failure
			if !errors.As(err, &failure) || failure.Code != transports.CodeUnreachable || failure.Outcome != transports.NotSent {
				t.Fatalf("got %v", err)
			}
			if as.Count("call") != 0 {
				t.Error("the request was sent")
			}
			down.Store(false)
			session.mu.Lock()
			session.retryAt = time.Time{} // the pause is over
			session.mu.Unlock()
			wantStatus(t, client, server, "{}", http.StatusOK)
		})
	}
}

// A token that has not expired is used while its refresh fails.
func TestRefreshThatFailsEarly(t *testing.T) {
	t.Parallel()
	as := mcptest.NewAuthServer(t, mcptest.AuthOptions{Wrap: func(w http.ResponseWriter, r *http.Request) bool {
		if isRefresh(r) {
			http.Error(w, "oops", http.StatusBadGateway)
			return true
		}
		return false
	}})
	server := serverOf(as, nil)
	store := loggedIn(t, server)
	age(t, store, server, 30*time.Second)
	client, _ := clientFor(t, store, server)
	wantStatus(t, client, server, "{}", http.StatusOK)
	wantStatus(t, client, server, "{}", http.StatusOK)
}

// If a server rejects every token, not every request causes a refresh.
func TestServerThatRejectsEveryToken(t *testing.T) {
	t.Parallel()
	as := mcptest.NewAuthServer(t, mcptest.AuthOptions{Wrap: func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/mcp" && r.Header.Get("Authorization") != "" {
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}
		return false
	}})
	server := serverOf(as, nil)
	client, _ := clientFor(t, loggedIn(t, server), server)
	for range 20 {
		wantStatus(t, client, server, "{}", http.StatusUnauthorized)
	}
	if got := as.Count("refresh"); got > 2 {
		t.Errorf("%d refreshes", got)
	}
}

func TestOneRefreshForAllRequests(t *testing.T) {
	t.Parallel()
	as := mcptest.NewAuthServer(t, mcptest.AuthOptions{})
	server := serverOf(as, nil)
	client, _ := clientFor(t, loggedIn(t, server), server)
	wantStatus(t, client, server, "{}", http.StatusOK)
	as.Expire()
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if resp := post(t, client, server, "{}"); resp.StatusCode != http.StatusOK {
				t.Errorf("status %d", resp.StatusCode)
			}
		})
	}
	all.Wait()
	if got := as.Count("refresh"); got != 1 {
		t.Errorf("%d refreshes, want 1", got)
	}
	if as.Count("reuse") != 0 {
		t.Error("a refresh token was used twice")
	}
}

// A caller that gives up does not end the refresh for the others.
func TestRefreshOutlivesItsFirstCaller(t *testing.T) {
	t.Parallel()
	began, goOn := make(chan struct{}), make(chan struct{})
	as := mcptest.NewAuthServer(t, mcptest.AuthOptions{Wrap: func(w http.ResponseWriter, r *http.Request) bool {
		if isRefresh(r) {
			close(began)
			<-goOn
		}
		return false
	}})
	server := serverOf(as, nil)
	store := loggedIn(t, server)
	age(t, store, server, -time.Second)
	client, session := clientFor(t, store, server)
	ctx, cancel := context.WithCancel(deadline(t))
	go func() { <-began; cancel() }()
	if _, err := session.token(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	close(goOn)
	wantStatus(t, client, server, "{}", http.StatusOK)
	if as.Count("refresh") != 1 || as.Count("reuse") != 0 {
		t.Errorf("%d refreshes, %d reuses", as.Count("refresh"), as.Count("reuse"))
	}
}

const helperDir = "OAUTH_TEST_DIR"

// helper is the main function of a process that uses a login of the store in dir. It reads a line,
// sends 50 requests at once, and prints their statuses.
func helper(dir string) {
	server := schema.Server{Name: "web", Transport: schema.StreamableHTTP, URL: os.Getenv("OAUTH_TEST_URL")}
	client := &http.Client{Transport: NewSessions(LoginOptions{Store: logins.NewFiles(dir)}).For(server, "").Transport(http.DefaultTransport)}
	var line string
	_, _ = fmt.Scanln(&line)
	statuses := make([]int, 50)
	var all sync.WaitGroup
	for i := range statuses {
		all.Go(func() {
			resp, err := client.Post(server.URL, "application/json", strings.NewReader("{}"))
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				return
			}
			resp.Body.Close()
			statuses[i] = resp.StatusCode
		})
	}
	all.Wait()
	_ = json.NewEncoder(os.Stdout).Encode(statuses)
}

// Eight processes send fifty requests each with an expired token. They make one refresh, although
// a refresh token is valid once, and lose no login.
func TestOneRefreshForAllProcesses(t *testing.T) {
	t.Parallel()
	const processes = 8
	for name, expire := range map[string]func(*mcptest.AuthServer, *logins.Store, schema.Server){
		"expired": func(_ *mcptest.AuthServer, store *logins.Store, server schema.Server) {
			age(t, store, server, -time.Second)
		},
		"rejected": func(as *mcptest.AuthServer, _ *logins.Store, _ schema.Server) { as.Expire() },
	} {
		t.Run(name, func(t *testing.T) {
			as := mcptest.NewAuthServer(t, mcptest.AuthOptions{})
			server := serverOf(as, nil)
			dir := t.TempDir() + "/logins"
			store := loggedInAt(t, dir, server)
			for round := range 3 {
				expire(as, store, server)
				before := as.Count("refresh")
				var all sync.WaitGroup
				for range processes {
					all.Go(func() {
						cmd := exec.CommandContext(deadline(t), os.Args[0])
						cmd.Env = append(os.Environ(), helperDir+"="+dir, "OAUTH_TEST_URL="+server.URL)
						cmd.Stdin = strings.NewReader("go\n")
						cmd.Stderr = os.Stderr
						out, err := cmd.Output()
						if err != nil {
							t.Error(err)
						}
						if n := strings.Count(string(out), "200"); n != 50 {
							t.Errorf("%d of 50 requests worked: %s", n, out)
						}
					})
				}
				all.Wait()
				if got := as.Count("refresh") - before; got != 1 {
					t.Errorf("round %d: %d refreshes, want 1", round, got)
				}
			}
			if as.Count("reuse") != 0 || as.Count("authorize") != 1 {
				t.Errorf("%d refresh tokens used twice, %d logins", as.Count("reuse"), as.Count("authorize"))
			}
		})
	}
}

func TestClientCredentials(t *testing.T) {
	t.Parallel()
	as := mcptest.NewAuthServer(t, mcptest.AuthOptions{Client: "machine", Key: "key of machine", Scopes: []string{"read"}, NoRegistration: true})
	server := serverOf(as, &schema.Auth{Grant: schema.GrantClientCredentials, ClientID: "machine", ClientSecret: "key of machine"})
	dir := t.TempDir() + "/logins"
	store := logins.NewFiles(dir)
	client, _ := clientFor(t, store, server)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if resp := post(t, client, server, "{}"); resp.StatusCode != http.StatusOK {
				t.Errorf("status %d", resp.StatusCode)
			}
		})
	}
	all.Wait()
	if got := as.Count("machine"); got != 1 {
		t.Errorf("%d logins, want 1", got)
	}
	if asked := as.Asked(); asked[0] != "read" {
		t.Errorf("asked for %q", asked)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Error("a login was stored")
	}

	server.Auth = &schema.Auth{Grant: schema.GrantClientCredentials, ClientID: "machine", ClientSecret: "not its key", Scope: "read write"}
	client, session := clientFor(t, store, server)
	resp := wantStatus(t, client, server, "{}", http.StatusUnauthorized)
	if hint, login := session.Hint(resp); login || !strings.Contains(hint, `check the client`) {
		t.Errorf("hint %q", hint)
	}
	server.Auth.ClientSecret = "key of machine"
	client, _ = clientFor(t, store, server)
	wantStatus(t, client, server, "{}", http.StatusOK)
	asked := as.Asked()
	if got := slices.Sorted(strings.FieldsSeq(asked[len(asked)-1])); !slices.Equal(got, []string{"read", "write"}) {
		t.Errorf("asked for %q", got)
	}
}

// The secret of a machine is sent to one issuer only, even if the server names another one later.
func TestAnotherAuthorizationServerGetsNoSecretOfAMachine(t *testing.T) {
	t.Parallel()
	var moved atomic.Bool
	thief := mcptest.NewAuthServer(t, mcptest.AuthOptions{Client: "machine", Key: "key of machine"})
	as := mcptest.NewAuthServer(t, mcptest.AuthOptions{Client: "machine", Key: "key of machine", Wrap: namesIssuer(&moved, func() string { return thief.Base })})
	server := serverOf(as, &schema.Auth{Grant: schema.GrantClientCredentials, ClientID: "machine", ClientSecret: "key of machine"})
	client, session := clientFor(t, logins.NewFiles(t.TempDir()+"/logins"), server)
	wantStatus(t, client, server, "{}", http.StatusOK)
	moved.Store(true)
	as.Expire()
	session.mu.Lock()
	session.renewedAt = time.Time{} // so that the pause is over
	session.mu.Unlock()
	wantStatus(t, client, server, "{}", http.StatusUnauthorized)
	if as.Count("machine") != 1 || thief.Count("machine") != 0 {
		t.Errorf("%d logins, %d at the other server", as.Count("machine"), thief.Count("machine"))
	}
}
