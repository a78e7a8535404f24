package main_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// Several users of one run over HTTP. Each has a token of the same identity provider.

// users serves a config over HTTP to users with tokens.
type users struct {
	*webHost
	issuer string
	config string // its path
	key    *ecdsa.PrivateKey
}

func serveUsers(t *testing.T, entries []entry, more ...string) *users {
	t.Helper()
	return serveUsersIn(t, nil, entries, more...)
}

// serveUsersIn is serveUsers with an environment; nil is one of its own.
func serveUsersIn(t *testing.T, env []string, entries []entry, more ...string) *users {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	u := &users{key: key}
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		said := any(map[string]string{"issuer": u.issuer, "jwks_uri": u.issuer + "/keys"})
		if r.URL.Path == "/keys" {
			said = jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "k", Algorithm: "ES256", Use: "sig"}}}
		}
		if err := json.NewEncoder(w).Encode(said); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(provider.Close)
	u.issuer = provider.URL
	gateway := fmt.Sprintf(`"gateway": {"issuers": [%q], "audience": "tests", "session_idle": "0s"}`, u.issuer)
	u.config = mcptest.Config(t, document(entries, append(more, gateway)...))
	u.webHost = serveHTTPIn(t, env, u.config)
	return u
}

// client returns a host of a user, before its handshake.
func (u *users) client(user, path string) *mcptest.Client {
	u.t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: u.key}, (&jose.SignerOptions{}).WithHeader("kid", "k"))
	if err != nil {
		u.t.Fatal(err)
	}
	signed, err := signer.Sign(fmt.Appendf(nil, `{"iss":%q,"aud":"tests","sub":%q,"exp":%d}`, u.issuer, user, time.Now().Add(time.Hour).Unix()))
	if err != nil {
		u.t.Fatal(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		u.t.Fatal(err)
	}
	c := mcptest.NewClient(u.t, u.url+path)
	c.Header.Set("Authorization", "Bearer "+token)
	return c
}

// postStateless sends a request of the stateless era, as a host that follows tasks and answers
// questions. Its params lack _meta.
func postStateless(c *mcptest.Client, method, name, params string) mcptest.Reply {
	c.Header.Set("Mcp-Protocol-Version", stateless)
	c.Header.Set("Mcp-Method", method)
	c.Header.Set("Mcp-Name", name)
	meta := mcptest.ModernMeta(`{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}`)
	return c.Post(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s,%s`, method, meta, strings.TrimPrefix(params, "{")) + "}")
}

func toolCall(id int, tool string, input any) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":%s}`, id, useParams(tool, input))
}

// asking calls a tool that asks its host. The host answers in a request of its own after
// before has returned. asking returns the question and the answer to the call.
func asking(t *testing.T, c *mcptest.Client, id int, tool, input, answer string, before func(question mcptest.Message)) (question, got mcptest.Message) {
	t.Helper()
	messages, stop := c.Stream(http.MethodPost, toolCall(id, tool, input))
	defer stop()
	for got = range messages {
		if got.IsAnswer() {
			return question, got
		}
		if got.Method == "" || got.ID == nil {
			continue
		}
		if question = got; before != nil {
			before(question)
		}
		if r := c.Post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, question.ID, answer)); r.Status != http.StatusAccepted {
			t.Errorf("an answer: %d %s", r.Status, r.Body)
		}
	}
	t.Fatalf("%s was not answered", tool)
	return question, got
}

// A user sees nothing of another user's questions, notifications, parked calls, results and
// tasks, and cannot change them, even if he guesses every name.
func TestUsersDoNotSeeEachOther(t *testing.T) {
	t.Parallel()
	const secret = "only-for-ann"
	files := fake(t, "files").with("tool_overrides", map[string]any{"big": map[string]int{"max_output_chars": 400}})
	jobs := fake(t, "jobs", "-era", "new", "-tasks")
	run := serveUsers(t, []entry{files, jobs})
	ann, bob := run.client("ann", "/mcp"), run.client("bob", "/mcp")
	annOnce, bobOnce := run.client("ann", "/mcp"), run.client("bob", "/mcp")
	ann.Initialize(handshake, `{"elicitation":{}}`)
	bob.Initialize(handshake, `{"elicitation":{}}`)
	var seen []string // by bob
	bobs := func(r mcptest.Reply) mcptest.Reply {
		t.Helper()
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		seen = append(seen, r.Body)
		return r
	}
	refused := func(what string, status int, r mcptest.Reply) {
		t.Helper()
		if bobs(r); r.Status != status || status == http.StatusOK && !r.Last().IsError() {
			t.Errorf("%s: got %d %s", what, r.Status, r.Body)
		}
	}
	for _, c := range []*mcptest.Client{ann, bob} {
		c.Call("logging/setLevel", `{"level":"debug"}`)
		c.Call("resources/list", nil)
	}
	anns, _ := ann.Listen()
	told, _ := bob.Listen()

	// A question, its answer, its progress and its cancellation are ann's.
	question := ask("elicitation/create", `{"message":"`+secret+`","requestedSchema":{"type":"object","properties":{}},"_meta":{"progressToken":"t"}}`)
	answer := func(who string) string { return `{"action":"accept","content":{"who":"` + who + `"}}` }
	_, got := asking(t, ann, 77, "files/ask", question, answer(secret), func(q mcptest.Message) {
		token := q.Member("_meta", "progressToken")
		stolen := run.client("bob", "/mcp")
		stolen.Session = ann.Session
		for _, c := range []*mcptest.Client{bob, stolen} {
			for _, line := range []string{
				fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, q.ID, answer("bob")),
				fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1,"message":"of bob"}}`, token),
				`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77}}`,
			} {
				want := http.StatusAccepted // accepted as about his own session, where it matches nothing
				if c != bob {
					want = http.StatusNotFound
				}
				refused(line, want, c.Post(line))
			}
		}
		refused("a request in her session", 404, stolen.Post(toolCall(1, "files/echo", `{}`)))
		refused("the stream of her session", 404, stolen.Do(t.Context(), http.MethodGet, ""))
		refused("the end of her session", 404, stolen.Do(t.Context(), http.MethodDelete, ""))
	})
	if !strings.Contains(got.Text(), secret) {
		t.Errorf("she was answered %s", got.Raw)
	}
	if got := ann.Call("tools/call", useParams("files/received", `{"n":100}`)); !strings.Contains(got.Raw, secret) || strings.Contains(got.Raw, "bob") {
		t.Errorf("the server was told %s", got.Raw)
	}

	// Notifications of her call, progress, and its events.
	for range 20 { // until her streams have numbers that his do not
		ann.Call("ping", nil)
	}
	if r := ann.Post(toolCall(78, "files/log", `{"level":"error","data":"`+secret+`"}`)); !strings.Contains(r.Body, "notifications/message") {
		t.Errorf("she was told %s", r.Body)
	}
	r := ann.Post(toolCall(79, "files/notify", `{"method":"notifications/x","params":{"for":"`+secret+`"}}`))
	ids := regexp.MustCompile(`(?m)^id: (\S+)$`).FindAllStringSubmatch(r.Body, -1)
	if len(ids) == 0 || !strings.Contains(r.Body, "notifications/x") {
		t.Fatalf("she was told %s", r.Body)
	}
	for _, id := range ids {
		again := run.client("bob", "/mcp")
		again.Session = bob.Session
		again.Header.Set("Last-Event-ID", id[1])
		refused("her event "+id[1], 400, again.Do(t.Context(), http.MethodGet, ""))
	}

	// The rest of a large result.
	m := ann.Call("tools/call", useParams("files/big", `{"bytes":4000}`))
	handle := regexp.MustCompile(`\\"result\\": \\"([a-z0-9]+)\\"`).FindStringSubmatch(m.Raw)
	if handle == nil {
		t.Fatalf("no handle in %s", m.Raw)
	}
	rest := func(id int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"discover_tool","arguments":{"result":%q}}}`, id, handle[1])
	}
	refused("the rest of her result", 200, bob.Post(rest(2)))
	if r := ann.Post(rest(80)); r.Last().IsError() {
		t.Errorf("the rest of her result: %s", r.Body)
	}

	// A call that waits for its host's next request.
	parking := func(more string) string {
		return `{"name":"use_tool","arguments":{"tool_name":"files/ask","tool_input":` + question + `}` + more + `}`
	}
	state := postStateless(annOnce, "tools/call", "use_tool", parking("")).Last().Member("requestState")
	if state == nil {
		t.Fatal("the call is not parked")
	}
	next := func(who string) string {
		return parking(`,"requestState":` + string(state) + `,"inputResponses":{"question-1":` + answer(who) + `}`)
	}
	refused("her parked call", 400, postStateless(bobOnce, "tools/call", "use_tool", next("bob")))
	if m := postStateless(annOnce, "tools/call", "use_tool", next(secret)).Last(); !strings.Contains(m.Text(), secret) {
		t.Errorf("her parked call: %s", m.Raw)
	}

	// A task.
	m = postStateless(annOnce, "tools/call", "use_tool", `{"name":"use_tool","arguments":{"tool_name":"jobs/confirm_delete","tool_input":{}}}`).Last()
	id := string(m.Member("taskId"))
	if id == "" {
		t.Fatalf("no task: %s", m.Raw)
	}
	about := `{"taskId":` + id
	mcptest.Eventually(t, "the task asks", func() bool {
		return strings.Contains(postStateless(annOnce, "tasks/get", "", about+"}").Body, `"confirm"`)
	})
	for method, more := range map[string]string{"tasks/get": "}", "tasks/update": `,"inputResponses":{"confirm":` + answer("bob") + `}}`, "tasks/cancel": "}"} {
		refused("her task, "+method, 400, postStateless(bobOnce, method, "", about+more))
	}
	bobOnce.Header.Set("Mcp-Method", "subscriptions/listen")
	listening, stop := bobOnce.Stream(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{`+
		mcptest.ModernMeta(`{"extensions":{"io.modelcontextprotocol/tasks":{}}}`)+`,"notifications":{"taskIds":[`+id+`]}}}`)
	if ack := <-listening; ack.Method != "notifications/subscriptions/acknowledged" || strings.Contains(ack.Raw, strings.Trim(id, `"`)) {
		t.Errorf("bob listens to her task: %s", ack.Raw)
	}
	stop()
	if r := postStateless(annOnce, "tasks/get", "", about+"}"); !strings.Contains(r.Body, `"input_required"`) {
		t.Errorf("her task: %s", r.Body)
	}

	// HTTP with SSE.
	sse := run.client("ann", "/mcp/files")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, sse.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = sse.Header.Clone()
	req.Header.Set("Accept", "text/event-stream")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var endpoint string
	for lines := bufio.NewScanner(resp.Body); endpoint == "" && lines.Scan(); {
		endpoint, _ = strings.CutPrefix(lines.Text(), "data: ")
		if !strings.Contains(endpoint, "sessionId=") {
			endpoint = ""
		}
	}
	refused("her HTTP with SSE", 404, run.client("bob", endpoint).Post(toolCall(1, "echo", `{}`)))

	// Subscriptions. His last update shows that he got none before.
	const hers, his = `{"uri":"fake://files/text"}`, `{"uri":"fake://files/blob"}`
	ann.Call("resources/subscribe", hers)
	ann.Call("tools/call", useParams("files/touch", hers))
	waitUpdated(t, anns, "files/text")
	bob.Call("resources/subscribe", his)
	bob.Call("tools/call", useParams("files/touch", his))
	seen = append(seen, waitUpdated(t, told, "files/blob")...)
	for _, text := range seen {
		if strings.Contains(text, secret) || strings.Contains(text, "files/text") {
			t.Errorf("bob has seen %s", text)
		}
	}
}

// The requestState of a server of the stateless era is valid once, for one user and one
// request. No other use reaches the server.
func TestStateOfANewServerIsForOneRequest(t *testing.T) {
	t.Parallel()
	files := fake(t, "files", "-era", "new")
	run := serveUsers(t, []entry{files})
	ann, bob := run.client("ann", "/mcp"), run.client("bob", "/mcp")
	call := func(c *mcptest.Client, message, more string) mcptest.Reply {
		question := ask("elicitation/create", fmt.Sprintf(`{"message":%q,"requestedSchema":{"type":"object","properties":{}}}`, message))
		return postStateless(c, "tools/call", "use_tool", `{"name":"use_tool","arguments":{"tool_name":"files/ask","tool_input":`+question+`}`+more+`}`)
	}
	asked := call(ann, "?", "").Last()
	state, ok := asked.Member("requestState"), asked.Member("inputRequests", "ask é") != nil
	if !ok || len(state) < 3 || strings.Contains(asked.Raw, "opaque") {
		t.Fatalf("she was asked %s", asked.Raw)
	}
	with := func(state, who string) string {
		return fmt.Sprintf(`,"requestState":%s,"inputResponses":{"ask é":{"action":"accept","content":{"who":%q}}}`, state, who)
	}
	refused := func(what string, r mcptest.Reply) {
		t.Helper()
		if r.Status != http.StatusBadRequest || !strings.Contains(r.Body, "-32602") {
			t.Errorf("%s: got %d %s", what, r.Status, r.Body)
		}
	}
	middle := len(state) / 2
	changed := string(state[:middle]) + string(state[middle]^1) + string(state[middle+1:])
	refused("her state, by bob", call(bob, "?", with(string(state), "bob")))
	refused("a changed state", call(ann, "?", with(changed, "changed")))
	refused("the server's own state", call(ann, "?", with(`"opaque <state> é"`, "own")))
	refused("other arguments", call(ann, "!", with(string(state), "other")))
	if m := call(ann, "?", with(string(state), "ann")).Last(); m.Error != nil || !strings.Contains(m.Text(), "ann") {
		t.Errorf("she was answered %s", m.Raw)
	}
	refused("the state again", call(ann, "?", with(string(state), "again")))
	received := postStateless(ann, "tools/call", "use_tool", `{"name":"use_tool","arguments":{"tool_name":"files/received","tool_input":{"n":100}}}`).Last().Text()
	if n := strings.Count(received, "inputResponses"); n != 1 {
		t.Errorf("the server had %d requests with answers: %s", n, received)
	}
}

// waitUpdated returns what comes on a stream up to the update of a resource.
func waitUpdated(t *testing.T, messages <-chan mcptest.Message, uri string) (came []string) {
	t.Helper()
	for {
		select {
		case m, ok := <-messages:
			if !ok {
				t.Fatalf("the stream ended after %q", came)
			}
			if came = append(came, m.Raw); m.Method == "notifications/resources/updated" && strings.Contains(m.Raw, uri) {
				return came
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s was not updated, only %q came", uri, came)
		}
	}
}
