package gateway

import (
	"crypto/sha256"
	"crypto/subtle"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
)

// The principals of hosts without a token of an identity provider.
const (
	anybody = "anybody" // no token is required
	bearer  = "bearer"  // sent the token of the config
)

// An access checks Host, Origin and token of requests.
type access struct {
	hosts   []string // allowed values of Host, in lower case
	origins []string
	token   string        // accepted bearer token; "" if there is none
	issued  *verifier     // checks tokens of identity providers; may be nil
	linger  time.Duration // how long to discard an unread body, so that the host reads the answer
	log     *slog.Logger
}

func newAccess(opts GatewayOptions) *access {
	a := &access{origins: opts.AllowedOrigins, token: opts.Token, linger: lingerFor, log: opts.Logger}
	if opts.OAuth != nil {
		a.issued = &verifier{OAuth: *opts.OAuth, client: &http.Client{Transport: &pacer{pause: keysPause, known: map[string]*storedAnswer{}}}, known: map[string]*oidc.IDTokenVerifier{}}
	}
	for _, name := range opts.AllowedHosts {
		a.hosts = append(a.hosts, strings.ToLower(strings.Trim(name, "[]")))
	}
	return a
}

// hostAllowed reports whether Host is a name or address of the gateway. With DNS rebinding,
// the browser sends the name of the attacking page.
func (a *access) hostAllowed(r *http.Request) bool {
	host := strings.ToLower(r.Host)
	name := (&url.URL{Host: host}).Hostname() // without port and brackets
	return name != "" && slices.ContainsFunc(a.hosts, func(allowed string) bool { return allowed == name || allowed == host })
}

// originAllowed reports whether a request comes from no web page, from the gateway's own origin,
// or from an origin that the config allows. origin is for the CORS headers, "" for none.
func (a *access) originAllowed(r *http.Request) (origin string, ok bool) {
	switch origins := r.Header.Values("Origin"); len(origins) {
	case 0:
		switch r.Header.Get("Sec-Fetch-Site") {
		case "", "none", "same-origin":
			return "", true
		}
		return "", false // from a page of another site, without an Origin
	case 1:
		origin = origins[0]
	default:
		return "", false
	}
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	return origin, origin == scheme+r.Host || slices.Contains(a.origins, origin)
}

// allow checks a request before it is routed. It answers denied requests, preflights and
// requests for metadata itself, and then returns false.
func (a *access) allow(w http.ResponseWriter, r *http.Request) (principal string, ok bool) {
	w.Header().Add("Vary", "Origin")
	if !a.allowHost(w, r) {
		return "", false
	}
	origin, ok := a.originAllowed(r)
	if !ok {
		denyAndClose(w, r, a.linger, denial{status: http.StatusForbidden, text: "this Origin is not allowed here: add it to gateway.allowed_origins"})
		return "", false
	}
	if origin != "" {
		h := w.Header()
		h.Set("Access-Control-Allow-Origin", origin)
		h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS")
		h.Set("Access-Control-Allow-Headers", "Content-Type, Authorization, Accept, Last-Event-ID, Mcp-Session-Id, MCP-Protocol-Version, Mcp-Method, Mcp-Name")
		h.Set("Access-Control-Expose-Headers", "Mcp-Session-Id, WWW-Authenticate")
		if r.Method == http.MethodOptions {
			// The names of headers for arguments (Mcp-Param-…) are unknown here.
			if asked := r.Header.Get("Access-Control-Request-Headers"); asked != "" {
				h.Set("Access-Control-Allow-Headers", asked)
			}
		}
	}
	if r.Method == http.MethodOptions {
		w.Header().Set("Allow", "GET, POST, DELETE, OPTIONS")
		w.WriteHeader(http.StatusOK)
		return "", false
	}
	if a.issued != nil && r.Method == http.MethodGet && (r.URL.Path == metadataPath || strings.HasPrefix(r.URL.Path, metadataPath+"/")) {
		a.issued.metadata(w)
		return "", false
	}
	if asksHealth(r) {
		return anybody, true // load balancers and kubelets have no token
	}
	return a.authenticate(w, r)
}

// allowHost denies a request whose Host is no name of the gateway.
func (a *access) allowHost(w http.ResponseWriter, r *http.Request) bool {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if !a.hostAllowed(r) {
		denyAndClose(w, r, a.linger, denial{status: http.StatusForbidden, text: "this Host is not allowed here: add its name to gateway.allowed_hosts"})
		return false
	}
	return true
}

func asksHealth(r *http.Request) bool {
	return r.URL.Path == "/health" && (r.Method == http.MethodGet || r.Method == http.MethodHead)
}

// authenticate returns the principal of a request, or denies the request.
func (a *access) authenticate(w http.ResponseWriter, r *http.Request) (principal string, ok bool) {
	r.Header.Del(callerHeader)
	if a.token == "" && a.issued == nil {
		return anybody, true
	}
	given := bearerOf(r)
	if a.token != "" && sameToken(given, a.token) {
		return bearer, true
	}
	status, challenge := http.StatusUnauthorized, `Bearer realm="dynmcp"`
	if a.issued != nil {
		principal, err := a.issued.principal(r.Context(), given)
		if err == nil {
			a.noteCaller(r, principal, given)
			return principal, true
		}
		status, challenge = a.issued.challenge(err)
		a.log.Debug("a token was rejected", "err", err)
	}
	w.Header().Set("WWW-Authenticate", challenge)
	denyAndClose(w, r, a.linger, denial{status: status, text: "a bearer token is required: Authorization: Bearer …"})
	return "", false
}

// noteCaller tells Callers the token of a user, and marks the request for another replica with it.
func (a *access) noteCaller(r *http.Request, principal, token string) {
	if a.issued != nil && a.issued.Callers != nil && token != "" {
		a.issued.Callers.Verified(principal, token)
		r.Header.Set(callerHeader, token)
	}
}

// bearerOf returns the bearer token of a request, "" if it has none.
func bearerOf(r *http.Request) string {
	scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(given)
}

// sameToken compares two tokens in constant time.
func sameToken(given, want string) bool {
	a, b := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(want))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// Local returns a handler that passes a request to next if its Host is a name of this machine and
// it comes from no page of another site, against DNS rebinding. If token is not empty, a request
// must have it: as a bearer token or, for browsers, as the password of any user (RFC 7617).
func Local(token string, next http.Handler) http.Handler {
	a := newAccess(GatewayOptions{AllowedHosts: []string{"localhost", "127.0.0.1", "::1"}, Logger: slog.New(slog.DiscardHandler)})
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
			http.Error(w, "the gateway's token is required, as the password of any user", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}
