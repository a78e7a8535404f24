package gateway

import (
	"log/slog"
	"net/http"
)

// Local lets only those requests through to next that are for a name of this machine,
// and from no page of another site: what a browser is sent to by a name that leads here
// sees nothing. With a token that is not empty a request has to show it, as a bearer
// token or, for browsers, as the password of any user (RFC 7617).
func Local(token string, next http.Handler) http.Handler {
	a := newAccess(Options{AllowedHosts: []string{"localhost", "127.0.0.1", "::1"}, Logger: slog.New(slog.DiscardHandler)})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, ok := a.allow(w, r); !ok {
			return
		}
		_, given, basic := r.BasicAuth()
		if !basic {
			given = bearerOf(r)
		}
		if token != "" && !sameToken(given, token) {
			w.Header().Set("WWW-Authenticate", `Basic realm="dynmcp", charset="UTF-8"`)
			http.Error(w, "the gateway's token is wanted: as the password, of any user name", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}
