package gateway

import "net/http"

// Local lets only those requests through to next that are for a name of this machine,
// and from no page of another site: what a browser is sent to by a name that leads here
// sees nothing.
func Local(next http.Handler) http.Handler {
	g := New(Options{AllowedHosts: []string{"localhost", "127.0.0.1", "::1"}})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, ok := g.allow(w, r); ok {
			next.ServeHTTP(w, r)
		}
	})
}
