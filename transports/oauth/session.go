package oauth

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/sync/singleflight"

	"github.com/dynmcp/dynmcp/internal/records"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/oauth/logins"
)

// LoginOptions are shared by the logins of a process.
type LoginOptions struct {
	Store *logins.Store
	// Hide is called with every secret before it is used. slot identifies the owner, so that
	// its new secrets replace the older ones. Nil hides nothing.
	Hide   func(slot string, secrets ...string)
	Logger *slog.Logger // nil is silent
}

// Sessions are the logins that a process uses, one per key.
type Sessions struct {
	opts LoginOptions

	mu    sync.Mutex
	byKey map[logins.Key]*Session
}

// complete replaces what is nil.
func (o *LoginOptions) complete() {
	if o.Hide == nil {
		o.Hide = func(string, ...string) {}
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
}

// NewSessions returns the sessions of a store. Nothing is read before a request needs it.
func NewSessions(opts LoginOptions) *Sessions {
	opts.complete()
	return &Sessions{opts: opts, byKey: map[logins.Key]*Session{}}
}

// Applies reports whether requests to a server get a login's token: not for a process, or if
// the config has an Authorization header.
func Applies(s schema.Server) bool {
	if s.Transport == schema.Stdio {
		return false
	}
	for name := range s.Headers {
		if http.CanonicalHeaderKey(name) == "Authorization" {
			return false
		}
	}
	return true
}

// maxSessions is how many sessions are kept for their next connection.
const maxSessions = 50_000

// For returns the session of a user at a server for which Applies is true; principal is "" for the
// login for all.
func (all *Sessions) For(server schema.Server, principal string) *Session {
	key := logins.KeyOf(server).Of(principal)
	all.mu.Lock()
	defer all.mu.Unlock()
	s := all.byKey[key]
	if s == nil && len(all.byKey) >= maxSessions {
		clear(all.byKey) // connections keep theirs, and the store has the logins
	}
	if s == nil || !reflect.DeepEqual(s.server.Auth, server.Auth) || s.server.TLS != server.TLS {
		s = &Session{LoginOptions: all.opts, key: key, server: server}
		all.byKey[key] = s
	}
	return s
}

// A Session adds the token to the requests to one server. It is safe for concurrent use.
type Session struct {
	LoginOptions
	key    logins.Key
	server schema.Server
	group  singleflight.Group // for changes of login
	proofs proofs             // if its tokens are bound to a key

	mu               sync.Mutex
	loadedAt         time.Time     // when the store was read
	read             bool          // whether the store was read
	unreachableSince time.Time     // when the state of the cluster became unreachable, zero if it is reachable
	stamp            int64         // of the store when it was read
	login            *logins.Login // nil if absent; never changed, only replaced
	renewedAt        time.Time     // the last refresh, or login of a machine, by this process
	issuer           string        // the only issuer that gets the secret of a machine login, "" before the first login
	retryAt          time.Time     // no refresh before this time, because the last one failed
	failed           error         // the reason for that
	failures         int
}

// machine reports whether the login needs no person.
func (s *Session) machine() bool { return s.server.Auth.Machine() }

// Transport returns a transport that adds the token to each request to the server's own origin.
// If the server rejects it, with 401 or for a scope, the request is sent a second time with
// another token, if there is one: nothing ran before. An error of its own is a
// *transports.Failure, and nothing was sent.
func (s *Session) Transport(base http.RoundTripper) http.RoundTripper {
	server, err := resourceOf(s.server.Address())
	if err != nil {
		return base // no request reaches an address that cannot be read
	}
	return &transport{session: s, server: server, base: base}
}

type transport struct {
	session *Session
	server  Resource
	base    http.RoundTripper
}

func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if !t.server.SameOrigin(req.URL) {
		return t.base.RoundTrip(req)
	}
	ctx := req.Context()
	token, err := t.session.token(ctx)
	if err != nil {
		closeBody(req)
		return nil, err
	}
	resp, err := t.session.send(t.base, req, token)
	if err != nil {
		return nil, err
	}
	newer := ""
	switch {
	case resp.StatusCode == http.StatusUnauthorized && t.session.machine():
		newer, err = t.session.machineLogin(ctx, token, resp)
	case resp.StatusCode == http.StatusUnauthorized:
		newer, err = t.session.renew(ctx, token)
	case resp.StatusCode == http.StatusForbidden && token != "":
		newer, err = t.session.stepUp(token, missingScopes(resp))
	}
	switch {
	case errors.Is(err, records.ErrUnavailable):
		drain(resp)
		return nil, err
	case err != nil:
		t.session.Logger.Warn("no other token", "upstream", t.session.key.Server, "err", err)
	}
	if newer == "" || newer == token {
		t.session.want(ctx, resp)
		return resp, nil
	}
	again := rewound(req)
	if again == nil {
		return resp, nil
	}
	drain(resp)
	if resp, err = t.session.send(t.base, again, newer); err == nil {
		t.session.want(ctx, resp)
	}
	return resp, err
}

// rewound returns a copy of a request to send again, nil if its body cannot be read twice.
func rewound(req *http.Request) *http.Request {
	again := req.Clone(req.Context())
	if req.Body == nil || req.Body == http.NoBody {
		return again
	}
	if req.GetBody == nil {
		return nil
	}
	var err error
	if again.Body, err = req.GetBody(); err != nil {
		return nil
	}
	return again
}

// closeBody closes the body of a request that is not sent.
func closeBody(req *http.Request) {
	if req.Body != nil {
		req.Body.Close()
	}
}

// drain reads the rest of an answer so that its connection can be reused.
func drain(resp *http.Response) {
	_, _ = io.CopyN(io.Discard, resp.Body, 4<<10)
	resp.Body.Close()
}

// send sends a request with a token, or unchanged without one. A token that is bound to a key is
// sent with a proof.
func (s *Session) send(base http.RoundTripper, req *http.Request, token string) (*http.Response, error) {
	if token == "" {
		return base.RoundTrip(req)
	}
	s.mu.Lock()
	l := s.login // a newer login, if its token was replaced; a refresh keeps the key
	s.mu.Unlock()
	var key *ecdsa.PrivateKey
	if l != nil {
		var err error
		if key, err = l.ProofKey(); err != nil {
			closeBody(req)
			return nil, s.failure(transports.CodeAuthRequired, s.loginCommand(), err)
		}
	}
	req = req.Clone(req.Context())
	if key == nil {
		req.Header.Set("Authorization", "Bearer "+token)
		return base.RoundTrip(req)
	}
	req.Header.Set("Authorization", "DPoP "+token)
	return s.proofs.send(base, req, key, token)
}

// token returns the token for a request, empty if there is no login.
func (s *Session) token(ctx context.Context) (string, error) {
	if s.machine() {
		return s.machineToken(), nil
	}
	s.mu.Lock()
	read, l, stamp, loadedAt := s.read, s.login, s.stamp, s.loadedAt
	s.mu.Unlock()
	aged := s.key.Principal != "" && l != nil && time.Since(loadedAt) > rereadAfter // he may have ended it at another replica
	if aged {
		s.mu.Lock()
		s.loadedAt = time.Now() // one request looks, also if the state cannot be reached
		s.mu.Unlock()
	}
	if read && (stamp != s.Store.Stamp() || aged) {
		if newer, err := s.load(); err == nil { // otherwise the login stays as it was read
			l = newer
		}
	}
	switch {
	case !read:
		token, err := s.renew(ctx, "")
		if errors.Is(err, records.ErrUnavailable) && s.server.Auth == nil {
			return "", nil // it may need no login; otherwise it answers 401
		}
		return token, err
	case l == nil || l.AccessToken == "" && l.RefreshToken == "":
		return "", nil // after a 401 the store is read again
	case l.Fresh(time.Now()) || l.RefreshToken == "" && l.Valid(time.Now()):
		return l.AccessToken, nil
	}
	return s.renew(ctx, "")
}

// stepUp returns the token of a login since the request, which lacked scopes, "" without one.
func (s *Session) stepUp(lacking string, scopes []string) (string, error) {
	if len(scopes) == 0 || s.machine() {
		return "", nil
	}
	l, err := s.load()
	switch {
	case errors.Is(err, records.ErrUnavailable):
		return "", s.loadFailure(err)
	case err != nil || l == nil || l.AccessToken == lacking || !l.Fresh(time.Now()):
		return "", err
	}
	return l.AccessToken, nil
}

// want records the scopes that a rejected request needs for the next login (MCP "Step-Up
// Authorization Flow"), whether there is a login or not.
func (s *Session) want(ctx context.Context, resp *http.Response) {
	scopes := missingScopes(resp)
	if resp.StatusCode == http.StatusUnauthorized {
		scopes = challengedScopes(resp, "")
	}
	if len(scopes) == 0 || s.machine() {
		return
	}
	s.mu.Lock()
	l := logins.Login{}
	if s.login != nil {
		l = *s.login
	}
	s.mu.Unlock()
	l.Wanted = slices.Clone(l.Wanted)
	if !l.Want(scopes) {
		return // they were recorded before
	}
	ctx, cancel := context.WithTimeout(ctx, logins.WaitTime)
	defer cancel()
	if err := s.Store.Update(ctx, s.key, func(l *logins.Login) bool { return l.Want(scopes) }); err != nil {
		s.Logger.Warn("the next login does not ask for the scopes that are missing", "upstream", s.key.Server, "err", err)
	}
}

// rereadAfter is how long a user's login is used without a look at the store.
const rereadAfter = 10 * time.Second

// missingScopes returns the scopes that an answer reports as missing (RFC 6750, 3.1).
func missingScopes(resp *http.Response) []string {
	if resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden {
		return nil
	}
	return challengedScopes(resp, "insufficient_scope")
}

// challengedScopes returns the scopes of the first challenge for a token with an error, "" for any.
func challengedScopes(resp *http.Response, code string) []string {
	challenges, _ := oauthex.ParseWWWAuthenticate(resp.Header.Values("WWW-Authenticate"))
	for _, c := range challenges {
		if (c.Scheme == "bearer" || c.Scheme == "dpop") && (code == "" || c.Params["error"] == code) {
			return strings.Fields(c.Params["scope"])
		}
	}
	return nil
}

// Hint returns what a user can do about an answer that requires a login, 401 or 403, "" if
// nothing, and whether a login of that user would fix it.
func (s *Session) Hint(resp *http.Response) (text string, login bool) {
	scopes := transports.Printable([]byte(strings.Join(missingScopes(resp), " ")), 200)
	s.mu.Lock()
	loggedIn := s.login != nil
	s.mu.Unlock()
	run := s.loginCommand()
	switch {
	case s.machine():
		return fmt.Sprintf(`check the client and the scope in "auth" of %q in the config`, s.key.Server), false
	case resp.StatusCode == http.StatusForbidden && scopes != "":
		return run + ": this needs the scopes " + scopes, true
	case resp.StatusCode == http.StatusForbidden && loggedIn:
		return fmt.Sprintf("the user who is logged in at %q may not do this; %s as another user", s.key.Server, run), false
	case resp.StatusCode == http.StatusForbidden:
		return "", false
	case !asksForToken(resp):
		return run + `, or give its key in "headers" of the config`, true
	}
	return run, true
}

// loginCommand says how to log in. A user of a gateway gets the address instead, from the offer of
// the login, unless his browser cannot reach the gateway.
func (s *Session) loginCommand() string {
	if s.key.Principal != "" {
		return "log in at " + s.key.Server + " as yourself"
	}
	return fmt.Sprintf("run \"dynmcp login %s\"", s.key.Server)
}

func asksForToken(resp *http.Response) bool {
	return slices.ContainsFunc(resp.Header.Values("WWW-Authenticate"), func(challenge string) bool {
		scheme, _, _ := strings.Cut(strings.TrimSpace(challenge), " ")
		return strings.EqualFold(scheme, "Bearer") || strings.EqualFold(scheme, "DPoP")
	})
}

// failure returns the failure of a request that was not sent for lack of a token.
func (s *Session) failure(code int64, hint string, cause error) *transports.Failure {
	return &transports.Failure{Upstream: s.key.Server, Code: code, Outcome: transports.NotSent, Cause: cause, Hint: hint}
}

// errRelogin means that the login has ended.
var errRelogin = errors.New("its login is over")
