package credentials

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/event"
	"github.com/dynmcp/dynmcp/internal/records"
	"github.com/dynmcp/dynmcp/internal/secretref"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/oauth"
	"github.com/dynmcp/dynmcp/transports/oauth/logins"
)

// A route is /credentials of a gateway:
//
//	GET    /credentials               the names of what the caller keeps, and where he is logged in: {"names":[…],"logins":[…]}
//	PUT    /credentials/NAME          keeps the body under a name
//	DELETE /credentials/NAME          removes it
//	POST   /credentials/login/SERVER  begins his login there: {"address":"…"} of the page that he opens
//	DELETE /credentials/login/SERVER  ends his login there
//	GET    /credentials?page          what the page of the user shows
//
// A browser, which has no token, gets the page.
//
// The caller is who his token says. No request names a user, and none returns a value.
type route struct {
	event.None

	logins module.Logins
	cfg    atomic.Pointer[schema.Config]
	begun  begunLogins
}

// start serves the route of a run that serves many hosts.
func start(run module.Run) (module.Part, error) {
	if !run.Shared || run.Logins == nil {
		return nil, nil
	}
	p := &route{logins: run.Logins, begun: begunLogins{all: map[[2]string]*begun{}}}
	p.begun.ctx, p.begun.end = context.WithCancel(context.Background())
	p.cfg.Store(run.Config)
	return p, nil
}

// Path returns the first element of its paths.
func (*route) Path() string { return "credentials" }

// ServeOwn serves a request of a principal.
func (p *route) ServeOwn(w http.ResponseWriter, r *http.Request, principal string) {
	w.Header().Set("Cache-Control", "no-store")
	store, err := p.logins.Store()
	if err != nil {
		deny(w, http.StatusInternalServerError, err)
		return
	}
	_, name, named := strings.Cut(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case r.Method == http.MethodGet && !named && r.URL.Query().Has("page"):
		p.overview(w, r, store, principal)
	case r.Method == http.MethodGet && !named:
		p.list(w, store, principal)
	case r.Method == http.MethodPut && named:
		put(w, r, store, principal, name)
	case r.Method == http.MethodPost && strings.HasPrefix(name, loginOf):
		p.login(w, r, principal, strings.TrimPrefix(name, loginOf))
	case r.Method == http.MethodDelete && strings.HasPrefix(name, loginOf):
		p.logout(w, r, store, principal, strings.TrimPrefix(name, loginOf))
	case r.Method == http.MethodDelete && named:
		was, err := store.SetValue(r.Context(), principal, name, "")
		switch {
		case err != nil:
			deny(w, statusOf(err), err)
		case !was:
			deny(w, http.StatusNotFound, fmt.Errorf("you keep no %q", name))
		default:
			w.WriteHeader(http.StatusNoContent)
		}
	default:
		w.Header().Set("Allow", "GET /credentials, PUT and DELETE /credentials/NAME, POST and DELETE /credentials/login/SERVER")
		deny(w, http.StatusMethodNotAllowed, errors.New("GET /credentials lists names, PUT and DELETE /credentials/NAME change one, POST and DELETE /credentials/login/SERVER begin and end a login"))
	}
}

// loginOf begins the name of a login.
const loginOf = "login/"

// list answers with what a user keeps, by name.
func (p *route) list(w http.ResponseWriter, store *logins.Store, principal string) {
	names, logins, err := p.kept(store, principal)
	if err != nil {
		deny(w, statusOf(err), err)
		return
	}
	answer(w, http.StatusOK, map[string]any{"names": names, "logins": logins})
}

// kept returns the names of a user's values, and the servers where he is logged in.
func (p *route) kept(store *logins.Store, principal string) (names, at []string, err error) {
	names, err = store.ValueNames(principal)
	at = []string{}
	for _, s := range p.cfg.Load().Servers {
		if !s.Credentials.User || err != nil {
			continue
		}
		var l *logins.Login
		if l, err = store.Peek(logins.KeyOf(s).Of(principal)); l != nil && (l.HasToken || l.Renews) {
			at = append(at, s.Name)
		}
	}
	return append([]string{}, names...), at, err
}

// logout ends the login of a user at a server.
func (p *route) logout(w http.ResponseWriter, r *http.Request, store *logins.Store, principal, name string) {
	var was bool
	var err error
	for _, s := range p.cfg.Load().Servers {
		if s.Name == name && s.Credentials.User {
			was, err = oauth.LoginOptions{Store: store, Hide: cli.Secrets.Rotate}.Logout(r.Context(), s, principal)
		}
	}
	switch {
	case !was && err == nil:
		deny(w, http.StatusNotFound, fmt.Errorf("you have no login at %q", name))
	case !was:
		deny(w, statusOf(err), err)
	case err != nil: // it is forgotten here
		answer(w, http.StatusOK, map[string]any{"warning": cli.Secrets.String("the login is over here; the server did not end it: " + err.Error())})
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

// put keeps the body of a request.
func put(w http.ResponseWriter, r *http.Request, store *logins.Store, principal, name string) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, logins.MaxValue+2))
	value := secretref.TrimNewline(string(body))
	if err != nil {
		deny(w, http.StatusRequestEntityTooLarge, fmt.Errorf("the value cannot be read, or is larger than %d KiB", logins.MaxValue>>10))
		return
	}
	cli.Secrets.Rotate("value "+name+" of "+principal, value)
	if err := logins.CheckValue(name, value); err != nil {
		deny(w, http.StatusBadRequest, err)
		return
	}
	if _, err := store.SetValue(r.Context(), principal, name, value); err != nil {
		deny(w, statusOf(err), err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// statusOf returns the status for an error of the store.
func statusOf(err error) int {
	if errors.Is(err, records.ErrUnavailable) {
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

func deny(w http.ResponseWriter, status int, err error) {
	answer(w, status, map[string]any{"error": map[string]string{"message": cli.Secrets.String(err.Error())}})
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // to a caller who is gone
}

// Follow changes to the servers of another config.
func (p *route) Follow(cfg *schema.Config) error {
	p.cfg.Store(cfg)
	return nil
}
