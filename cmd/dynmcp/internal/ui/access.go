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

// codeLife is how long the code in the address is valid.
const codeLife = 5 * time.Minute

// An access decides which requests are answered. A browser exchanges the code for a token, once,
// and sends the token with each request. The token is not a cookie: browsers send cookies to
// every port of this machine, including programs of other users.
type access struct {
	address string // of the page, host:port
	code    string
	token   string
	until   time.Time

	mu   sync.Mutex
	used bool
}

// redeem returns the token for the code.
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

// refuse returns why a request is refused, "" if it is not. Requests must be for this address by
// name or number: other names that resolve to it belong to other pages (DNS rebinding).
func (a *access) refuse(r *http.Request) string {
	_, port, _ := net.SplitHostPort(a.address)
	if r.Host != a.address && r.Host != "localhost:"+port {
		return "the page is at " + a.address
	}
	return ""
}

// foreign returns why a request of the API is not from our page, "" if it may be: browsers
// report the page of a request, and do not send JSON to another origin without asking it.
func foreign(r *http.Request) string {
	if !strings.HasPrefix(r.URL.Path, "/api/") {
		return ""
	}
	if origin := r.Header.Get("Origin"); origin != "" && origin != "http://"+r.Host {
		return "the request is of another page"
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" {
		return "the request is of another site"
	}
	if r.Header.Get("Content-Type") != "application/json" {
		return "the request is no JSON"
	}
	return ""
}

// admits reports whether a request has the token.
func (a *access) admits(r *http.Request) bool {
	given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return ok && same(given, a.token)
}
