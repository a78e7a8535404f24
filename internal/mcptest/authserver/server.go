// Package authserver is an OAuth 2.1 authorization server and the MCP server that it protects, on
// one address. It checks PKCE, redirects, resources and the reuse of refresh tokens, and has
// options for the ways in which real servers differ.
//
// It shares no code with package oauth. Command fakeauth runs it as a process.
package authserver

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// ServerOptions configure an authorization server and the MCP server that it protects. The zero value
// follows the specification: metadata by RFC 8414 and RFC 9728, registration of clients, refresh
// tokens that are valid once.
type ServerOptions struct {
	MCP      string   // the address of the protected server, at /mcp and (HTTP with SSE) /messages; "" answers {} to everything
	Issuer   string   // the path of the issuer, such as /tenant
	Apart    bool     // the issuer is at localhost, and so at another origin than the server
	Metadata string   // path (RFC 8414), oidc (OpenID, inserted), oidc-after (appended), none; "" is path
	Resource string   // header (named in the challenge), path, root, none (RFC 9728); "" is header
	Name     string   // how the resource metadata spells the address of the server, with BASE and PORT for those of this one; the only name of it then
	Iss      string   // the iss of the callback: "" none, right, slash (one too many), wrong, missing (advertised and not sent)
	PKCE     []string // the methods in the metadata; nil is S256, empty is no such member
	Claims   string   // the issuer in the metadata and in iss if it is another than the one that is named, with BASE
	Methods  []string // token_endpoint_auth_methods_supported; clients are registered with these only
	Redirect string   // the only redirect of browsers that is accepted; "" is any
	Public   bool     // messages without "write" in them need no login

	NoRegistration bool
	Secret         bool   // clients that are registered get a secret
	Client, Key    string // a registered client, with its secret
	Document       bool   // client ids may be URLs of documents

	Elsewhere string // the address of another server for which it also issues tokens

	Scopes   []string // required, named in the challenge
	WriteFor string   // the scope that messages with "write" in them also need

	Lifetime  time.Duration // of access tokens; 0 is an hour
	NoRefresh bool          // no refresh tokens
	Keep      bool          // refresh tokens stay valid

	Bind   string // where the server asks for tokens that are bound to a key (RFC 9449): challenge, metadata; "" is nowhere
	Nonces bool   // proofs need the last nonce; each is valid once

	// Wrap may answer a request before the server. It reports whether it did.
	Wrap func(w http.ResponseWriter, r *http.Request) bool `json:"-"`
}

// A Server is the handler of both servers.
type Server struct {
	base string
	opts ServerOptions
	mcp  http.Handler

	mu       sync.Mutex
	state    State
	clients  map[string]string
	codes    map[string]grant
	tokens   map[string]grant // access tokens
	refresh  map[string]*refreshToken
	families int
	revoked  map[int]bool
	proofs   map[string]bool // their ids
	nonce    string          // of the next proof
}

// State records what has happened so far.
type State struct {
	// Counts has the number of each event: authorize, register, token (exchange of a code), refresh,
	// reuse (of a spent refresh token), machine, revoke, unregister, call (authorized).
	Counts  map[string]int
	Asked   []string // the scopes of each authorization
	Secrets []string // that must not be shown: tokens, codes, secrets of clients
	Passing []string // that must not be logged: states, verifiers
}

type grant struct {
	client, redirect, challenge, scope, resource string
	key                                          string // the thumbprint of the key that it is bound to
	family                                       int
	expires                                      time.Time
}

type refreshToken struct {
	grant
	used bool
}

// New returns the handler of the servers at base, an address without a path.
func New(base string, opts ServerOptions) *Server {
	s := &Server{
		base: base, opts: opts, state: State{Counts: map[string]int{}}, clients: map[string]string{}, codes: map[string]grant{},
		tokens: map[string]grant{}, refresh: map[string]*refreshToken{}, revoked: map[int]bool{}, proofs: map[string]bool{},
	}
	if opts.Client != "" {
		s.clients[opts.Client] = opts.Key
	}
	if target, err := url.Parse(opts.MCP); err == nil && opts.MCP != "" {
		s.mcp = &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = target.Scheme, target.Host, target.Host
		}}
	}
	return s
}

// Control is the path of the methods of a Server for other processes: GET Control returns State in
// JSON, POST Control+"/expire" calls Expire, and POST Control+"/revoke" calls Revoke.
const Control = "/control"

func (s *Server) control(w http.ResponseWriter, r *http.Request) {
	switch r.Method + strings.TrimPrefix(r.URL.Path, Control) {
	case "GET":
		answer(w, http.StatusOK, s.State())
	case "POST/expire":
		s.Expire()
	case "POST/revoke":
		s.Revoke()
	default:
		http.NotFound(w, r)
	}
}

// State returns what has happened so far.
func (s *Server) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return State{maps.Clone(s.state.Counts), slices.Clone(s.state.Asked), slices.Clone(s.state.Secrets), slices.Clone(s.state.Passing)}
}

// Expire makes all access tokens invalid, now.
func (s *Server) Expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.tokens)
}

// Revoke ends all logins.
func (s *Server) Revoke() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.tokens)
	clear(s.refresh)
}

func (s *Server) secret(kind string) string {
	text := kind + "-" + rand.Text()
	s.state.Secrets = append(s.state.Secrets, text)
	return text
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, Control) {
		s.control(w, r)
		return
	}
	if s.opts.Wrap != nil && s.opts.Wrap(w, r) {
		return
	}
	issuer := s.opts.Issuer
	switch r.URL.Path {
	case "/mcp", "/messages":
		s.serveMCP(w, r)
	case issuer + "/authorize":
		s.authorize(w, r)
	case issuer + "/token":
		s.token(w, r)
	case issuer + "/register":
		s.register(w, r)
	case issuer + "/revoke":
		s.revoke(w, r)
	case issuer + "/clients":
		s.count("unregister")
		w.WriteHeader(http.StatusNoContent)
	default:
		s.metadata(w, r)
	}
}

func (s *Server) count(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.Counts[what]++
}

func (s *Server) metadata(w http.ResponseWriter, r *http.Request) {
	resource := map[string]string{"": "/resource", "header": "/resource", "path": "/.well-known/oauth-protected-resource/mcp", "root": "/.well-known/oauth-protected-resource"}[s.opts.Resource]
	server := map[string]string{
		"":           "/.well-known/oauth-authorization-server" + s.opts.Issuer,
		"path":       "/.well-known/oauth-authorization-server" + s.opts.Issuer,
		"oidc":       "/.well-known/openid-configuration" + s.opts.Issuer,
		"oidc-after": s.opts.Issuer + "/.well-known/openid-configuration",
	}[s.opts.Metadata]
	issuer := s.issuer()
	switch r.URL.Path {
	case resource:
		of := s.base + "/mcp"
		switch {
		case s.opts.Name != "":
			of = s.expand(s.opts.Name)
		case s.opts.Resource == "root":
			of = s.base
		}
		m := map[string]any{"resource": of, "authorization_servers": []string{issuer}, "scopes_supported": s.opts.Scopes}
		if s.opts.Bind == "metadata" {
			m["dpop_signing_alg_values_supported"] = []string{"ES256"}
		}
		answer(w, http.StatusOK, m)
	case server:
		m := map[string]any{
			"issuer": s.claimed(), "authorization_endpoint": issuer + "/authorize", "token_endpoint": issuer + "/token",
			"revocation_endpoint": issuer + "/revoke", "response_types_supported": []string{"code"},
			"code_challenge_methods_supported": []string{"S256"}, "scopes_supported": []string{"offline_access"},
			"authorization_response_iss_parameter_supported": s.opts.Iss != "", "client_id_metadata_document_supported": s.opts.Document,
		}
		if s.opts.PKCE != nil {
			m["code_challenge_methods_supported"] = s.opts.PKCE
		}
		if s.opts.PKCE != nil && len(s.opts.PKCE) == 0 {
			delete(m, "code_challenge_methods_supported")
		}
		if s.opts.Methods != nil {
			m["token_endpoint_auth_methods_supported"] = s.opts.Methods
		}
		if !s.opts.NoRegistration {
			m["registration_endpoint"] = issuer + "/register"
		}
		answer(w, http.StatusOK, m)
	default:
		http.NotFound(w, r)
	}
}

// expand replaces BASE and PORT in the text of an option.
func (s *Server) expand(text string) string {
	return strings.NewReplacer("BASE", s.base, "PORT", s.base[strings.LastIndex(s.base, ":")+1:]).Replace(text)
}

// claimed returns the issuer that the metadata claims to be of.
func (s *Server) claimed() string {
	if s.opts.Claims != "" {
		return s.expand(s.opts.Claims)
	}
	return s.issuer()
}

func (s *Server) issuer() string {
	if s.opts.Apart {
		return s.expand("http://localhost:PORT") + s.opts.Issuer
	}
	return s.base + s.opts.Issuer
}

func answer(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value)
}

func refuse(w http.ResponseWriter, status int, code string) {
	answer(w, status, map[string]string{"error": code})
}

func (s *Server) serveMCP(w http.ResponseWriter, r *http.Request) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	s.mu.Lock()
	g, known := s.tokens[token]
	known = known && time.Now().Before(g.expires) && !s.revoked[g.family] && scheme == map[bool]string{false: "Bearer", true: "DPoP"}[g.key != ""]
	if known && g.key != "" {
		key, ok := s.proveLocked(w, r, token)
		if !ok {
			s.mu.Unlock()
			return
		}
		known = key == g.key
	}
	s.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	open := s.opts.Public && !bytes.Contains(body, []byte(`"write"`))
	challenge := `Bearer realm="x"`
	if s.opts.Bind == "challenge" {
		challenge = `DPoP algs="ES256"`
	}
	if s.opts.Resource == "" || s.opts.Resource == "header" {
		challenge += fmt.Sprintf(", resource_metadata=%q", s.base+"/resource")
	}
	granted := strings.Fields(g.scope)
	missing := func(scopes ...string) bool {
		return slices.ContainsFunc(scopes, func(scope string) bool { return !slices.Contains(granted, scope) })
	}
	switch {
	case open:
	case !known:
		w.Header().Set("WWW-Authenticate", challenge+scopeParam(s.opts.Scopes))
		answer(w, http.StatusUnauthorized, map[string]string{"error": "unauthorized"})
		return
	case missing(s.opts.Scopes...):
		w.Header().Set("WWW-Authenticate", challenge+`, error="insufficient_scope"`+scopeParam(s.opts.Scopes))
		answer(w, http.StatusForbidden, map[string]string{"error": "insufficient_scope"})
		return
	}
	if s.opts.WriteFor != "" && missing(s.opts.WriteFor) && bytes.Contains(body, []byte(`"write"`)) {
		w.Header().Set("WWW-Authenticate", challenge+`, error="insufficient_scope"`+scopeParam([]string{s.opts.WriteFor}))
		answer(w, http.StatusForbidden, map[string]string{"error": "insufficient_scope"})
		return
	}
	s.count("call")
	if s.mcp != nil {
		s.mcp.ServeHTTP(w, r)
		return
	}
	answer(w, http.StatusOK, struct{}{})
}

func scopeParam(scopes []string) string {
	if len(scopes) == 0 {
		return ""
	}
	return fmt.Sprintf(", scope=%q", strings.Join(scopes, " "))
}
