package oauth

import (
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/dynmcp/dynmcp/internal/lazyregexp"
	"github.com/dynmcp/dynmcp/schema"
)

// newClient returns the HTTP client for all requests of a login. Every secret in a request or
// an answer is registered for redaction before it can get into an error.
func newClient(server schema.Server, hide func(string, ...string), slot string) (*http.Client, error) {
	if server.Auth != nil {
		hide(slot+", client", server.Auth.ClientSecret, server.Auth.PrivateKey, server.Auth.IDPClientSecret)
	}
	g, err := newGuard(server)
	if err != nil {
		return nil, err
	}
	return g.client(func(req *http.Request, body []byte) {
		hide(slot+", sent", secretsSent(req)...)
		hide(slot+", received", secretsIn(body)...)
	}), nil
}

// formType is the content type of a request for a token.
const formType = "application/x-www-form-urlencoded"

// secretsSent returns the secrets in the form that a request posts.
func secretsSent(req *http.Request) []string {
	if req.GetBody == nil || !strings.HasPrefix(req.Header.Get("Content-Type"), formType) {
		return nil
	}
	body, err := req.GetBody()
	if err != nil {
		return nil
	}
	defer body.Close()
	text, _ := io.ReadAll(io.LimitReader(body, maxBody))
	form, _ := url.ParseQuery(string(text))
	var secrets []string
	for _, name := range []string{"code", "code_verifier", "client_secret", "client_assertion", "assertion", "subject_token", "refresh_token", "token"} {
		secrets = append(secrets, form[name]...)
	}
	return secrets
}

// secretMember finds secret members of an answer, even in invalid JSON.
var secretMember = lazyregexp.New(`"(?:access_token|refresh_token|id_token|client_secret|registration_access_token)"\s*:\s*"((?:[^"\\]|\\.)*)`)

func secretsIn(body []byte) []string {
	var secrets []string
	for _, m := range secretMember().FindAllSubmatch(body, -1) {
		secrets = append(secrets, string(m[1]))
	}
	return secrets
}

// Stated returns what an entry states of its login in place of the server, as keys and values, "" if
// nothing.
func Stated(a *schema.Auth) string {
	if a == nil {
		return ""
	}
	var all []string
	for _, one := range [][2]string{{"issuer", a.Issuer}, {"code_challenge", a.CodeChallenge}, {"callback", a.Callback}} {
		if one[1] != "" {
			all = append(all, one[0]+" "+one[1])
		}
	}
	return strings.Join(all, ", ")
}
