package apps

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/wire"
)

var (
	visible = []string{`["model","app"]`, `["app"]`, `["model"]`}
	random  = rand.New(rand.NewPCG(1, 2))
)

// fiveServers returns servers that share names of tools.
func fiveServers() (all []*server) {
	for i := range 5 {
		s := &server{name: string(rune('a' + i)), tools: map[string]string{"show": visible[0], "own_" + string(rune('a'+i)): visible[i%2]}}
		for range 6 {
			s.tools[fmt.Sprintf("t%d", random.IntN(7))] = visible[random.IntN(len(visible))]
		}
		all = append(all, s)
	}
	return all
}

// Of 10,000 calls by views of five servers with equal URIs and names, each reaches the server whose view
// calls, and only a tool that is for views. No other token is accepted, and no name reaches a tool that
// only views call.
func TestCallsOfViewsReachTheirServers(t *testing.T) {
	for _, expose := range []string{"discover", "direct"} {
		t.Run(expose, func(t *testing.T) { callAtRandom(t, expose) })
	}
}

func callAtRandom(t *testing.T, expose string) {
	servers := fiveServers()
	connect := serve(t, fmt.Sprintf(`"expose":[%q],`, expose), servers)
	h, other := connect(shows), connect(shows)
	h.names()
	tokens, foreign := map[string]string{}, map[string]string{}
	for _, s := range servers {
		_, tokens[s.name] = h.view(s.name)
		_, foreign[s.name] = other.view(s.name)
	}
	ran := 0
	for i := range 5000 {
		s := servers[random.IntN(len(servers))]
		tool := fmt.Sprintf("t%d", random.IntN(7))
		if random.IntN(4) == 0 {
			tool = "own_" + servers[random.IntN(len(servers))].name
		}
		want, kind := "", random.IntN(10)
		token := tokens[s.name]
		name, arguments := viewCall, ""
		switch kind {
		case 0: // without a token
			name, arguments = tool, fmt.Sprintf(`{"nonce":%d}`, i)
			var of []*server
			for _, o := range servers {
				if o.tools[tool] != "" {
					of = append(of, o)
				}
			}
			if len(of) == 1 && of[0].tools[tool] != visible[1] {
				want = of[0].name
			}
		case 1: // by the name on the direct surface
			name, arguments = s.name+"__"+tool, fmt.Sprintf(`{"nonce":%d}`, i)
			if v := s.tools[tool]; v != "" && v != visible[1] {
				want = s.name
			}
		case 2:
			token = foreign[s.name]
		case 3:
			token = token[:random.IntN(len(token))]
		case 4:
			at := random.IntN(len(token))
			token = token[:at] + string(rune('A'+(token[at]+1)%26)) + token[at+1:]
		default:
			if v := s.tools[tool]; v == visible[0] || v == visible[1] {
				want = s.name
			}
		}
		if arguments == "" {
			arguments = fmt.Sprintf(`{"view":%q,"tool_name":%q,"tool_input":{"nonce":%d}}`, token, tool, i)
			if kind == 4 && token == tokens[s.name] {
				continue
			}
		}
		m := h.ask("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, arguments))
		got, _ := wire.Text(wire.Get(m.Result, "structuredContent", "server"))
		var reached []string
		for _, o := range servers {
			for _, call := range o.take() {
				reached = append(reached, o.name+" "+call)
			}
		}
		var expect []string
		if want != "" {
			ran++
			expect = []string{fmt.Sprintf("%s %s %d", want, tool, i)}
		}
		if !slices.Equal(reached, expect) || got != want {
			t.Fatalf("call %d, kind %d: %s %s of %s reached %q, want %q; the answer is %s %v", i, kind, name, arguments, s.name, reached, expect, m.Result, m.Error)
		}
	}
	if ran < 1000 {
		t.Errorf("only %d calls ran", ran)
	}
}

// A view of one server cannot call another's tool, nor one that is only for the model.
func TestAViewCallsItsServerOnly(t *testing.T) {
	servers := []*server{{name: "a", tools: map[string]string{"show": visible[0], "secret": visible[2]}}, {name: "b", tools: map[string]string{"show": visible[0], "wipe": visible[1]}}}
	h := serve(t, "", servers)(shows)
	h.names()
	_, token := h.view("a")
	for call, want := range map[string]string{
		fmt.Sprintf(`{"name":"view_call","arguments":{"view":%q,"tool_name":"wipe"}}`, token):    `a has no tool "wipe"`,
		fmt.Sprintf(`{"name":"view_call","arguments":{"view":%q,"tool_name":"b__wipe"}}`, token): `a has no tool "b__wipe"`,
		fmt.Sprintf(`{"name":"view_call","arguments":{"view":%q,"tool_name":"secret"}}`, token):  `the tool "secret" of a is not for views`,
		`{"name":"view_call","arguments":{"tool_name":"wipe"}}`:                                  "view_call: the view is not one of this session: read it again",
		`{"name":"b__wipe","arguments":{}}`:                                                      "b__wipe: only the views of b call it, with their tokens",
		`{"name":"wipe","arguments":{}}`:                                                         "wipe: only the views of b call it, with their tokens",
		`{"name":"show","arguments":{}}`:                                                         "show: it is a tool of a and of b, and nothing says which is meant",
	} {
		if m := h.ask("tools/call", call); m.Error == nil || wireMessage(m) != want {
			t.Errorf("%s: got %s %s, want %s", call, m.Result, m.Error, want)
		}
	}
	for _, s := range servers {
		if called := s.take(); called != nil {
			t.Errorf("%s was called: %q", s.name, called)
		}
	}
}

func wireMessage(m wire.Message) string {
	text, _ := wire.Text(wire.Get(m.Error, "message"))
	return text
}

// Tools with a view are listed for hosts that show them, within a size; use_app has the others.
func TestTools(t *testing.T) {
	few := []*server{{name: "a", tools: map[string]string{"show": visible[0], "poll": visible[1]}}, {name: "b", tools: map[string]string{"show": visible[2]}}}
	many := []*server{{name: "a", tools: map[string]string{}}}
	for i := range 30 {
		many[0].tools[fmt.Sprintf("show_%02d", i)] = visible[0]
	}
	for _, test := range []struct {
		name, members, capabilities string
		servers                     []*server
		want                        string
	}{
		{"few", "", shows, few, "discover_tool use_tool a__show b__show view_call"},
		{"off", `"apps":"off",`, shows, few, "discover_tool use_tool"},
		{"no views", "", `{}`, few, "discover_tool use_tool"},
		{"direct", `"expose":["direct"],`, shows, few, "a__poll a__show b__show view_call"},
		{"pinned", `"pin":["a/show"],`, shows, few, "discover_tool use_tool a__show b__show view_call"},
	} {
		names, defs := serve(t, test.members, test.servers)(test.capabilities).names()
		if got := strings.Join(names, " "); got != test.want {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
		if def := defs["a__show"]; test.name == "few" && (wire.Get(def, "outputSchema") != nil || !wire.EqualString(wire.Get(def, "_meta", "ui", "resourceUri"), "ui://a+card/view.html")) {
			t.Errorf("got %s", def)
		}
	}
	h := serve(t, "", many)(shows)
	names, defs := h.names()
	size := 0
	for name, def := range defs {
		if strings.HasPrefix(name, "a__") {
			size += len(def)
		}
	}
	if size > listed || size < listed/2 || !slices.Contains(names, useApp) {
		t.Errorf("%d bytes: %q", size, names)
	}
	m := h.ask("tools/call", `{"name":"use_app","arguments":{"tool_name":"a/show_29","tool_input":{"nonce":7}}}`)
	if got := many[0].take(); !slices.Equal(got, []string{"show_29 7"}) {
		t.Errorf("got %q: %s", got, m.Error)
	}
	if !wire.EqualString(wire.Get(m.Result, "_meta", metaApp, "resourceUri"), viewURI) || !wire.EqualString(wire.Get(m.Result, "_meta", "own"), "show_29") {
		t.Errorf("got %s", m.Result)
	}
}

// The view of use_app may do what its views may, which keep their own needs.
func TestDispatcher(t *testing.T) {
	h := serve(t, "", []*server{{name: "a", tools: map[string]string{"show": visible[0]}}, {name: "b", tools: map[string]string{"show": visible[0]}}})(shows)
	h.names()
	m := h.ask("resources/read", `{"uri":"ui://dynmcp/view"}`)
	want := `{"csp":{"connectDomains":["https://a.example","https://b.example"]},"permissions":{"camera":{}}}`
	for content := range wire.Elements(wire.Get(m.Result, "contents")) {
		if got := string(wire.Get(content, "_meta", "ui")); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	page, _ := h.view("b")
	if !strings.HasPrefix(page, "<!doctype html><script>") || !strings.HasSuffix(page, "</script><title>b</title>") {
		t.Errorf("got %s", page)
	}
	m = h.ask("resources/read", `{"uri":"ui://b+card/view.html"}`)
	if got := string(wire.Get(m.Result, "contents")); !strings.Contains(got, `"connectDomains":["https://b.example"]`) || strings.Contains(got, "a.example") {
		t.Errorf("got %s", got)
	}
	if page, token := serve(t, "", []*server{{name: "a", tools: map[string]string{"show": visible[0]}}, {name: "b", tools: map[string]string{}}})(`{}`).view("a"); token != "" || page != "<!doctype html><title>a</title>" {
		t.Errorf("a host that shows no views got %s", page)
	}
}

// A view for the older bridge of ChatGPT is one: its tool is listed, with its _meta as it is, and its page
// begins with the prologue.
func TestOlderBridge(t *testing.T) {
	servers := []*server{{name: "a", older: true, tools: map[string]string{"show": ""}}, {name: "b", tools: map[string]string{"show": visible[0]}}}
	h := serve(t, "", servers)(shows)
	_, defs := h.names()
	if got := string(wire.Get(defs["a__show"], "_meta")); got != `{"openai/outputTemplate":"ui://a+card/view.html","openai/widgetAccessible":true}` {
		t.Errorf("the tool has %s", got)
	}
	page, token := h.view("a")
	if !strings.HasPrefix(page, "<!doctype html><script>") {
		t.Errorf("the page is %s", page)
	}
	h.ask("tools/call", fmt.Sprintf(`{"name":"view_call","arguments":{"view":%q,"tool_name":"show","tool_input":{"nonce":1}}}`, token))
	if got := servers[0].take(); !slices.Equal(got, []string{"show 1"}) || servers[1].take() != nil {
		t.Errorf("a was called with %q", got)
	}
	m := h.ask("resources/read", `{"uri":"ui://a+card/view.html"}`)
	if got := string(wire.Get(m.Result, "contents")); !strings.Contains(got, `"mimeType":"text/html+skybridge"`) {
		t.Errorf("the page is %s", got)
	}
}

// The text of a long result is cut for the model. What a view needs is not.
func TestLongResults(t *testing.T) {
	tools := map[string]string{"long": visible[0]}
	h := serve(t, `"catalog":{"max_result_chars":1000},`, []*server{{name: "a", tools: tools}, {name: "b", tools: tools}})(shows)
	h.names()
	_, token := h.view("b")
	for call, whole := range map[string]bool{
		`{"name":"b__long","arguments":{}}`:                                                   false,
		`{"name":"use_tool","arguments":{"tool_name":"b/long","tool_input":{}}}`:              false,
		fmt.Sprintf(`{"name":"view_call","arguments":{"view":%q,"tool_name":"long"}}`, token): true,
	} {
		m := h.ask("tools/call", call)
		rows, _ := wire.Text(wire.Get(m.Result, "structuredContent", "rows"))
		if text := len(wire.Get(m.Result, "content")); len(rows) != 4000 || whole != (text > 5000) || !whole && text > 1500 {
			t.Errorf("%s: %d characters of text, %d of rows: %s", call, text, len(rows), m.Error)
		}
	}
}

func TestAtHead(t *testing.T) {
	for html, want := range map[string]string{
		"":                   "X",
		"<p>":                "X<p>",
		"<!doctype html><p>": "<!doctype html>X<p>",
		"\ufeff<!-- a --> <!DOCTYPE html>\n<html lang=en>\n<HEAD class=x><script>1</script>": "\ufeff<!-- a --> <!DOCTYPE html>\n<html lang=en>\n<HEAD class=x>X<script>1</script>",
		"<header>":       "X<header>",
		"<html><body>":   "<html>X<body>",
		"<script></scri": "X<script></scri",
	} {
		if got := atHead(html, "X"); got != want {
			t.Errorf("%q: got %q, want %q", html, got, want)
		}
	}
}
