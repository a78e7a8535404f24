package authserver

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

func (s *Server) register(w http.ResponseWriter, r *http.Request) {
	var client map[string]any
	if err := json.NewDecoder(r.Body).Decode(&client); err != nil || s.opts.NoRegistration {
		refuse(w, http.StatusBadRequest, "invalid_client_metadata")
		return
	}
	method, _ := client["token_endpoint_auth_method"].(string)
	if s.opts.Methods != nil && !slices.Contains(s.opts.Methods, method) {
		refuse(w, http.StatusUnprocessableEntity, "invalid_client_metadata")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.Counts["register"]++
	id := "client-" + rand.Text()
	registered := maps.Clone(client)
	registered["client_id"] = id
	registered["registration_client_uri"] = s.base + s.opts.Issuer + "/clients"
	registered["registration_access_token"] = s.secret("registration")
	s.clients[id] = ""
	if s.opts.Secret {
		s.clients[id] = s.secret("client+secret/")
		registered["client_secret"] = s.clients[id]
		if s.opts.Methods == nil {
			registered["token_endpoint_auth_method"] = "client_secret_basic"
		}
	}
	answer(w, http.StatusCreated, registered)
}

// authorize serves the login page, which redirects the browser back at once.
func (s *Server) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.Counts["authorize"]++
	s.state.Asked = append(s.state.Asked, q.Get("scope"))
	client := q.Get("client_id")
	if _, known := s.clients[client]; !known && !(s.opts.Document && strings.HasPrefix(client, "https://")) {
		http.Error(w, "unknown client", http.StatusBadRequest)
		return
	}
	if q.Get("code_challenge_method") != "S256" || q.Get("code_challenge") == "" || q.Get("state") == "" {
		http.Error(w, "PKCE and state are required", http.StatusBadRequest)
		return
	}
	if want := s.opts.Redirect; want != "" && q.Get("redirect_uri") != want {
		http.Error(w, "redirect_uri did not match", http.StatusBadRequest)
		return
	}
	resource := q.Get("resource")
	if s.opts.Name != "" && resource != s.expand(s.opts.Name) {
		http.Error(w, "invalid_target", http.StatusBadRequest)
		return
	}
	if s.opts.Name == "" && resource != s.base+"/mcp" && resource != s.base && (resource == "" || resource != s.opts.Elsewhere) {
		http.Error(w, "invalid_target", http.StatusBadRequest)
		return
	}
	code := s.secret("code")
	s.state.Passing = append(s.state.Passing, q.Get("state"), q.Get("code_challenge"))
	s.families++
	s.codes[code] = grant{client: client, redirect: q.Get("redirect_uri"), challenge: q.Get("code_challenge"), scope: q.Get("scope"), resource: q.Get("resource"), family: s.families}
	back := url.Values{"code": {code}, "state": {q.Get("state")}}
	switch s.opts.Iss {
	case "right":
		back.Set("iss", s.claimed())
	case "slash":
		back.Set("iss", s.base+s.opts.Issuer+"/")
	case "wrong":
		back.Set("iss", "https://evil.example.test")
	}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

func (s *Server) token(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	s.mu.Lock()
	defer s.mu.Unlock()
	id, secret, basic := r.BasicAuth()
	if basic {
		id, _ = url.QueryUnescape(id)
		secret, _ = url.QueryUnescape(secret)
	} else {
		id, secret = r.Form.Get("client_id"), r.Form.Get("client_secret")
	}
	if key, known := s.clients[id]; (!known || key != secret) && !(s.opts.Document && strings.HasPrefix(id, "https://")) {
		refuse(w, http.StatusUnauthorized, "invalid_client")
		return
	}
	key, ok := s.proveLocked(w, r, "")
	if !ok {
		return
	}
	switch r.Form.Get("grant_type") {
	case "authorization_code":
		s.state.Counts["token"]++
		code := r.Form.Get("code")
		g, known := s.codes[code]
		delete(s.codes, code)
		s.state.Passing = append(s.state.Passing, r.Form.Get("code_verifier"))
		sum := sha256.Sum256([]byte(r.Form.Get("code_verifier")))
		if !known || g.client != id || g.redirect != r.Form.Get("redirect_uri") || g.resource != r.Form.Get("resource") ||
			g.challenge != base64.RawURLEncoding.EncodeToString(sum[:]) {
			refuse(w, http.StatusBadRequest, "invalid_grant")
			return
		}
		g.key = key
		s.issueLocked(w, g)
	case "refresh_token":
		token := s.refresh[r.Form.Get("refresh_token")]
		switch {
		case token == nil || s.revoked[token.family] || token.client != id || token.key != key:
			refuse(w, http.StatusBadRequest, "invalid_grant")
		case token.used && !s.opts.Keep:
			// OAuth 2.1, 4.3.1: a second use revokes the whole family.
			s.state.Counts["reuse"]++
			s.revoked[token.family] = true
			maps.DeleteFunc(s.tokens, func(_ string, g grant) bool { return g.family == token.family })
			refuse(w, http.StatusBadRequest, "invalid_grant")
		case r.Form.Get("resource") != token.resource:
			refuse(w, http.StatusBadRequest, "invalid_target")
		default:
			s.state.Counts["refresh"]++
			token.used = true
			s.issueLocked(w, token.grant)
		}
	case "client_credentials":
		s.state.Counts["machine"]++
		s.state.Asked = append(s.state.Asked, r.Form.Get("scope"))
		s.issueLocked(w, grant{client: id, scope: r.Form.Get("scope"), key: key})
	default:
		refuse(w, http.StatusBadRequest, "unsupported_grant_type")
	}
}

func (s *Server) issueLocked(w http.ResponseWriter, g grant) {
	lifetime := s.opts.Lifetime
	if lifetime == 0 {
		lifetime = time.Hour
	}
	access := s.secret("access")
	g.expires = time.Now().Add(lifetime)
	s.tokens[access] = g
	m := map[string]any{"access_token": access, "token_type": "Bearer", "expires_in": int(lifetime.Seconds()), "scope": g.scope}
	if g.key != "" {
		m["token_type"] = "DPoP"
	}
	if !s.opts.NoRefresh && g.family > 0 {
		refresh := s.secret("refresh")
		s.refresh[refresh] = &refreshToken{grant: g}
		m["refresh_token"] = refresh
	}
	answer(w, http.StatusOK, m)
}

func (s *Server) revoke(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.Counts["revoke"]++
	token := r.Form.Get("token")
	if refresh := s.refresh[token]; refresh != nil {
		s.revoked[refresh.family] = true
		maps.DeleteFunc(s.tokens, func(_ string, g grant) bool { return g.family == refresh.family })
	}
	delete(s.tokens, token)
}
