package ui

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/schema"
)

// The page of a gateway can run only its own scripts, and connect only to its origin. It has the
// views and the API that the mode of the config allows.
func TestPageOfAGateway(t *testing.T) {
	tabs := []module.Tab{{Name: "calls", Script: "views.calls = {};"}, {Script: "parts.add.push();"}, {Name: "live", Live: true, Script: "views.live = {};"}}
	for mode, c := range map[string]struct {
		views string
		api   int // status of a request to the API
		old   int // status of the former address of the views
	}{
		schema.UIOff:    {`data-views="live"`, http.StatusNotFound, http.StatusNotFound},
		schema.UIChange: {`data-views="live servers tools calls decisions add reads"`, http.StatusOK, http.StatusFound},
		"":              {`data-views="live servers tools calls decisions add reads"`, http.StatusOK, http.StatusFound},
	} {
		ask := func(method, path string) *httptest.ResponseRecorder {
			w, r := httptest.NewRecorder(), httptest.NewRequest(method, "http://127.0.0.1"+path, strings.NewReader("{}"))
			r.Header.Set("Content-Type", "application/json")
			gatewayPage(mode, true, tabs).ServeHTTP(w, r)
			return w
		}
		bare := `data-views="servers tools decisions add reads"`
		if mode == schema.UIOff {
			bare = `data-views=""`
		}
		if text := newDocument(nil, true, mode != schema.UIOff).text; !strings.Contains(text, bare) || strings.Contains(text, "views.calls") {
			t.Errorf("mode %q: without tabs of modules there is no %s, or a script of a tab", mode, bare)
		}
		w := ask(http.MethodGet, "/debug")
		policy, body := w.Header().Get("Content-Security-Policy"), w.Body.String()
		for _, part := range []string{"default-src 'none'", "script-src 'sha256-", "style-src 'sha256-", "connect-src 'self'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"} {
			if !strings.Contains(policy, part) {
				t.Errorf("no %q in the policy %s", part, policy)
			}
		}
		for _, part := range []string{"innerHTML", "insertAdjacent", "document.write", "eval(", "https://", " style=", " onclick="} {
			if strings.Contains(body, part) {
				t.Errorf("the page has %q", part)
			}
		}
		if !strings.Contains(body, c.views) || !strings.HasPrefix(body, "<!doctype html>") {
			t.Errorf("mode %q: no %s in the page", mode, c.views)
		}
		if w := ask(http.MethodGet, "/"); w.Code != http.StatusFound || w.Header().Get("Location") != "/debug" {
			t.Errorf("/ leads to %d %s", w.Code, w.Header().Get("Location"))
		}
		for _, c := range []struct {
			method, path string
			want         int
		}{{http.MethodPost, "/api/places", c.api}, {http.MethodGet, "/ui/", c.old}, {http.MethodPost, "/debug", http.StatusMethodNotAllowed}, {http.MethodPost, "/api/login", http.StatusNotFound}} {
			if w := ask(c.method, c.path); w.Code != c.want {
				t.Errorf("mode %q: %s %s: got %d, want %d", mode, c.method, c.path, w.Code, c.want)
			}
		}
	}
}
