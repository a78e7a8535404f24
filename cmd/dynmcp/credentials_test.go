package main_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// Servers that are called with what each user of a gateway keeps for them.

// own sends a request about what the user of a client keeps, and returns status and body.
func (u *users) own(c *mcptest.Client, method, path, body string) (int, string) {
	u.t.Helper()
	status, _, text := u.send(method, path, body, "Authorization", c.Header.Get("Authorization"))
	return status, text
}

// Each user's program has his own value in its environment. Nobody sees that of another, and a value
// that is missing, changed or removed counts for that user alone.
func TestEachUserHasHisOwnEnvironment(t *testing.T) {
	t.Parallel()
	env := mcptest.Environ(t)
	git := deferred(t, "git", "Issues").with("isolation", "principal").with("env", map[string]string{"TOKEN": "t-${user:GIT_TOKEN}"})
	run := serveUsersIn(t, env, []entry{git})
	ann, bob := run.client("ann", "/mcp"), run.client("bob", "/mcp")
	ann.Initialize(handshake, `{}`)
	bob.Initialize(handshake, `{}`)
	token := func(c *mcptest.Client) string {
		return c.Call("tools/call", useParams("git/env", `{"name":"TOKEN"}`)).Raw
	}
	missing := token(ann)
	for _, want := range []string{"GIT_TOKEN", "not_sent", run.url + "/credentials/GIT_TOKEN"} {
		if !strings.Contains(missing, want) {
			t.Errorf("a missing value: no %q in %s", want, missing)
		}
	}
	if status, text := run.own(ann, http.MethodPut, "/credentials/GIT_TOKEN", "of-ann\n"); status != http.StatusNoContent {
		t.Fatalf("PUT: %d %s", status, text)
	}
	contains(t, token(ann), "t-of-ann")
	contains(t, token(bob), "GIT_TOKEN")

	// An operator sets one for him, and a program that runs without it is not his.
	set := exec.CommandContext(t.Context(), mcptest.Dynmcp(t), "credential", "set", "GIT_TOKEN", "--principal", run.issuer+" bob")
	set.Env, set.Stdin = env, strings.NewReader("of-bob\n")
	if out, err := set.CombinedOutput(); err != nil {
		t.Fatalf("credential set: %v\n%s", err, out)
	}
	contains(t, token(bob), "t-of-bob")
	contains(t, token(ann), "t-of-ann")
	if list := runVerb(t, env, 0, "credential", "list", "--principal", run.issuer+" bob"); list != "GIT_TOKEN\n" {
		t.Errorf("listed: %q", list)
	}
	if status, text := run.own(bob, http.MethodGet, "/credentials", ""); status != http.StatusOK || strings.TrimSpace(text) != `{"logins":[],"names":["GIT_TOKEN"]}` {
		t.Errorf("GET: %d %s", status, text)
	}
	if status, text := run.own(bob, http.MethodGet, "/credentials/GIT_TOKEN", ""); status != http.StatusMethodNotAllowed || strings.Contains(text, "of-bob") {
		t.Errorf("GET of a value: %d %s", status, text)
	}
	if status, _, _ := run.send(http.MethodGet, "/credentials", ""); status != http.StatusUnauthorized {
		t.Errorf("GET without a token: %d", status)
	}
	if status, text := run.own(bob, http.MethodPut, "/credentials/GIT_TOKEN", "two\nlines"); status != http.StatusBadRequest {
		t.Errorf("PUT of two lines: %d %s", status, text)
	}

	// Changes reach the running program, which is replaced.
	if status, text := run.own(ann, http.MethodPut, "/credentials/GIT_TOKEN", "newer"); status != http.StatusNoContent {
		t.Fatalf("PUT: %d %s", status, text)
	}
	mcptest.Eventually(t, "her program has the new value", func() bool { return strings.Contains(token(ann), "t-newer") })
	runVerb(t, env, 0, "credential", "remove", "GIT_TOKEN", "--principal", run.issuer+" ann")
	mcptest.Eventually(t, "her program is gone", func() bool { return strings.Contains(token(ann), "keeps no GIT_TOKEN") })
	contains(t, token(bob), "t-of-bob")
	if log := run.dynmcp.Stderr(); strings.Contains(log, "of-bob") || strings.Contains(log, "newer") {
		t.Errorf("the log has a value:\n%s", log)
	}
}

// loginAddress finds the address of a login in an error.
var loginAddress = regexp.MustCompile(`open (http://[^ ]+/login/\w+) to log in`)

// A browser is that of a user.
type browser struct {
	t    *testing.T
	http http.Client
}

func newBrowser(t *testing.T) *browser {
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &browser{t, http.Client{Jar: jar}}
}

func (b *browser) open(address string) (int, string) {
	b.t.Helper()
	resp, err := b.http.Get(address)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// logIn opens the page of a login, and follows its link to the authorization server and back.
func (b *browser) logIn(address string) (page string, status int) {
	b.t.Helper()
	status, page = b.open(address)
	link := regexp.MustCompile(`<a href="([^"]+)"`).FindStringSubmatch(page)
	if status != http.StatusOK || link == nil {
		b.t.Fatalf("the page: %d %s", status, page)
	}
	status, _ = b.open(html.UnescapeString(link[1]))
	return page, status
}

// Each user logs in to a server as himself: he gets the address, his browser comes back to the
// gateway, and his calls have his token. Another browser cannot complete his login.
func TestEachUserHasHisOwnLogin(t *testing.T) {
	t.Parallel()
	env := mcptest.Environ(t)
	web, as := protected(t, mcptest.AuthOptions{})
	run := serveUsersIn(t, env, []entry{web.with("credentials", "user")})
	call := func(c *mcptest.Client) string { return c.Call("tools/call", useParams("web/headers", `{}`)).Raw }
	bearer := regexp.MustCompile(`Bearer ([\w-]+)`)
	var addresses, tokens []string
	clients := map[string]*mcptest.Client{}
	for _, name := range []string{"ann", "bob"} {
		c := run.client(name, "/mcp")
		c.Initialize(handshake, `{}`)
		clients[name] = c
		said := call(c)
		address := loginAddress.FindStringSubmatch(said)
		if address == nil || !strings.Contains(said, "not_sent") {
			t.Fatalf("%s was told %s", name, said)
		}
		if again := loginAddress.FindStringSubmatch(call(c)); again == nil || again[1] != address[1] {
			t.Errorf("another address: %q", again)
		}
		addresses = append(addresses, address[1])
	}
	if addresses[0] == addresses[1] {
		t.Fatalf("both users have the login %s", addresses[0])
	}
	// The authorization request itself, sent on to somebody else, is of no use.
	_, page := newBrowser(t).open(addresses[0])
	link := html.UnescapeString(regexp.MustCompile(`<a href="([^"]+)"`).FindStringSubmatch(page)[1])
	if status, text := newBrowser(t).open(link); status != http.StatusForbidden {
		t.Errorf("another browser came back: %d %s", status, text)
	}
	for i, name := range []string{"ann", "bob"} {
		page, status := newBrowser(t).logIn(addresses[i])
		if status != http.StatusOK || !strings.Contains(page, run.issuer+" "+name) || !strings.Contains(page, "web") {
			t.Fatalf("%s logs in: %d, page %s", name, status, page)
		}
		mcptest.Eventually(t, name+" is logged in", func() bool { return bearer.MatchString(call(clients[name])) })
		tokens = append(tokens, bearer.FindStringSubmatch(call(clients[name]))[1])
	}
	if tokens[0] == tokens[1] || !strings.Contains(call(clients["ann"]), tokens[0]) {
		t.Errorf("the tokens are %q", tokens)
	}
	if status, _ := newBrowser(t).open(addresses[0]); status != http.StatusNotFound {
		t.Errorf("the page of a login that is over: %d", status)
	}

	// A refresh is of one user, and so is the end of a login.
	as.Expire()
	for i, name := range []string{"ann", "bob"} {
		if got := bearer.FindStringSubmatch(call(clients[name])); got == nil || got[1] == tokens[i] {
			t.Errorf("%s after a refresh: %q", name, got)
		} else {
			tokens[i] = got[1]
		}
	}
	if out := runVerb(t, env, 0, "logout", "web", "--principal", run.issuer+" ann", "-c", run.config); !strings.Contains(out, "Logged out of web") {
		t.Errorf("logout: %s", out)
	}
	mcptest.Eventually(t, "ann is logged out", func() bool { return loginAddress.MatchString(call(clients["ann"])) })
	contains(t, call(clients["bob"]), tokens[1])

	// He may end it himself, and only his own.
	if status, text := run.own(clients["bob"], http.MethodGet, "/credentials", ""); status != http.StatusOK || !strings.Contains(text, `"logins":["web"]`) {
		t.Errorf("where bob is logged in: %d %s", status, text)
	}
	for name, want := range map[string]int{"ann": http.StatusNotFound, "bob": http.StatusNoContent} {
		if status, text := run.own(clients[name], http.MethodDelete, "/credentials/login/web", ""); status != want {
			t.Errorf("%s ends a login: %d %s", name, status, text)
		}
	}
	mcptest.Eventually(t, "bob is logged out", func() bool { return loginAddress.MatchString(call(clients["bob"])) })
	noSecretIn(t, as, run.dynmcp.Stderr(), nil)
}

// A host that shows pages is asked, and the call goes on after the login of its user.
func TestAUserIsOfferedHisLogin(t *testing.T) {
	t.Parallel()
	web, _ := protected(t, mcptest.AuthOptions{})
	run := serveUsers(t, []entry{web.with("credentials", "user")})
	ann := run.client("ann", "/mcp")
	ann.Initialize(handshake, showsPages)
	messages, stop := ann.Stream(http.MethodPost, toolCall(1, "web/headers", `{}`))
	defer stop()
	for m := range messages {
		if m.IsAnswer() {
			contains(t, m.Raw, "Bearer ")
			return
		}
		if m.Method != "elicitation/create" {
			continue
		}
		page := regexp.MustCompile(`"url":"([^"]+)"`).FindStringSubmatch(m.Raw)
		if page == nil || !strings.HasPrefix(page[1], run.url+"/login/") {
			t.Fatalf("asked %s", m.Raw)
		}
		if _, status := newBrowser(t).logIn(page[1]); status != http.StatusOK {
			t.Errorf("the login ended with %d", status)
		}
		ann.Post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept"}}`, m.ID))
	}
	t.Error("the call was not answered")
}

// The token of a user is exchanged for one of the server, which never gets the user's own, and the
// record of calls names what was used.
func TestTheTokenOfAUserIsExchanged(t *testing.T) {
	t.Parallel()
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		subject := r.PostForm.Get("subject_token")
		claims, err := base64.RawURLEncoding.DecodeString(strings.Split(subject+"..", ".")[1])
		var of struct{ Sub string }
		if err != nil || json.Unmarshal(claims, &of) != nil || r.PostForm.Get("audience") != "crm" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"access_token":"crm-of-%s","token_type":"Bearer","issued_token_type":"urn:ietf:params:oauth:token-type:access_token","expires_in":300}`, of.Sub)
	}))
	t.Cleanup(tokens.Close)
	ledger, dir := mcptest.NewLedger(t), t.TempDir()
	crm := entry{ledger, "crm", map[string]any{
		"url": mcptest.ServeFake(t, "-name", "crm", "-ledger", ledger.Path).URL, "description": "Customers",
		"credentials": map[string]any{"exchange": map[string]string{"token_url": tokens.URL, "client_id": "gw", "audience": "crm"}},
	}}
	run := serveUsers(t, []entry{crm}, fmt.Sprintf(`"activity": {"dir": %q}`, dir))
	for _, name := range []string{"ann", "bob", "ann"} {
		c := run.client(name, "/mcp")
		c.Initialize(handshake, `{}`)
		said := c.Call("tools/call", useParams("crm/headers", `{}`)).Raw
		contains(t, said, "Bearer crm-of-"+name)
		own := strings.TrimPrefix(c.Header.Get("Authorization"), "Bearer ")
		if strings.Contains(said, own) || strings.Contains(run.dynmcp.Stderr(), own) {
			t.Errorf("the user's own token went on: %s", said)
		}
	}
	mcptest.Eventually(t, "the calls are recorded", func() bool {
		files, _ := filepath.Glob(filepath.Join(dir, "*"))
		var all []byte
		for _, file := range files {
			text, _ := os.ReadFile(file)
			all = append(all, text...)
		}
		return strings.Count(string(all), `"credential":"exchange"`) == 3 && !strings.Contains(string(all), "crm-of-")
	})
}
