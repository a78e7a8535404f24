package schema

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/schema/reference"
	"github.com/dynmcp/dynmcp/schema/syntax"
)

// Credentials says whose a server is called with. The zero value is one login for all users.
type Credentials struct {
	// User reports that each user has his own: a login, values of ${user:NAME}, or what Exchange gets.
	User bool `json:"-"`
	// What to exchange the user's token for at each server.
	Exchange *Exchange `json:"exchange" required:"true" example:"{token_url: \"https://login.example.com/token\", client_id: dynmcp, audience: crm}"`
}

// Exchange gets a token for a server in place of the one that the user has for the gateway. That one
// is never sent to the server.
type Exchange struct {
	// The token endpoint of the authorization server that exchanges the token.
	TokenURL string `json:"token_url" required:"true" pattern:"^https?://|[$][{]" example:"https://login.example.com/token"`
	// The form of the request: token_exchange is RFC 8693, on_behalf_of that of Microsoft Entra, id_jag a grant of the company's identity provider that audience takes in return for a token (enterprise-managed authorization).
	Form string `json:"form" enum:"token_exchange,on_behalf_of,id_jag" default:"token_exchange" example:"on_behalf_of"`
	// The client of the gateway at that endpoint.
	ClientID string `json:"client_id" required:"true" nonblank:"true" example:"dynmcp"`
	// Its secret. Left out for public clients.
	ClientSecret string `json:"client_secret" secret:"true" example:"${EXCHANGE_SECRET}"`
	// Whom the new token is for; with id_jag the issuer of the server's authorization server.
	Audience string `json:"audience" nonblank:"true" example:"crm"`
	// The resource of the new token. Left out, the url of the server; on_behalf_of has none.
	Resource string `json:"resource" nonblank:"true" example:"https://crm.example.com/mcp"`
	// The scopes to ask for, separated by spaces.
	Scope string `json:"scope" example:"crm.read"`
	// The token endpoint of the server's authorization server. Only with id_jag.
	GrantURL string `json:"grant_url" pattern:"^https?://|[$][{]" example:"https://auth.crm.example.com/token"`
	// The client of the gateway there. Left out, client_id.
	GrantClientID string `json:"grant_client_id" nonblank:"true" example:"dynmcp"`
	// Its secret. Left out for public clients.
	GrantClientSecret string `json:"grant_client_secret" secret:"true" example:"${CRM_SECRET}"`
}

// userSessions is the default of max_sessions for a remote server with credentials of each user: its
// upstreams are connections and not processes.
const userSessions = 4096

// fewSessions is the default of max_sessions for others.
const fewSessions = 32

// IsPersonal reports whether what a server is called with depends on the user.
func (s Server) IsPersonal() bool { return s.Credentials.User || len(s.UserValues()) > 0 }

// UserValues returns the names of the values of a user that the env and the headers of a server
// refer to, in order.
func (s Server) UserValues() []string {
	names := map[string]bool{}
	for _, texts := range []map[string]string{s.Env, s.Headers} {
		for _, text := range texts {
			_, missing := reference.ExpandUser(text, nil)
			for _, name := range missing {
				names[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// WithUserValues returns the server with a user's values in place of each ${user:NAME}, and the names
// that are missing, in order.
func (s Server) WithUserValues(values map[string]string) (_ Server, missing []string) {
	expand := func(texts map[string]string) map[string]string {
		expanded := map[string]string{}
		for key, text := range texts {
			full, lacks := reference.ExpandUser(text, values)
			expanded[key], missing = full, append(missing, lacks...)
		}
		return expanded
	}
	s.Env, s.Headers = expand(s.Env), expand(s.Headers)
	slices.Sort(missing)
	return s, slices.Compact(missing)
}

// credential returns the Credential of a server.
func (s *Server) credential() string {
	var parts []string
	own := func(name string) bool { return strings.EqualFold(name, "Authorization") }
	switch {
	case s.Credentials.Exchange != nil:
		parts = append(parts, "exchange")
	case s.Credentials.User && !slices.ContainsFunc(slices.Collect(maps.Keys(s.Headers)), own):
		parts = append(parts, "login")
	}
	for _, name := range s.UserValues() {
		parts = append(parts, "user:"+name)
	}
	return strings.Join(parts, " ")
}

// credentialsOf decodes shared, user or an object.
func credentialsOf(r *reading, path string, n *syntax.Node, p *Credentials) {
	switch {
	case n.Kind == syntax.Text && (n.Scalar == CredentialsShared || n.Scalar == CredentialsUser):
		*p = Credentials{User: n.Scalar == CredentialsUser}
	case n.Kind == syntax.Object:
		*p = Credentials{User: true}
		r.object(path, n, reflect.ValueOf(p).Elem(), fieldsOf(reflect.TypeFor[Credentials]()))
	default:
		r.fail(n.At, path, "this says not whose credentials", `want "shared", "user" or an object such as {"exchange": {"token_url": …}}`)
	}
}

// checkCredentials checks the keys that go with credentials of users, and completes the entry.
func (r *report) checkCredentials(path string, n *syntax.Node, s *Server) {
	if s.Credentials.User {
		given := n.Get("isolation")
		if given != nil && s.Isolation != IsolatePrincipal {
			r.fail(given.At, syntax.Below(path, "isolation"), "each user has his own connection", `leave the key out: "credentials" of users implies "principal"`)
		}
		s.Isolation = IsolatePrincipal
		if !n.Has("max_sessions") && s.MaxSessions == fewSessions { // nor in the defaults
			s.MaxSessions = userSessions
		}
	}
	for _, part := range []string{"env", "headers"} {
		texts, key := s.Env, `"isolation": "principal"`
		if part == "headers" {
			texts, key = s.Headers, `"credentials": "user"`
		}
		if names := (Server{Env: texts}).UserValues(); len(names) > 0 && s.Isolation != IsolatePrincipal {
			r.fail(n.Get(part).At, syntax.Below(path, part), "${user:"+names[0]+"} is of each user, and the users share this server", "add "+key)
		}
	}
	s.Credential = s.credential()
	r.checkExchange(syntax.Below(path, "credentials"), n.Get("credentials").Get("exchange"), s)
}

// checkExchange checks which keys of an exchange need each other.
func (r *report) checkExchange(path string, n *syntax.Node, s *Server) {
	x := s.Credentials.Exchange
	if n == nil || x == nil {
		return
	}
	path = syntax.Below(path, "exchange")
	r.checkURL(syntax.Below(path, "token_url"), n.Get("token_url"))
	r.checkURL(syntax.Below(path, "grant_url"), n.Get("grant_url"))
	switch {
	case x.Form == FormIDJAG && (x.GrantURL == "" || x.Audience == ""):
		r.fail(n.At, path, "id_jag needs the authorization server that takes the grant", `add "audience", its issuer, and "grant_url", its token endpoint`)
	case x.Form != FormIDJAG && (n.Has("grant_url") || n.Has("grant_client_id") || n.Has("grant_client_secret")):
		r.fail(n.At, path, "grant_url goes with id_jag", `add "form": "id_jag"`)
	case x.Form == FormOnBehalfOf && x.Scope == "":
		r.fail(n.At, path, "on_behalf_of names whom the token is for by a scope", `add "scope", such as "api://crm/.default"`)
	case s.Auth != nil:
		r.fail(n.At, path, "auth is given, too", "leave one of the two keys out: the exchanged token is sent in place of a login")
	}
	for name := range s.Headers {
		if strings.EqualFold(name, "Authorization") {
			r.fail(n.At, path, "headers has an Authorization too", "leave one of the two out")
		}
	}
}
