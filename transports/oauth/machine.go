package oauth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth/extauth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
)

// machineToken returns the token of the last login by client_credentials (RFC 6749, 4.4) or
// jwt_bearer (RFC 7523) while it is valid. These logins are kept in memory: another one costs
// one request and no person.
func (s *Session) machineToken() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.login != nil && s.login.fresh(time.Now()) {
		return s.login.AccessToken
	}
	return ""
}

// machineLogin logs in with the client of the config after resp, a 401. It returns the token.
func (s *Session) machineLogin(ctx context.Context, rejected string, resp *http.Response) (string, error) {
	challenge := http.Header{"Www-Authenticate": resp.Header.Values("WWW-Authenticate")}
	return s.shared(ctx, rejected, func(ctx context.Context) (string, error) { return s.machineLoginOnce(ctx, rejected, challenge) })
}

func (s *Session) machineLoginOnce(ctx context.Context, rejected string, challenge http.Header) (string, error) {
	if token := s.machineToken(); token != "" && token != rejected {
		return token, nil // another request was faster
	}
	s.mu.Lock()
	tooSoon := rejected != "" && time.Since(s.renewedAt) < renewPause || time.Now().Before(s.retryAt)
	s.mu.Unlock()
	if tooSoon {
		return "", nil
	}
	l, err := s.clientCredentials(ctx, challenge)
	if err != nil {
		s.pause(err)
		s.Logger.Warn("login failed", "upstream", s.key.Server, "err", err)
		return "", err
	}
	s.Hide(s.slot(), l.Secrets.all()...)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.login, s.issuer, s.renewedAt, s.retryAt, s.failures = l, l.Issuer, time.Now(), time.Time{}, 0
	return l.AccessToken, nil
}

func (s *Session) clientCredentials(ctx context.Context, challenge http.Header) (*Login, error) {
	seen := &recorder{}
	client, err := newClient(s.server, s.Hide, s.slot(), seen.observe)
	if err != nil {
		return nil, err
	}
	resource, err := checkResource(client, s.server, challenge)
	if err != nil {
		return nil, err
	}
	l := &Login{Server: s.key.Server, ClientID: s.server.Auth.ClientID}
	proveTokens(client, l, resource.wantsProofs)
	s.mu.Lock()
	issuer := s.issuer
	s.mu.Unlock()
	a := s.server.Auth
	secret := a.ClientSecret
	if secret == "" || a.Grant == schema.GrantJWTBearer {
		secret = cmp.Or(secret, "none") // required by the SDK, removed by assertion
		changed := &assertion{next: client.Transport, auth: a, issuer: seen.issuer}
		if a.IDP != "" {
			changed.grant = func(ctx context.Context, idToken, audience, scope string) (string, error) {
				return s.grantFrom(ctx, idToken, audience, resource.name(), scope)
			}
		}
		client.Transport = changed
	}
	handler, err := extauth.NewClientCredentialsHandler(&extauth.ClientCredentialsHandlerConfig{
		Credentials: &oauthex.ClientCredentials{ClientID: a.ClientID, Issuer: issuer, ClientSecretAuth: &oauthex.ClientSecretAuth{ClientSecret: secret}},
		HTTPClient:  client,
	})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.server.URL, nil)
	if err != nil {
		return nil, err
	}
	// The handler requests the scopes of the challenge, which are replaced with those of the
	// config, if any.
	resp := &http.Response{StatusCode: http.StatusUnauthorized, Header: withScope(challenge, a.Scope), Body: http.NoBody}
	if err := handler.Authorize(ctx, req, resp); err != nil {
		return nil, cmp.Or(resource.err, tokenError(err))
	}
	source, err := handler.TokenSource(ctx)
	if err != nil || source == nil {
		return nil, errors.Join(errors.New("the login gave no token"), err)
	}
	token, err := source.Token()
	if err != nil {
		return nil, tokenError(err)
	}
	l.Issuer = seen.issuer()
	return l, l.take(token)
}

// withScope returns the challenge with these scopes and the given metadata.
func withScope(challenge http.Header, scope string) http.Header {
	given, err := oauthex.ParseWWWAuthenticate(challenge.Values("WWW-Authenticate"))
	switch {
	case scope == "" && err != nil:
		return http.Header{} // the metadata is found without it
	case scope == "":
		return challenge
	}
	text := fmt.Sprintf("Bearer scope=%q", strings.Join(strings.Fields(scope), " "))
	for _, c := range given {
		if metadata := c.Params["resource_metadata"]; metadata != "" {
			text += fmt.Sprintf(", resource_metadata=%q", transports.Printable([]byte(metadata), 2000))
		}
	}
	return http.Header{"Www-Authenticate": {text}}
}
