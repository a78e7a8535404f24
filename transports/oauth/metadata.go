package oauth

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/go-jose/go-jose/v4"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/dynmcp/dynmcp/internal/certs"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/oauth/logins"
)

// A discovery decides which answers to the SDK's discovery are metadata of the server and of its
// authorization server. The SDK goes through the well-known addresses, and compares addresses as text:
// an answer that is no metadata is shown to it as absent, so that it goes on, metadata that must
// not be used ends the login, and other metadata is shown in the spelling that it expects. It is used
// by one login, one request at a time.
type discovery struct {
	next   http.RoundTripper
	guard  *guard
	server Resource
	entry  string        // its name
	auth   schema.Auth   // of the entry
	before *logins.Login // the previous login, which a client of the config stays with; nil without one
	named  string        // the address of metadata in the server's challenge, "" if absent

	err      error  // why the login must end; no more requests are sent after it
	resource string // the metadata's name for the server, "" without metadata
	issuer   string // the authorization server that the metadata names, or else the origin
	found    authorizationServer
	// By its challenge or metadata, the server accepts tokens bound to a key. Support by the
	// authorization server is not enough: many support it for servers that do not.
	proofs bool

	// register is the client to register, if any; its method is one that the metadata lists.
	register     *oauthex.ClientRegistrationMetadata
	registration struct {
		ClientID string `json:"client_id"`
		URL      string `json:"registration_client_uri"`
		Token    string `json:"registration_access_token"`
	}
}

// An authorizationServer is what is used of the metadata of one (RFC 8414, OpenID Connect Discovery).
type authorizationServer struct {
	Issuer     string   `json:"issuer"`
	Authorize  string   `json:"authorization_endpoint"`
	Token      string   `json:"token_endpoint"`
	Register   string   `json:"registration_endpoint"`
	Revocation string   `json:"revocation_endpoint"`
	Challenges []string `json:"code_challenge_methods_supported"`
	Methods    []string `json:"token_endpoint_auth_methods_supported"`
	SendsIss   bool     `json:"authorization_response_iss_parameter_supported"`
}

const resourceWellKnown = "/.well-known/oauth-protected-resource"

// discover puts a discovery in front of the client of a login. It is an error if the address in the
// challenge must not be requested.
func discover(client *http.Client, server schema.Server, challenge http.Header, before *logins.Login) (*discovery, error) {
	g, err := newGuard(server)
	if err != nil {
		return nil, err
	}
	d := &discovery{next: client.Transport, guard: g, server: g.server, entry: server.Name, before: before, issuer: g.server.origin()}
	if server.Auth != nil {
		d.auth = *server.Auth
	}
	if err := checkName(g.server.name); err != nil {
		return nil, err
	}
	client.Transport = d
	given, _ := oauthex.ParseWWWAuthenticate(challenge.Values("WWW-Authenticate")) // without it, well-known addresses are tried
	for _, one := range given {
		d.proofs = d.proofs || one.Scheme == "dpop"
		d.named = cmp.Or(d.named, one.Params["resource_metadata"])
	}
	if d.named == "" {
		return d, nil
	}
	return d, d.checkAddress("its resource metadata", d.named)
}

func (d *discovery) checkAddress(what, address string) error {
	u, err := url.Parse(address)
	if err == nil {
		err = cmp.Or(d.guard.check(u), checkName(u))
	}
	if err != nil {
		return fmt.Errorf("the server names %s at %s: %w", what, withoutQuery(address), err)
	}
	return nil
}

// name returns the resource for which tokens are requested, in the metadata's own spelling.
func (d *discovery) name() string { return cmp.Or(d.resource, d.server.String()) }

func (d *discovery) RoundTrip(req *http.Request) (*http.Response, error) {
	asked := beforeRedirects(req)
	ofResource := asked.String() == d.named || strings.HasPrefix(asked.Path, resourceWellKnown)
	switch {
	case d.err != nil:
		closeBody(req)
		return nil, d.err
	case req.Method != http.MethodGet:
		return d.post(req)
	case ofResource && req.URL == asked && d.server.query != "" && asked.String() != d.named && asked.Path != resourceWellKnown:
		req = req.Clone(req.Context())
		req.URL.RawQuery = d.server.query // RFC 9728, 3.1
	}
	resp, err := d.next.RoundTrip(req)
	switch {
	case certs.Hint(err) != "": // or the SDK would take what it asks for as absent
		d.err = withHint(err)
		return nil, d.err
	case ofResource && errors.As(err, new(*BlockedAddressError)):
		d.err = fmt.Errorf("its resource metadata: %w", err)
		return nil, d.err
	case err != nil || resp.StatusCode != http.StatusOK:
		return resp, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	var shown any
	if ofResource {
		shown, d.err = d.ofResource(asked, body)
	} else {
		shown, d.err = d.ofIssuer(body)
	}
	if d.err != nil {
		return nil, d.err
	}
	return documentOf(resp, shown), nil
}

// documentOf returns the answer with a document, or that it is absent if shown is nil.
func documentOf(resp *http.Response, shown any) *http.Response {
	if shown == nil {
		return &http.Response{Status: "404 Not Found", StatusCode: http.StatusNotFound, Body: http.NoBody, Request: resp.Request}
	}
	text, _ := json.Marshal(shown) // made of JSON
	return &http.Response{
		Status: resp.Status, StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(text)), Request: resp.Request,
	}
}

// beforeRedirects returns the address that led to a request.
func beforeRedirects(req *http.Request) *url.URL {
	for req.Response != nil {
		req = req.Response.Request
	}
	return req.URL
}

// ofResource returns resource metadata from an address as the SDK expects it, nil if it is none, or
// why it must not be used (RFC 9728, 3.3).
func (d *discovery) ofResource(at *url.URL, body []byte) (any, error) {
	var found oauthex.ProtectedResourceMetadata
	if json.Unmarshal(body, &found) != nil || found.Resource == "" || len(found.AuthorizationServers) == 0 {
		return nil, nil
	}
	for i, address := range found.AuthorizationServers {
		// The first one is used, and all must be addresses of authorization servers.
		if i > 0 && strings.HasPrefix(address, "https://") {
			continue
		}
		if err := d.checkAddress("an authorization server", address); err != nil {
			return nil, err
		}
	}
	root := at.Path == resourceWellKnown && at.String() != d.named
	if !d.server.SameAs(found.Resource, root) && !d.ownIssuer(found) {
		return nil, fmt.Errorf("its resource metadata is that of another resource, %s, and not of %s (RFC 9728, 3.3); %s", withoutQuery(found.Resource), d.server, noKey)
	}
	d.resource, d.issuer = found.Resource, found.AuthorizationServers[0]
	found.AuthorizationServers = []string{folded(d.issuer)}
	d.proofs = d.proofs || found.DPOPBoundAccessTokensRequired || slices.Contains(found.DPOPSigningAlgValuesSupported, string(jose.ES256))
	found.Resource = d.server.String()
	if root {
		found.Resource = d.server.origin()
	}
	return found, nil
}

// noKey ends the refusals that no key of the config answers.
const noKey = "no key of the entry allows that: its operator has to correct it"

// ownIssuer reports whether metadata only names another part of the server's origin, which is its own
// authorization server: without metadata tokens for that part would be requested there as well.
func (d *discovery) ownIssuer(found oauthex.ProtectedResourceMetadata) bool {
	resource, err1 := url.Parse(found.Resource)
	issuer, err2 := url.Parse(found.AuthorizationServers[0])
	return err1 == nil && err2 == nil && d.server.SameOrigin(resource) && d.server.SameOrigin(issuer)
}

// ofIssuer returns metadata of the authorization server as the SDK expects it, nil if it is none, or
// why it must not be used.
func (d *discovery) ofIssuer(body []byte) (any, error) {
	var found authorizationServer
	var all map[string]json.RawMessage
	person := !d.auth.Machine()
	if json.Unmarshal(body, &found) != nil || json.Unmarshal(body, &all) != nil || found.Issuer == "" || found.Token == "" || person && found.Authorize == "" {
		return nil, nil
	}
	if err := d.checkIssuer(found); err != nil {
		return nil, err
	}
	if person {
		if err := d.checkPKCE(found); err != nil {
			return nil, err
		}
	}
	d.found = found
	if d.register != nil {
		d.register.TokenEndpointAuthMethod = methodOf(found)
	}
	all["issuer"], _ = json.Marshal(folded(d.issuer))
	all["code_challenge_methods_supported"] = json.RawMessage(`["S256"]`) // as checked; a machine needs none
	return all, nil
}

// checkIssuer rejects metadata of another issuer than the entry states, or else the server names (RFC
// 8414, 3.3). A client of the config, which may have a secret, stays with the issuer of its previous
// login; if the entry states the issuer, which other metadata may have as well, also with its endpoint.
func (d *discovery) checkIssuer(found authorizationServer) error {
	stated := d.auth.Issuer
	switch {
	case stated != "" && found.Issuer != stated:
		return fmt.Errorf(`metadata issuer %q does not match the "issuer" in "auth" of the entry, %q: correct the key, or remove it`, printed(found.Issuer), printed(stated))
	case stated == "" && !sameIssuer(found.Issuer, d.issuer):
		return fmt.Errorf(`metadata issuer %q does not match issuer URL %[2]q, which the server names (RFC 8414, 3.3): if %[1]q is right, write it as "issuer" into "auth" of the entry`, printed(found.Issuer), printed(d.issuer))
	case d.auth.ClientID == "" || isDocument(d.auth.ClientID) || d.before == nil:
		return nil
	case d.before.Issuer != "" && !sameIssuer(found.Issuer, d.before.Issuer):
		return fmt.Errorf("authorization server issuer %q does not match pre-registered credentials issuer %q%s", printed(found.Issuer), printed(d.before.Issuer), d.logoutFirst())
	case stated != "" && d.before.TokenURL != "" && hostOf(found.Token) != hostOf(d.before.TokenURL):
		return fmt.Errorf("authorization server at %q does not match pre-registered credentials issuer at %q%s", hostOf(found.Token), hostOf(d.before.TokenURL), d.logoutFirst())
	}
	return nil
}

// isDocument reports whether a client id is the address of a client's metadata, which any issuer may
// read (Client ID Metadata Document).
func isDocument(clientID string) bool { return strings.HasPrefix(clientID, "https://") }

// logoutFirst ends the refusals to give the client of the config to another issuer.
func (d *discovery) logoutFirst() string {
	return fmt.Sprintf(`: if both are the server's, run "dynmcp login %s --forget" first`, d.entry)
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return printed(u.Host)
}

// checkFound rejects an authorization server without metadata if the entry states its issuer.
func (d *discovery) checkFound() error {
	if d.auth.Issuer == "" || d.found.Issuer != "" {
		return nil
	}
	d.err = fmt.Errorf(`the authorization server at %s has no metadata that "issuer" in "auth" of the entry can be compared with: remove the key`, withoutQuery(d.issuer))
	return d.err
}

// sameIssuer compares issuers. Metadata of many servers differs by a slash at the end.
func sameIssuer(a, b string) bool { return folded(a) == folded(b) }

// checkPKCE rejects a server without S256 (OAuth 2.1, 7.5.2): the SDK accepts any method.
func (d *discovery) checkPKCE(found authorizationServer) error {
	switch {
	case slices.Contains(found.Challenges, "S256"), len(found.Challenges) == 0 && d.auth.CodeChallenge == "S256":
		return nil
	case len(found.Challenges) == 0:
		return errors.New(`the metadata of the authorization server has no code_challenge_methods_supported, so it may not support PKCE: if it does, write "code_challenge": "S256" into "auth" of the entry`)
	}
	return fmt.Errorf("the authorization server does not offer PKCE with S256, but %s; %s", printed(strings.Join(found.Challenges, ", ")), noKey)
}

// methodOf returns the method of authentication to register a client with: none if the server may
// support that, or else one that the SDK knows.
func methodOf(found authorizationServer) string {
	for _, method := range []string{"none", "client_secret_post", "client_secret_basic"} {
		if slices.Contains(found.Methods, method) {
			return method
		}
	}
	return "none"
}

// post sends a request of the login: for a token, with the metadata's own name of the resource, or
// for a client.
func (d *discovery) post(req *http.Request) (*http.Response, error) {
	if err := d.checkFound(); err != nil {
		closeBody(req)
		return nil, err
	}
	form := req.GetBody != nil && strings.HasPrefix(req.Header.Get("Content-Type"), formType)
	if form {
		body, err := req.GetBody()
		closeBody(req)
		if err != nil {
			return nil, err
		}
		text, _ := io.ReadAll(body)
		if values, err := url.ParseQuery(string(text)); err == nil && values.Has("resource") {
			values.Set("resource", d.name())
			text = []byte(values.Encode())
		}
		req = req.Clone(req.Context())
		req.ContentLength = int64(len(text))
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }
		req.Body, _ = req.GetBody()
	}
	resp, err := d.next.RoundTrip(req)
	if err != nil || form || resp.StatusCode >= 300 {
		return resp, withHint(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	_ = json.Unmarshal(body, &d.registration) // if invalid, logout leaves the client registered
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// withHint returns the error of a connection with what answers it, if certificates are the reason.
func withHint(err error) error {
	if hint := certs.Hint(err); hint != "" {
		return fmt.Errorf("%w: %s", err, hint)
	}
	return err
}

// checkIss rejects the code of another issuer (RFC 9207, 2.4), and returns the issuer to the SDK in the
// spelling that it expects.
func (d *discovery) checkIss(result *auth.AuthorizationResult) error {
	want := cmp.Or(d.found.Issuer, d.issuer)
	switch {
	case result.Iss == "" && d.found.SendsIss:
		return fmt.Errorf("the browser came back without the iss parameter that the metadata announces (RFC 9207); %s", noKey)
	case result.Iss == "":
		return nil
	case result.Iss != want:
		return fmt.Errorf("the browser came back with the issuer %q, which does not match expected issuer %q; %s", printed(result.Iss), printed(want), noKey)
	}
	result.Iss = folded(d.issuer)
	return nil
}

// complete adds the details of the authorization server to a login.
func (d *discovery) complete(l *logins.Login) {
	l.Issuer, l.RevokeURL, l.Resource = cmp.Or(d.found.Issuer, d.issuer), d.found.Revocation, d.name()
	if d.registration.ClientID == l.ClientID {
		l.RegisterURL, l.RegistrationToken = d.registration.URL, d.registration.Token
	}
}

// withoutQuery returns an address for messages, without its parameters, which may be secret.
func withoutQuery(address string) string {
	address, _, _ = strings.Cut(address, "?")
	return printed(address)
}

func printed(text string) string { return transports.Printable([]byte(text), 200) }
