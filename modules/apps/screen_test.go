package apps

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/wire"
)

// send returns the status, a header and the body of an answer.
func send(t *testing.T, method, url, body string, headers ...string) (status int, h http.Header, text string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
			continue
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(all)
}

// addressOf returns the address at the end of a result, "" if there is none.
func addressOf(m wire.Message) (address string) {
	for item := range wire.Elements(wire.Get(m.Result, "content")) {
		text, _ := wire.Text(wire.Get(item, "text"))
		address = regexp.MustCompile(`http://127\.0\.0\.1:\d+/[A-Z0-9]+/`).FindString(text)
	}
	return address
}

// A host that shows no views gets the address of a page, whose view calls its own server only.
func TestPageOfAView(t *testing.T) {
	servers := []*server{{name: "a", tools: map[string]string{"show": visible[0], "poll": visible[1]}}, {name: "b", tools: map[string]string{"show": visible[0], "wipe": visible[1]}}}
	h := serve(t, "", servers)(`{}`)
	h.names()
	address := addressOf(h.ask("tools/call", `{"name":"use_tool","arguments":{"tool_name":"a/show","tool_input":{"nonce":1}}}`))
	if address == "" {
		t.Fatal("the result has no address")
	}
	servers[0].take()
	status, header, text := send(t, "GET", address, "")
	if status != http.StatusOK || !strings.Contains(text, `src="page.js"`) || !strings.Contains(header.Get("Content-Security-Policy"), "default-src 'none'; script-src 'self';") {
		t.Errorf("got %d %s %s", status, header, text)
	}
	_, _, text = send(t, "GET", address+"data", "")
	data := wire.Get([]byte(text), "result")
	if got := string(wire.Get(data, "arguments")); got != `{"nonce":1}` || string(wire.Get(data, "result", "structuredContent", "server")) != `"a"` || string(wire.Get(data, "permissions")) != `{"camera":{}}` {
		t.Errorf("got %s", data)
	}
	frame, _ := wire.Text(wire.Get(data, "frame"))
	_, header, page := send(t, "GET", frame, "")
	csp := header.Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'; ", "; connect-src https://a.example; ", "; sandbox allow-scripts allow-forms", "; frame-ancestors " + address[:strings.LastIndex(address[:len(address)-1], "/")] + ";"} {
		if !strings.Contains(csp, want) {
			t.Errorf("got %q, want %q", csp, want)
		}
	}
	if status, _, _ := send(t, "GET", frame, ""); status != http.StatusNotFound {
		t.Errorf("once more: got %d", status)
	}
	_, rest, _ := strings.Cut(page, `{view:"`)
	token, _, _ := strings.Cut(rest, `"`)
	origin := []string{"Content-Type", "application/json", "Origin", address[:strings.LastIndex(address[:len(address)-1], "/")]}
	call := func(request string, headers ...string) string {
		t.Helper()
		_, _, text := send(t, "POST", address+"call", request, headers...)
		return text
	}
	poll := fmt.Sprintf(`{"method":"tools/call","params":{"name":"view_call","arguments":{"view":%q,"tool_name":"poll","tool_input":{"nonce":2}}}}`, token)
	if got := call(poll, origin...); !strings.Contains(got, `"server":"a"`) {
		t.Errorf("got %s", got)
	}
	if got := servers[0].take(); !slices.Equal(got, []string{"poll 2"}) {
		t.Errorf("a was called: %q", got)
	}
	for request, want := range map[string]string{
		strings.Replace(poll, "poll", "wipe", 1):                          `a has no tool \"wipe\"`,
		`{"method":"tools/call","params":{"name":"use_tool"}}`:            "views do not call tools/call",
		`{"method":"prompts/get","params":{"name":"x"}}`:                  "views do not call prompts/get",
		`{"method":"tools/call"`:                                          "this is no request",
		`{"method":"resources/read","params":{"uri":"ui://c+card/view"}}`: "Unknown resource",
	} {
		if got := call(request, origin...); !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %s", request, got, want)
		}
	}
	for _, headers := range [][]string{nil, {"Content-Type", "application/json"}, {"Content-Type", "application/json", "Origin", "null"}, {"Content-Type", "text/plain", "Origin", origin[3]}} {
		if got := call(poll, headers...); !strings.Contains(got, "only the page itself calls") {
			t.Errorf("%q: got %s", headers, got)
		}
	}
	if status, _, _ := send(t, "GET", address, "", "Host", "evil.example"); status != http.StatusForbidden {
		t.Errorf("another name of this machine: got %d", status)
	}
	if status, _, _ := send(t, "GET", address[:len(address)-2]+"/", ""); status != http.StatusNotFound {
		t.Errorf("another code: got %d", status)
	}
	if got := append(servers[0].take(), servers[1].take()...); got != nil {
		t.Errorf("what was refused called %q", got)
	}
}

// A page is not offered to hosts that show views, nor if it is off. The oldest pages go.
func TestPagesAreFew(t *testing.T) {
	servers := func() []*server {
		return []*server{{name: "a", tools: map[string]string{"show": visible[0]}}, {name: "b", tools: map[string]string{}}}
	}
	use := `{"name":"use_tool","arguments":{"tool_name":"a/show","tool_input":{}}}`
	for _, test := range []struct{ members, capabilities string }{{"", shows}, {`"apps":"off",`, `{}`}} {
		h := serve(t, test.members, servers())(test.capabilities)
		h.names()
		if got := addressOf(h.ask("tools/call", use)); got != "" {
			t.Errorf("%v: got %s", test, got)
		}
	}
	h := serve(t, "", servers())(`{}`)
	h.names()
	var all []string
	for range maxShown + 1 {
		all = append(all, addressOf(h.ask("tools/call", use)))
	}
	if status, _, _ := send(t, "GET", all[0], ""); status != http.StatusNotFound {
		t.Errorf("the oldest: got %d", status)
	}
	if status, _, _ := send(t, "GET", all[1], ""); status != http.StatusOK {
		t.Errorf("the second: got %d", status)
	}
}

// What a server says of its domains cannot end a directive of the CSP.
func TestPolicyOf(t *testing.T) {
	got := policyOf(map[string][]string{"connectDomains": {"https://*.a.example:8443", "https://a; script-src *", "'self'", "*", "wss://b/x"}})
	if want := "connect-src https://*.a.example:8443 wss://b/x; frame-src 'none'"; !strings.Contains(got, want) || strings.Contains(got, "script-src *") {
		t.Errorf("got %s", got)
	}
}
