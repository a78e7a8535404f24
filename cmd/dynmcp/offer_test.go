package main_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// Hosts that show pages to their users (URL mode elicitation) are offered the login
// that a call needs, and the call goes on after it.

const showsPages = `{"elicitation":{"url":{}}}`

// A person answers questions of dynmcp with an action, after visiting the page if that is
// accept.
type person struct {
	t      *testing.T
	action string
	first  func(page string) // called before the answer; nil visits the page

	mu    sync.Mutex
	pages []string
	ids   []string
}

func (p *person) asked(params json.RawMessage) (any, error) {
	var q struct{ Mode, Message, URL, ElicitationID string }
	if err := json.Unmarshal(params, &q); err != nil || q.Mode != "url" || q.ElicitationID == "" || !strings.Contains(q.Message, "web wants a login") {
		p.t.Errorf("the host was asked %s", params)
	}
	p.mu.Lock()
	p.pages, p.ids = append(p.pages, q.URL), append(p.ids, q.ElicitationID)
	p.mu.Unlock()
	switch {
	case p.first != nil:
		p.first(q.URL)
	case p.action == "accept":
		mcptest.Browse(p.t, q.URL)
	}
	return fmt.Sprintf(`{"action":%q}`, p.action), nil
}

func (p *person) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.pages)
}

// offered runs dynmcp for a person's host. Programs that open browsers write to a
// file, which has to stay away.
func offered(t *testing.T, e entry, p *person, more ...string) (*mcptest.Host, []string) {
	t.Helper()
	p.t = t
	bin, opened := t.TempDir(), filepath.Join(t.TempDir(), "opened")
	for _, opener := range []string{"xdg-open", "open"} {
		writeProgram(t, bin, opener, "#!/bin/sh\necho \"$@\" >> '"+opened+"'\n")
	}
	t.Cleanup(func() {
		if text, err := os.ReadFile(opened); err == nil {
			t.Errorf("dynmcp opened a browser: %s", text)
		}
	})
	env := append(mcptest.Environ(t), "DISPLAY=:0", "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	config := mcptest.Config(t, document([]entry{e}, more...))
	host := mcptest.Start(t, mcptest.HostOptions{
		Args: []string{mcptest.Dynmcp(t), "-c", config, "--log-level", "debug"}, Env: env,
		OnRequest: mcptest.Handlers{"elicitation/create": p.asked},
	})
	return host, append(env, "CONFIG="+config)
}

// noSecretIn fails the test if a text has a secret of a login, or if a log has what must not
// be logged: the addresses at which logins begin and return, and what is in them.
func noSecretIn(t *testing.T, as *mcptest.AuthServer, log string, texts map[string]string) {
	t.Helper()
	search := func(where, text string, secrets []string) {
		for _, secret := range secrets {
			if strings.Contains(text, secret) || strings.Contains(text, url.QueryEscape(secret)) {
				t.Errorf("%s has %s:\n%s", where, secret, text)
			}
		}
	}
	secrets := as.Secrets()
	if len(secrets) == 0 {
		t.Error("there was nothing to be found")
	}
	for where, text := range texts {
		search(where, text, secrets)
	}
	search("the log", log, append(as.Unlogged(), "/authorize?", "/callback?"))
}

func TestLoginIsOfferedForLoadsAndForMoreScopes(t *testing.T) {
	t.Parallel()
	e, _ := protected(t, mcptest.AuthOptions{Scopes: []string{"read"}, WriteFor: "write:all"})
	p := &person{action: "accept"}
	host, _ := offered(t, e, p)
	host.Initialize(handshake, showsPages)
	contains(t, host.Tool("discover_tool", `{"server":"web"}`).Raw, "web/echo")
	contains(t, load(host, "web").Raw, "echo")
	if p.count() != 1 {
		t.Errorf("asked %d times, want 1", p.count())
	}
	contains(t, use(host, "web/echo", `{"text":"write"}`).Raw, `"structuredContent":{"text":"write"}`)
	if p.count() != 2 || !strings.Contains(p.pages[1], "write%3Aall") {
		t.Errorf("asked for %q", p.pages)
	}

	e, _ = protected(t, mcptest.AuthOptions{})
	p = &person{action: "accept"}
	host, _ = offered(t, e, p)
	host.Initialize(handshake, showsPages)
	contains(t, load(host, "web").Raw, "echo")
}

// Many calls wait for one login.
func TestLoginIsOfferedOnce(t *testing.T) {
	t.Parallel()
	e, as := protected(t, mcptest.AuthOptions{})
	p := &person{action: "accept"}
	all := make(chan struct{})
	p.first = func(page string) {
		<-all
		mcptest.Browse(t, page)
	}
	host, _ := offered(t, e, p)
	host.Initialize(handshake, showsPages)
	var calls []*mcptest.Pending
	for range 8 {
		calls = append(calls, host.Go("tools/call", useParams("web/echo", `{"text":"hi"}`)))
	}
	host.WaitMethod("elicitation/create", 1)
	close(all)
	for _, c := range calls {
		contains(t, c.Wait().Raw, `"structuredContent":{"text":"hi"}`)
	}
	if p.count() != 1 || as.Count("authorize") != 1 {
		t.Errorf("asked %d times, %d logins", p.count(), as.Count("authorize"))
	}
}

// A refused offer gives the usual text, and is not repeated at once.
func TestOfferedLoginThatIsDeclined(t *testing.T) {
	t.Parallel()
	for _, action := range []string{"decline", "cancel"} {
		t.Run(action, func(t *testing.T) {
			t.Parallel()
			e, as := protected(t, mcptest.AuthOptions{})
			p := &person{action: action}
			host, env := offered(t, e, p)
			host.Initialize(handshake, showsPages)
			for range 3 {
				m := use(host, "web/echo", `{"text":"hi"}`)
				contains(t, m.Raw, `run \"dynmcp login web\"`, "not_sent")
				lacks(t, m.Raw, "offered")
			}
			if p.count() != 1 || as.Count("authorize") != 0 {
				t.Errorf("asked %d times, %d logins", p.count(), as.Count("authorize"))
			}
			// The callback is closed.
			page, err := url.Parse(p.pages[0])
			if err != nil {
				t.Fatal(err)
			}
			back, err := url.Parse(page.Query().Get("redirect_uri"))
			if err != nil {
				t.Fatal(err)
			}
			if conn, err := net.Dial("tcp", back.Host); err == nil {
				conn.Close()
				t.Error("the callback still listens")
			}
			if printed, err := login(t, env, "web", "-c", configOf(env)); err != nil {
				t.Fatalf("login: %v\n%s", err, printed)
			}
			contains(t, use(host, "web/echo", `{"text":"hi"}`).Raw, `"structuredContent":{"text":"hi"}`)
		})
	}
}

func configOf(env []string) string {
	config, _ := strings.CutPrefix(env[len(env)-1], "CONFIG=")
	return config
}

// A host may cancel the call, and its question with it. The login goes on: a user who is at
// its page may finish.
func TestOfferedLoginOutlivesItsCall(t *testing.T) {
	t.Parallel()
	e, as := protected(t, mcptest.AuthOptions{})
	p := &person{action: "accept"}
	pages, answer := make(chan string, 1), make(chan struct{})
	p.first = func(page string) {
		pages <- page
		<-answer
	}
	host, _ := offered(t, e, p)
	host.Initialize(handshake, showsPages)
	call := host.Go("tools/call", useParams("web/echo", `{"text":"hi"}`))
	page := <-pages
	call.Cancel("enough")
	host.WaitMethod("notifications/cancelled", 1) // of the question
	mcptest.Browse(t, page)
	close(answer)
	host.WaitMethod("notifications/elicitation/complete", 1)
	contains(t, use(host, "web/echo", `{"text":"hi"}`).Raw, `"structuredContent":{"text":"hi"}`)
	if p.count() != 1 || as.Count("authorize") != 1 {
		t.Errorf("asked %d times, %d logins", p.count(), as.Count("authorize"))
	}
}

// Some hosts answer the question when their user comes back from the page, some never.
func TestOfferedLoginThatIsMadeBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	e, _ := protected(t, mcptest.AuthOptions{})
	never := make(chan struct{})
	defer close(never)
	p := &person{action: "accept", first: func(page string) {
		mcptest.Browse(t, page)
		<-never
	}}
	host, _ := offered(t, e, p)
	host.Initialize(handshake, showsPages)
	contains(t, use(host, "web/echo", `{"text":"hi"}`).Raw, `"structuredContent":{"text":"hi"}`)
	host.WaitMethod("notifications/elicitation/complete", 1)
}

// A login that fails before or on its page is part of the text, and is not tried again at
// once.
func TestOfferedLoginThatFails(t *testing.T) {
	t.Parallel()
	t.Run("no way to have a client", func(t *testing.T) {
		t.Parallel()
		e, _ := protected(t, mcptest.AuthOptions{NoRegistration: true})
		p := &person{}
		host, _ := offered(t, e, p)
		host.Initialize(handshake, showsPages)
		for range 2 {
			contains(t, use(host, "web/echo", `{"text":"hi"}`).Raw, `run \"dynmcp login web\"`, "the login that was offered failed", "client registration")
		}
		if p.count() != 0 {
			t.Errorf("asked %d times", p.count())
		}
	})
	t.Run("refused on its page", func(t *testing.T) {
		t.Parallel()
		e, _ := protected(t, mcptest.AuthOptions{Wrap: func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != "/authorize" {
				return false
			}
			back := url.Values{"error": {"access_denied"}, "state": {r.URL.Query().Get("state")}}
			http.Redirect(w, r, r.URL.Query().Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
			return true
		}})
		host, _ := offered(t, e, &person{action: "accept"})
		host.Initialize(handshake, showsPages)
		contains(t, use(host, "web/echo", `{"text":"hi"}`).Raw, `run \"dynmcp login web\"`, "access_denied")
	})
	t.Run("a login that does not do", func(t *testing.T) {
		t.Parallel()
		e, as := protected(t, mcptest.AuthOptions{Wrap: func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != "/mcp" {
				return false
			}
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="http://`+r.Host+`/resource"`)
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}})
		host, _ := offered(t, e, &person{action: "accept"})
		host.Initialize(handshake, showsPages)
		contains(t, use(host, "web/echo", `{"text":"hi"}`).Raw, `run \"dynmcp login web\"`)
		if got := as.Count("authorize"); got != 1 {
			t.Errorf("%d logins for one call", got)
		}
	})
}

// The end of the host ends the login that it was offered.
func TestOfferedLoginEndsWithItsHost(t *testing.T) {
	t.Parallel()
	e, _ := protected(t, mcptest.AuthOptions{})
	never := make(chan struct{})
	defer close(never)
	p := &person{first: func(string) { <-never }}
	host, _ := offered(t, e, p)
	host.Initialize(handshake, showsPages)
	call := host.Go("tools/call", useParams("web/echo", `{"text":"hi"}`))
	host.WaitMethod("elicitation/create", 1)
	host.CloseStdin()
	contains(t, call.Wait().Raw, "not_sent")
	host.WaitEnd()
}

// A host that cannot show pages gets the usual text, and no login begins.
func TestLoginIsNotOfferedToOthers(t *testing.T) {
	t.Parallel()
	e, as := protected(t, mcptest.AuthOptions{})
	p := &person{}
	host, _ := offered(t, e, p)
	host.Initialize(handshake, `{"elicitation":{"form":{}}}`)
	contains(t, use(host, "web/echo", `{"text":"hi"}`).Raw, `run \"dynmcp login web\"`)
	contains(t, host.Call("tools/call", useParams("web/echo", `{"text":"hi"}`, mcptest.ModernMeta(`{"elicitation":{}}`))).Raw, `run \"dynmcp login web\"`)
	if p.count() != 0 || as.Count("register") != 0 {
		t.Errorf("asked %d times, %d clients registered", p.count(), as.Count("register"))
	}
}

// pageIn returns the login page that a result asks for.
func pageIn(t *testing.T, m mcptest.Message) string {
	t.Helper()
	var q struct {
		Method string
		Params struct{ Mode, URL, Message, ElicitationID string }
	}
	err := json.Unmarshal(m.Member("inputRequests", "login"), &q)
	if err != nil || string(m.Member("resultType")) != `"input_required"` || q.Method != "elicitation/create" || q.Params.Mode != "url" || q.Params.ElicitationID != "" {
		t.Fatalf("got %s", m.Raw)
	}
	return q.Params.URL
}

// accepted are the members of the request that follows a result with a question.
func accepted(m mcptest.Message, action string) string {
	return fmt.Sprintf(`"inputResponses":{"login":{"action":%q}},"requestState":%s`, action, m.Member("requestState"))
}

func TestOfferInAResultThatIsDeclined(t *testing.T) {
	t.Parallel()
	e, as := protected(t, mcptest.AuthOptions{})
	host, _ := offered(t, e, &person{})
	call := func(more ...string) mcptest.Message {
		return host.Call("tools/call", useParams("web/echo", `{"text":"hi"}`, append(more, mcptest.ModernMeta(showsPages))...))
	}
	asked := call()
	pageIn(t, asked)
	contains(t, call(accepted(asked, "decline")).Raw, `run \"dynmcp login web\"`)
	contains(t, call().Raw, `run \"dynmcp login web\"`) // not again at once
	// Old and forged states.
	contains(t, call(accepted(asked, "accept")).Raw, `run \"dynmcp login web\"`)
	contains(t, call(`"requestState":"dynmcp-login.x.!"`).Raw, "-32602")
	contains(t, call(`"requestState":"dynmcp-login."`).Raw, "-32602")
	if as.Count("authorize") != 0 {
		t.Error("there was a login")
	}
}

// Answers that a host gave a server before the login are kept.
func TestOfferInTheMiddleOfRounds(t *testing.T) {
	t.Parallel()
	e, as := protected(t, mcptest.AuthOptions{}, "-era", "new")
	env := mcptest.Environ(t)
	config := mcptest.Config(t, document([]entry{e}))
	if printed, err := login(t, env, "web", "-c", config); err != nil {
		t.Fatalf("login: %v\n%s", err, printed)
	}
	host := mcptest.Start(t, mcptest.HostOptions{Args: []string{mcptest.Dynmcp(t), "-c", config}, Env: env})
	meta := mcptest.ModernMeta(`{"elicitation":{"url":{},"form":{}}}`)
	const input = `{"method":"elicitation/create","params":{"message":"who?","requestedSchema":{"type":"object","properties":{}}}}`
	asked := host.Call("tools/call", useParams("web/ask", input, meta))
	if asked.Member("inputRequests") == nil {
		t.Fatalf("got %s", asked.Raw)
	}
	as.Revoke()
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(asked.Member("inputRequests"), &keys); err != nil {
		t.Fatal(err)
	}
	responses := map[string]json.RawMessage{}
	for key := range keys {
		responses[key] = json.RawMessage(`{"action":"accept","content":{"name":"me"}}`)
	}
	more := fmt.Sprintf(`"inputResponses":%s`, mcptest.Raw(responses))
	if state := asked.Member("requestState"); state != nil {
		more += fmt.Sprintf(`,"requestState":%s`, state)
	}
	locked := host.Call("tools/call", useParams("web/ask", input, more, meta))
	parts := strings.Split(string(locked.Member("requestState")), ".")
	if rounds, err := base64.RawURLEncoding.DecodeString(strings.Trim(parts[len(parts)-1], `"`)); err != nil || !strings.Contains(string(rounds), `"requestState":"dynmcp1.`) {
		t.Errorf("the host has %s, %v", rounds, err)
	}
	mcptest.Browse(t, pageIn(t, locked))
	contains(t, host.Call("tools/call", useParams("web/ask", input, accepted(locked, "accept"), meta)).Raw, `{\"name\":\"me\"}`)
}

// Hosts over HTTP are offered logins if they can only be on this machine.
func TestLoginIsOfferedOverHTTP(t *testing.T) {
	t.Parallel()
	call := func(more ...string) string { return string(useParams("web/echo", `{"text":"hi"}`, more...)) }
	t.Run("with a session", func(t *testing.T) {
		t.Parallel()
		e, as := protected(t, mcptest.AuthOptions{})
		web := serveHTTP(t, mcptest.Config(t, document([]entry{e})))
		host := mcptest.NewClient(t, web.url+"/mcp")
		host.Initialize(handshake, showsPages)
		messages, _ := host.Stream("POST", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":`+call()+`}`)
		for m := range messages {
			if m.Method == "elicitation/create" {
				var page string
				if err := json.Unmarshal(m.Member("url"), &page); err != nil {
					t.Fatalf("got %s", m.Raw)
				}
				mcptest.Browse(t, page)
				host.Post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept"}}`, m.ID))
			}
			if m.IsAnswer() {
				contains(t, m.Raw, `"structuredContent":{"text":"hi"}`)
				break
			}
		}
		if as.Count("authorize") != 1 {
			t.Errorf("%d logins", as.Count("authorize"))
		}
	})
	t.Run("in a result", func(t *testing.T) {
		t.Parallel()
		e, _ := protected(t, mcptest.AuthOptions{})
		web := serveHTTP(t, mcptest.Config(t, document([]entry{e})))
		headers := []string{"MCP-Protocol-Version", stateless, "Mcp-Method", "tools/call", "Mcp-Name", "use_tool"}
		m := web.call("/mcp", 1, "tools/call", call(mcptest.ModernMeta(showsPages)), headers...)
		mcptest.Browse(t, pageIn(t, m))
		m = web.call("/mcp", 2, "tools/call", call(accepted(m, "accept"), mcptest.ModernMeta(showsPages)), headers...)
		contains(t, m.Raw, `"structuredContent":{"text":"hi"}`)
	})
	t.Run("not to one of several users", func(t *testing.T) {
		t.Parallel()
		e, as := protected(t, mcptest.AuthOptions{})
		host := serveUsers(t, []entry{e}).client("ann", "/mcp")
		host.Initialize(handshake, showsPages)
		contains(t, host.Call("tools/call", call()).Raw, `run \"dynmcp login web\"`)
		if as.Count("register") != 0 {
			t.Errorf("%d clients registered", as.Count("register"))
		}
	})
	t.Run("of one server", func(t *testing.T) {
		t.Parallel()
		e, _ := protected(t, mcptest.AuthOptions{})
		web := serveHTTP(t, mcptest.Config(t, document([]entry{e})))
		headers := []string{"MCP-Protocol-Version", stateless, "Mcp-Method", "tools/call", "Mcp-Name", "echo"}
		params := func(more ...string) string {
			return string(mcptest.ToolParams("echo", `{"text":"hi"}`, append(more, mcptest.ModernMeta(showsPages))...))
		}
		m := web.call("/mcp/web", 1, "tools/call", params(), headers...)
		mcptest.Browse(t, pageIn(t, m))
		m = web.call("/mcp/web", 2, "tools/call", params(accepted(m, "accept")), headers...)
		contains(t, m.Raw, `"structuredContent":{"text":"hi"}`)
	})
	t.Run("not from elsewhere", func(t *testing.T) {
		t.Parallel()
		e, as := protected(t, mcptest.AuthOptions{})
		p := mcptest.Run(t, mcptest.HostOptions{Lingers: true, Args: []string{mcptest.Dynmcp(t), "serve", "--http", "0.0.0.0:0", "--listen-public", "--token", "token-of-many",
			"-c", mcptest.Config(t, document([]entry{e}))}})
		port := regexp.MustCompile(`:(\d+)/mcp`).FindStringSubmatch(p.WaitStderr("/mcp\n"))[1]
		host := mcptest.NewClient(t, "http://127.0.0.1:"+port+"/mcp")
		host.Header.Set("Authorization", "Bearer token-of-many")
		host.Initialize(handshake, showsPages)
		contains(t, host.Call("tools/call", call()).Raw, `run \"dynmcp login web\"`)
		if as.Count("register") != 0 {
			t.Error("a login began")
		}
	})
}
