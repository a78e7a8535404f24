package gateway

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A page with a token requires it, by either scheme. A page without a token is open to all.
func TestPageRequiresItsToken(t *testing.T) {
	found := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	for _, row := range []struct {
		token, user, password, bearer string
		status                        int
	}{
		{"", "", "", "", 200},
		{"secret", "", "", "", 401},
		{"secret", "", "", "Bearer wrong", 401},
		{"secret", "", "", "Bearer secret", 200},
		{"secret", "any", "wrong", "", 401},
		{"secret", "any", "secret", "", 200},
		{"secret", "secret", "", "", 401},
	} {
		r := httptest.NewRequest("GET", "http://localhost/debug", nil)
		if row.user != "" {
			r.SetBasicAuth(row.user, row.password)
		}
		if row.bearer != "" {
			r.Header.Set("Authorization", row.bearer)
		}
		w := httptest.NewRecorder()
		Local(row.token, found).ServeHTTP(w, r)
		if w.Code != row.status || (w.Header().Get("WWW-Authenticate") != "") != (row.status == 401) {
			t.Errorf("%+v: got %d, %v", row, w.Code, w.Header())
		}
	}
}

// The route of the metrics exists only if there are metrics.
func TestMetricsHaveARoute(t *testing.T) {
	for _, metrics := range []http.Handler{nil, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("up 1\n")) })} {
		tg := newTestGateway(t, GatewayOptions{Metrics: metrics}, nil)
		for _, path := range []string{"/metrics", "/metrics/", "/metric"} {
			a := tg.do("GET", path, "")
			if served := a.status == 200 && a.body == "up 1\n"; served != (metrics != nil && strings.HasPrefix(path, "/metrics")) || !served && a.status != 404 {
				t.Errorf("%s with metrics %t: got %+v", path, metrics != nil, a)
			}
		}
	}
}

// A challenge names the required scopes, if there are any.
func TestAChallengeNamesScopes(t *testing.T) {
	of := newIssuer(t)
	for _, scopes := range [][]string{nil, {"tools", "more"}} {
		tg := newTestGateway(t, GatewayOptions{OAuth: &OAuth{Issuers: []string{of.url}, Audience: "tests", Scopes: scopes}}, nil)
		a := tg.do("POST", "/mcp", initialize)
		challenge := a.header.Get("WWW-Authenticate")
		if want := `scope="tools more"`; a.status != 401 || strings.Contains(challenge, "scope=") != (scopes != nil) || scopes != nil && !strings.Contains(challenge, want) {
			t.Errorf("scopes %q: got %d, %s", scopes, a.status, challenge)
		}
	}
}
