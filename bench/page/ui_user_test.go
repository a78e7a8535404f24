//go:build e2e

package page

import (
	"fmt"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// A user of a gateway gives the page his token, and sees his servers, what they need of him, and his calls. He keeps
// a value and removes it. The page shows no value, and keeps the token nowhere.
func TestUIOfAUser(t *testing.T) {
	axe := axeCore(t)
	dir := t.TempDir()
	config := filepath.Join(dir, "mcp.json")
	text := fmt.Sprintf(`{"mcp": {"files": {"command": %s, "args": ["-name", "files"], "description": %s},
		"wiki": {"command": %[1]s, "isolation": "principal", "description": "Pages.", "env": {"KEY": "${user:WIKI_KEY}"}}}, "gateway": {"token": "t0ken-CANARY"}, "activity": {}}`, quote(mcptest.Fake(t)), quote(hostile))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	run := mcptest.Run(t, mcptest.HostOptions{Args: []string{mcptest.Dynmcp(t), "serve", "--http", "127.0.0.1:0", "-c", config}, Env: append(private(dir), "DYNMCP_KEYRING=off"), Lingers: true})
	address := regexp.MustCompile(`127\.0\.0\.1:[0-9]+`).FindString(run.WaitStderr("127.0.0.1:"))
	p := openTab(t, "http://"+address+"/credentials")
	p.has("main", "Your token for the gateway")
	enter := func(token string) {
		t.Helper()
		p.fill("#token", token)
		p.press("main button", "Show")
	}
	enter("wrong")
	p.has("[role=alert]", "does not know this token")
	if body := value[string](p, "document.body.textContent"); strings.Contains(body, "wiki") {
		t.Errorf("without a token the page shows %s", body)
	}
	enter("t0ken-CANARY")
	p.has("td", "wiki")
	p.has("td", "\\u{202e}gnp.exe")
	p.has(".due", "needs WIKI_KEY")
	p.has("main", "No calls of yours yet.")
	p.fill("#name", "WIKI_KEY")
	p.fill("#value", "value-CANARY")
	p.press("main button", "Keep")
	p.wait("![...document.querySelectorAll('.due')].length")
	if all := value[string](p, "document.documentElement.outerHTML + location.href + JSON.stringify(localStorage) + JSON.stringify(sessionStorage) + document.cookie"); strings.Contains(all, "CANARY") {
		t.Error("the page shows or keeps a secret")
	}
	if found := promised(p, axe+`; axe.run().then(r => r.violations.map(v => v.id + ": " + v.nodes.map(n => n.html).slice(0, 3).join(" ")).join("\n"))`); found != "" {
		t.Errorf("axe finds %s", found)
	}
	p.keep("user.png")
	p.press("main button", "Remove WIKI_KEY")
	p.has(".due", "needs WIKI_KEY")
	if title := value[string](p, "document.title"); title != "dynmcp: what is yours" || value[int](p, "document.images.length") != 0 {
		t.Errorf("a text became markup: %q", title)
	}
}

// A user of a gateway logs in to a server from the page, which shows it, and logs out. Pressed twice, it is one login.
func TestUILogsAUserIn(t *testing.T) {
	as, dir := mcptest.StartAuthServer(t, mcptest.AuthOptions{}), t.TempDir()
	front := httptest.NewUnstartedServer(nil) // the address is in the config before the gateway has a port
	base := "http://" + front.Listener.Addr().String()
	config := filepath.Join(dir, "mcp.json")
	text := fmt.Sprintf(`{"mcp": {"wiki": {"url": %q, "credentials": "user", "description": "Pages."}}, "gateway": {"token": "t0ken", "public_url": %q, "allowed_hosts": [%q]}}`, as.URL, base, front.Listener.Addr())
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	run := mcptest.Run(t, mcptest.HostOptions{Args: []string{mcptest.Dynmcp(t), "serve", "--http", "127.0.0.1:0", "-c", config}, Env: append(private(dir), "DYNMCP_KEYRING=off"), Lingers: true})
	gateway, err := url.Parse("http://" + regexp.MustCompile(`127\.0\.0\.1:[0-9]+`).FindString(run.WaitStderr("127.0.0.1:")))
	if err != nil {
		t.Fatal(err)
	}
	front.Config.Handler = httputil.NewSingleHostReverseProxy(gateway)
	front.Start()
	t.Cleanup(front.Close)
	p := openTab(t, base+"/credentials")
	p.fill("#token", "t0ken")
	p.press("main button", "Show")
	p.has(".due", "not logged in")
	twice := `Promise.all([1, 2].map(() => ask("/login/wiki", "POST"))).then(all => all[0].address === all[1].address)`
	if same := promised(p, `(`+twice+`).then(String)`); same != "true" {
		t.Errorf("two requests at once are one login: %s", same)
	}
	p.press("main button", "Log in to wiki")
	p.has("main a", "Log in to wiki")
	if !value[bool](p, "document.activeElement.tagName === 'A'") {
		t.Error("the focus is not at the link")
	}
	browser := openTab(t, value[string](p, "document.querySelector('main a').href"))
	browser.has("h1, body", "Log in to wiki")
	browser.press("a", "Log in")
	p.has(".ok", "logged in")
	p.press("main button", "Log out of wiki")
	p.has(".due", "not logged in")
}
