package ui

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// codeLife is the lifetime of the code in the address.
const codeLife = 5 * time.Minute

// An access authenticates requests. A browser exchanges the one-time code for a token, and sends
// the token with each request. The token is not a cookie, because browsers send cookies to every
// port of this machine, including programs of other users.
type access struct {
	address string // of the page, host:port
	code    string
	token   string
	until   time.Time

	mu   sync.Mutex
	used bool
}

// redeem exchanges the code for the token.
func (a *access) redeem(code string) (token string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case !same(code, a.code):
		return "", errors.New("this is not the code: start dynmcp ui again")
	case a.used:
		return "", errors.New("the code was used already: start dynmcp ui again")
	case time.Now().After(a.until):
		return "", errors.New("the code has expired: start dynmcp ui again")
	}
	a.used = true
	return a.token, nil
}

func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// refuse returns the reason to refuse a request, or "". The Host header must be this address or
// localhost. Another name that resolves to this machine belongs to another page (DNS rebinding).
func (a *access) refuse(r *http.Request) string {
	_, port, _ := net.SplitHostPort(a.address)
	if r.Host != a.address && r.Host != "localhost:"+port {
		return "the page is at " + a.address
	}
	return ""
}

// foreign returns the reason why a request to the API cannot be from our page, or "". Browsers
// report the origin of a request, and need a CORS preflight to send JSON to another origin.
func foreign(r *http.Request) string {
	if !strings.HasPrefix(r.URL.Path, "/api/") {
		return ""
	}
	if origin := r.Header.Get("Origin"); origin != "" && origin != "http://"+r.Host {
		return "the request comes from another page"
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" {
		return "the request comes from another site"
	}
	if r.Header.Get("Content-Type") != "application/json" {
		return "the request is not JSON"
	}
	return ""
}

// admits reports whether a request has the token.
func (a *access) admits(r *http.Request) bool {
	given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return ok && same(given, a.token)
}
