package credentials

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/activity"
	"github.com/dynmcp/dynmcp/internal/cli/record"
	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/gateway"
	"github.com/dynmcp/dynmcp/transports/oauth/logins"
)

type aStore struct {
	module.Logins

	store *logins.Store
}

func (l aStore) Store() (*logins.Store, error) { return l.store, nil }

// A user's page has his values, logins and calls, and nothing of another: also not of one who has the
// same name at another issuer, or whose name is the subject of the user.
func TestPageIsOfItsUserAlone(t *testing.T) {
	dir := t.TempDir()
	sections := []schema.Section{schema.SectionOf[record.Keys]("activity")}
	cfg, err := schema.ReadFiles(t.Context(), []string{mcptest.Config(t, fmt.Sprintf(`{"activity": {"dir": %q}, "mcp": {
		"wiki": {"url": "http://127.0.0.1:9/mcp", "description": "Pages.", "credentials": "user", "headers": {"X-Key": "${user:WIKI_KEY}"}},
		"clock": {"command": "clock", "description": "Tells the time."}}}`, dir))}, schema.LoadOptions{Sections: sections}).Load()
	if err != nil {
		t.Fatal(err)
	}
	store := logins.NewFiles(filepath.Join(t.TempDir(), "logins"))
	users := []string{"https://a.example alice", "https://b.example alice", "alice", "https://a.example bob"}
	record, err := activity.Open(activity.LogOptions{Dir: dir, Bytes: 1 << 20, Age: time.Hour, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	for i, user := range users {
		if _, err := store.SetValue(t.Context(), user, fmt.Sprintf("VALUE_%d", i), fmt.Sprintf("s3cret-%d", i)); err != nil {
			t.Fatal(err)
		}
		record.Add(activity.Entry{Line: activity.Line{Time: time.Now(), Session: "s", Principal: user, Server: "wiki", Tool: fmt.Sprintf("tool_%d", i), Outcome: "done", Kind: "ok"}, User: user})
	}
	record.Close()
	p := &route{logins: aStore{store: store}}
	p.cfg.Store(cfg)
	for i, user := range users {
		w := httptest.NewRecorder()
		p.ServeOwn(w, httptest.NewRequest(http.MethodGet, "/credentials?page=1", nil), user)
		var o overview
		if err := json.Unmarshal(w.Body.Bytes(), &o); err != nil || w.Code != http.StatusOK {
			t.Fatalf("%q: %d %v %s", user, w.Code, err, w.Body)
		}
		if o.User != user || len(o.Names) != 1 || o.Names[0] != fmt.Sprintf("VALUE_%d", i) || len(o.Calls) != 1 || o.Calls[0].Tool != fmt.Sprintf("tool_%d", i) {
			t.Errorf("the page of %q has %s", user, w.Body)
		}
		if strings.Contains(w.Body.String(), "s3cret") {
			t.Errorf("the page of %q has a value: %s", user, w.Body)
		}
		if len(o.Servers) != 2 || !o.Recorded || o.Servers[0].Name != "wiki" || !o.Servers[0].Login || len(o.Servers[0].Values) != 1 || o.Servers[1].Login {
			t.Errorf("the servers of %q are %+v", user, o.Servers)
		}
	}
}

// A browser without a token gets a page that holds nothing, and that only its own script can use. What is not a
// browser is asked for its token, and so is a browser on other paths, of other methods, and with a wrong token.
func TestPageNeedsNoToken(t *testing.T) {
	p := &route{}
	g := gateway.New(gateway.GatewayOptions{Own: []gateway.OwnRoute{p}, Token: "t0ken", AllowedHosts: []string{"127.0.0.1"}, MaxRequestBytes: 1 << 20, MaxResponseBytes: 1 << 20, MaxConnections: 10})
	server := httptest.NewServer(g)
	defer server.Close()
	for _, c := range []struct {
		method, path, accept, authorization, host string
		want                                      int
	}{
		{http.MethodGet, "/credentials", "text/html,*/*", "", "", http.StatusOK},
		{http.MethodGet, "/credentials", "application/json", "", "", http.StatusUnauthorized},
		{http.MethodGet, "/credentials", "text/html", "Bearer wrong", "", http.StatusUnauthorized},
		{http.MethodGet, "/credentials/x", "text/html", "", "", http.StatusUnauthorized},
		{http.MethodPut, "/credentials", "text/html", "", "", http.StatusUnauthorized},
		{http.MethodGet, "/mcp", "text/html", "", "", http.StatusUnauthorized},
		{http.MethodGet, "/credentials", "text/html", "", "evil.example", http.StatusForbidden},
	} {
		r, err := http.NewRequestWithContext(t.Context(), c.method, server.URL+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", c.accept)
		if c.authorization != "" {
			r.Header.Set("Authorization", c.authorization)
		}
		if c.host != "" {
			r.Host = c.host
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != c.want {
			t.Errorf("%+v: status %d", c, resp.StatusCode)
		}
		policy := resp.Header.Get("Content-Security-Policy")
		if c.want == http.StatusOK && (!strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "script-src 'sha256-") || !strings.Contains(policy, "frame-ancestors 'none'")) {
			t.Errorf("the policy is %q", policy)
		}
	}
	for _, part := range []string{"innerHTML", "insertAdjacent", "document.write", "eval(", "localStorage", " style="} {
		if text, _ := page(); strings.Contains(text, part) {
			t.Errorf("the page has %q", part)
		}
	}
}
