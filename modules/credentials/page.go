package credentials

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/internal/activity"
	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/record"
	"github.com/dynmcp/dynmcp/transports/oauth/logins"
)

// The page of a user holds nothing until he gives it his token.
var (
	//go:embed page.html
	markup string
	//go:embed page.css
	style string
	//go:embed page.js
	script string
)

var page = sync.OnceValues(func() (text, policy string) {
	hash := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return strings.NewReplacer("{{style}}", style, "{{script}}", script).Replace(markup),
		"default-src 'none'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
			"require-trusted-types-for 'script'; script-src " + hash(script) + "; style-src " + hash(style)
})

// ServePage sends the page, which asks for the token.
func (*route) ServePage(w http.ResponseWriter, _ *http.Request) {
	text, policy := page()
	for name, value := range map[string]string{
		"Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": policy, "Cache-Control": "no-store", "Referrer-Policy": "no-referrer",
		"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
	} {
		w.Header().Set(name, value)
	}
	_, _ = io.WriteString(w, text) // fails only if the client is gone
}

// What a page shows to its user.
type overview struct {
	User     string    `json:"user"`
	Servers  []forUser `json:"servers"`
	Names    []string  `json:"names"`
	Logins   []string  `json:"logins"`
	Recorded bool      `json:"recorded"`
	Calls    []call    `json:"calls"` // newest first
}

// A forUser is a server, and what it is called with for the user alone.
type forUser struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Login       bool     `json:"login"`
	Values      []string `json:"values,omitempty"`
}

// A call is one of the user's, without arguments and result.
type call struct {
	Time   time.Time `json:"time"`
	Server string    `json:"server,omitempty"`
	Tool   string    `json:"tool,omitempty"`
	Method string    `json:"method,omitempty"`
	Kind   string    `json:"kind"`
	MS     float64   `json:"ms"`
}

// maxCalls limits the calls that a page shows, callsFor how old they are.
const (
	maxCalls = 200
	callsFor = 7 * 24 * time.Hour
)

// overview answers with what a user has, and with nothing of another.
func (p *route) overview(w http.ResponseWriter, r *http.Request, store *logins.Store, principal string) {
	names, logins, err := p.kept(store, principal)
	if err != nil {
		deny(w, statusOf(err), err)
		return
	}
	cfg := p.cfg.Load()
	o := overview{User: principal, Servers: []forUser{}, Names: names, Logins: logins, Calls: []call{}}
	for _, s := range cfg.Servers {
		if !s.Disabled {
			o.Servers = append(o.Servers, forUser{s.Name, cli.Secrets.String(s.Description), takesLogin(s), s.UserValues()})
		}
	}
	if dir, err := record.Dir(cfg); err == nil {
		o.Recorded = true
		if o.Calls, err = callsOf(r.Context(), dir, principal); err != nil {
			deny(w, http.StatusInternalServerError, err)
			return
		}
	}
	answer(w, http.StatusOK, o)
}

// callsOf returns the last calls of a principal. The filter's principal may also be a subject alone, which users of two
// issuers can have: here it is the whole.
func callsOf(ctx context.Context, dir, principal string) ([]call, error) {
	lines, err := (&activity.Reader{Dir: dir}).Next(ctx, &activity.Filter{Since: time.Now().Add(-callsFor), Principal: principal})
	if err != nil {
		return nil, err
	}
	calls := []call{}
	for _, l := range slices.Backward(lines) {
		if l.Principal == principal && len(calls) < maxCalls {
			calls = append(calls, call{l.Time, l.Server, l.Tool, l.Method, l.Kind, l.MS})
		}
	}
	return calls, nil
}
