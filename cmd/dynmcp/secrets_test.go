package main_test

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// Secrets that the config takes from variables, headers and tokens appear nowhere, however
// upstreams repeat them.

// canaries are variables of the config, each used in another place. Their
// values are nothing that a program would print by itself.
type canaries map[string]string

func newCanaries(names ...string) canaries {
	all := canaries{}
	for i, name := range names {
		all[name] = fmt.Sprintf("canary%d/ä\"+%s", i, strings.Repeat(string(rune('a'+i)), 4))
	}
	return all
}

func (c canaries) environ() []string {
	var env []string
	for name, value := range c {
		env = append(env, name+"="+value)
	}
	return env
}

// mustHide fails the test if text holds a canary in any form.
func (c canaries) mustHide(t *testing.T, where, text string) {
	t.Helper()
	for name, value := range c {
		for _, form := range []string{
			value, url.QueryEscape(value), url.PathEscape(value), hex.EncodeToString([]byte(value)), strings.Trim(quote(value), `"`), strings.Trim(strconv.Quote(value), `"`),
			base64.StdEncoding.EncodeToString([]byte(value))[:20], value[:8],
		} {
			if at := strings.Index(text, form); at >= 0 {
				t.Errorf("%s shows %s as %q: …%s…", where, name, form, text[max(0, at-200):min(len(text), at+200)])
				break
			}
		}
	}
}

// echoes answers every request in a way of its own, with all that it was sent.
var echoes = map[string]func(w http.ResponseWriter, sent string){
	"page":   func(w http.ResponseWriter, sent string) { fmt.Fprint(w, "<html>", sent) },
	"status": func(w http.ResponseWriter, sent string) { http.Error(w, sent, http.StatusInternalServerError) },
	"login":  func(w http.ResponseWriter, sent string) { http.Error(w, sent, http.StatusUnauthorized) },
	"broken": func(w http.ResponseWriter, sent string) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, "{", sent)
	},
	"refusal": func(w http.ResponseWriter, sent string) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":%s}}`, quote(sent))
	},
	"encoded": func(w http.ResponseWriter, sent string) {
		http.Error(w, base64.StdEncoding.EncodeToString([]byte(sent)), http.StatusInternalServerError)
	},
	"redirect": func(w http.ResponseWriter, sent string) {
		w.Header().Set("Location", "http://127.0.0.2:1/?sent="+url.QueryEscape(sent))
		w.WriteHeader(http.StatusTemporaryRedirect)
	},
}

// serveEchoes serves the echoes on paths with their names. It repeats the whole request, or the
// header that X-Show names.
func serveEchoes(t *testing.T) *httptest.Server {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent, err := httputil.DumpRequest(r, true)
		if err != nil {
			t.Error(err)
		}
		text := string(sent)
		if header := r.Header.Get("X-Show"); header != "" {
			text = r.Header.Get(header)
		}
		for name, echo := range echoes {
			if strings.HasPrefix(r.URL.Path, "/"+name) {
				echo(w, text)
			}
		}
	}))
	t.Cleanup(server.Close)
	return server
}

func TestSecretsAreNotShown(t *testing.T) {
	t.Parallel()
	c := newCanaries("ENV", "LEAKED", "ARG", "COMMAND", "CWD", "BEARER", "API_KEY", "COOKIE", "QUERY", "USERINFO", "PATH_PART", "SPOKEN", "CODED",
		"CLIENT_SECRET", "GATEWAY", "LONG_LINE")
	c["USERINFO"] = "canary-that-fits-a-url"
	var servers []entry
	add := func(name string, fields map[string]any) {
		fields["description"] = "Does " + name
		servers = append(servers, entry{name: name, fields: fields})
	}
	add("leaks", map[string]any{"command": mcptest.Fake(t), "args": []string{"-fault", "exit-leak:TOKEN"}, "env": map[string]string{"TOKEN": "${LEAKED}"}})
	add("argument", map[string]any{"command": mcptest.Fake(t), "args": []string{"${ARG}"}})
	add("command", map[string]any{"command": "/nowhere/${COMMAND}"})
	add("directory", map[string]any{"command": mcptest.Fake(t), "cwd": "/nowhere/${CWD}"})
	add("works", map[string]any{"command": mcptest.Fake(t), "env": map[string]string{"TOKEN": "${ENV}", "SPOKEN": "${SPOKEN}", "CODED": "${CODED}", "LONG": "${LONG_LINE}"}})
	remote := serveEchoes(t)
	for name := range echoes {
		for header, value := range map[string]string{"Authorization": "Bearer ${BEARER}", "X-Api-Key": "${API_KEY}", "Cookie": "session=${COOKIE}", "": ""} {
			fields := map[string]any{"url": remote.URL + "/" + name + "/?key=${QUERY}&part=${PATH_PART}"}
			if header != "" {
				fields["headers"] = map[string]string{header: value, "X-Show": header}
			}
			add(strings.ToLower(name+header), fields)
		}
	}
	add("userinfo", map[string]any{"url": strings.Replace(nobodyListens(t), "http://", "http://user:${USERINFO}@", 1)})
	add("oauth", map[string]any{"url": remote.URL + "/login", "auth": map[string]string{"client_id": "x", "client_secret": "${CLIENT_SECRET}"}})
	config := mcptest.Config(t, document(servers, `"gateway": {"token": "${GATEWAY}"}`))
	host := mcptest.Start(t, mcptest.HostOptions{Args: []string{mcptest.Dynmcp(t), "-c", config, "--log-level", "debug"}, Env: c.environ()})
	greet(host)

	for _, s := range servers {
		for range 3 {
			c.mustHide(t, "load_mcp "+s.name, string(load(host, s.name).Raw))
		}
		c.mustHide(t, "use_tool "+s.name, string(use(host, s.name+"/tool", nil).Raw))
	}
	if got := use(host, "works/env", `{"name":"TOKEN"}`).Text(); got != c["ENV"] {
		t.Errorf("a result is not what the upstream answered: %q", got)
	}
	spoken := []string{c["SPOKEN"], base64.StdEncoding.EncodeToString([]byte("x:" + c["CODED"])), strings.Repeat("x", 4<<10-4) + c["LONG_LINE"]}
	use(host, "works/stderr", map[string]string{"text": strings.Join(spoken, "\n")})
	crash := use(host, "works/crash", nil)
	if !strings.Contains(crash.Text(), "[redacted]") {
		t.Errorf("the failure does not show what the server said last: %s", crash.Raw)
	}
	c.mustHide(t, "a failure", string(crash.Raw))
	end(t, host)
	c.mustHide(t, "stderr", host.Stderr())
}

// A config that is wrong where a variable came in says so without its value.
func TestSecretsAreNotShownInErrorsOfTheConfig(t *testing.T) {
	t.Parallel()
	c := newCanaries("WRONG", "COMMAND")
	for _, config := range []string{
		`{"mcp": {"a": {"command": "x", "transport": "${WRONG}"}}}`,
		`{"mcp": {"a": {"command": "x", "env": {"KEY": "${WRONG}"}, "unknown": "${WRONG}"}}}`,
		`{"mcp": {"a": {"url": "${WRONG}"}}}`,
		`{"mcp": {"a": {"command": "/nowhere/${COMMAND}"}}}`,
	} {
		host := mcptest.Start(t, mcptest.HostOptions{
			Args: []string{mcptest.Dynmcp(t), "-c", mcptest.Config(t, config), "--strict", "--log-level", "debug"}, Env: c.environ(),
		})
		if code := host.Wait(); code != 1 {
			t.Errorf("%s: got exit status %d, want 1", config, code)
		}
		c.mustHide(t, config, host.Stderr())
	}
}
