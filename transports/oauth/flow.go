package oauth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"github.com/dynmcp/dynmcp/internal/certs"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/oauth/logins"
)

// A Flow is a login by a person.
type Flow struct {
	LoginOptions
	Server schema.Server
	Scopes []string // requested in addition to those that the server names

	// Principal is the user of a gateway who logs in, "" for the user who runs dynmcp. Web is where
	// his browser comes back to; nil listens on this machine.
	Principal string
	Web       *Web

	// Show is called with the address of the login page, to open or to print it.
	Show func(address string)
	// Pasted yields lines that the user types: the callback address, if the browser is
	// on another machine. Empty ones are ignored. It may be nil.
	Pasted <-chan string
}

// Run logs in and stores the login. It ends with ctx.
func (f *Flow) Run(ctx context.Context) (*logins.Login, error) {
	f.complete()
	key := logins.KeyOf(f.Server).Of(f.Principal)
	before, err := f.Store.Load(key)
	if err != nil {
		return nil, err
	}
	back, err := f.listen(key)
	if err != nil {
		return nil, err
	}
	defer back.close()
	challenge, err := f.challenge(ctx)
	if err != nil {
		return nil, err
	}

	client, err := newClient(f.Server, f.Hide, key.Slot())
	if err != nil {
		return nil, err
	}
	resource, err := discover(client, f.Server, challenge.Header, before)
	if err != nil {
		return nil, err
	}
	made := &logins.Login{Server: f.Server.Name, Principal: f.Principal}
	proveTokens(client, made, resource)
	config := &auth.AuthorizationCodeHandlerConfig{
		RedirectURL:           back.RedirectURL,
		RequestRefreshToken:   true,
		AcceptUnadvertisedIss: true, // RFC 9207, 2.4: fetchCode compares it
		Client:                client,
		ScopeFilter:           func(named []string) []string { return f.scopes(named, before) },
		AuthorizationCodeFetcher: func(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			return f.fetchCode(ctx, args.URL, resource, back)
		},
		NewTokenSource: func(_ context.Context, c *oauth2.Config, token *oauth2.Token) (oauth2.TokenSource, error) {
			made.ClientID, made.ClientSecret = c.ClientID, c.ClientSecret
			made.TokenURL, made.AuthStyle, made.Scopes = c.Endpoint.TokenURL, c.Endpoint.AuthStyle, slices.Sorted(slices.Values(c.Scopes))
			if made.ClientSecret == "" {
				made.AuthStyle = oauth2.AuthStyleInParams // nothing to authenticate with
			}
			return oauth2.StaticTokenSource(token), takeToken(made, token)
		},
	}
	f.registration(config, resource)
	err = authorize(ctx, config, resource.server.String(), challenge)
	if errors.As(err, new(*oauthex.ClientRegistrationError)) && len(resource.found.Methods) == 0 {
		// Some servers register no public clients, and do not say so.
		resource.register = nil
		config.DynamicClientRegistrationConfig.Metadata.TokenEndpointAuthMethod = ""
		err = authorize(ctx, config, resource.server.String(), challenge)
	}
	if err != nil {
		return nil, cmp.Or(resource.err, f.explain(ctx, err, challenge, resource, back))
	}
	resource.complete(made)
	_, unlock, err := f.Store.Lock(ctx, key)
	if err != nil {
		return nil, err
	}
	defer unlock()
	return made, f.Store.Save(key, made)
}

// listen opens what the browser comes back to.
func (f *Flow) listen(key logins.Key) (*callback, error) {
	if f.Web != nil {
		return f.Web.callback(key)
	}
	return listen(f.Server.Auth)
}

func authorize(ctx context.Context, config *auth.AuthorizationCodeHandlerConfig, server string, challenge *http.Response) error {
	handler, err := auth.NewAuthorizationCodeHandler(config)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, server, nil)
	if err != nil {
		return err
	}
	return handler.Authorize(ctx, req, challenge)
}

// registration selects the client: from the config, from a metadata document, or one registered
// for this login.
func (f *Flow) registration(config *auth.AuthorizationCodeHandlerConfig, resource *discovery) {
	a := f.Server.Auth
	switch {
	case a != nil && isDocument(a.ClientID):
		config.ClientIDMetadataDocumentConfig = &auth.ClientIDMetadataDocumentConfig{URL: a.ClientID}
	case a != nil && a.ClientID != "":
		config.PreregisteredClient = credentialsOf(a.ClientID, a.ClientSecret)
		return
	}
	resource.register = &oauthex.ClientRegistrationMetadata{
		RedirectURIs:            []string{config.RedirectURL},
		ClientName:              "dynmcp",
		GrantTypes:              []string{"authorization_code", "refresh_token"},
		ResponseTypes:           []string{"code"},
		TokenEndpointAuthMethod: "none", // unless the metadata lists others
	}
	config.DynamicClientRegistrationConfig = &auth.DynamicClientRegistrationConfig{Metadata: resource.register}
}

// scopes returns the scopes to request: those of the config or else the server, those of the
// previous login, those that the server requested since, and those that the user adds.
func (f *Flow) scopes(named []string, before *logins.Login) []string {
	if a := f.Server.Auth; a != nil && a.Scope != "" {
		named = strings.Fields(a.Scope)
	}
	all := slices.Clone(named)
	more := slices.Clone(f.Scopes)
	if before != nil && (len(before.Wanted) > 0 || len(f.Scopes) > 0) {
		more = slices.Concat(before.Scopes, before.Wanted, more)
	}
	for _, s := range more {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

// challenge sends a request without a token, and returns the server's answer. Some servers
// require a login only after initialize, so it also lists tools. A server that requires no login
// may still have metadata.
func (f *Flow) challenge(ctx context.Context) (*http.Response, error) {
	client, err := configuredClient(f.Server)
	if err != nil {
		return nil, err
	}
	defer client.CloseIdleConnections()
	first, err := f.ask(ctx, client, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"dynmcp","version":"login"}}}`, "")
	if err != nil {
		return nil, fmt.Errorf("ask the server for its login: %w", withHint(withoutURL(err)))
	}
	if first.StatusCode == http.StatusOK && f.Server.Transport != schema.SSE {
		then, err := f.ask(ctx, client, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, first.Header.Get("Mcp-Session-Id"))
		if err == nil && then.StatusCode == http.StatusUnauthorized {
			return then, nil
		}
	}
	return first, nil
}

// configuredClient returns a client for addresses of an entry, with its certificates. It follows no redirect.
func configuredClient(server schema.Server) (*http.Client, error) {
	certificates, err := certs.Config(server.TLS)
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = certificates
	return &http.Client{
		Transport:     transport,
		Timeout:       requestTime,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

// ask sends a message with the headers of the config. It returns the response without its body.
func (f *Flow) ask(ctx context.Context, client *http.Client, message, session string) (*http.Response, error) {
	method, body := http.MethodPost, message
	if f.Server.Transport == schema.SSE {
		method, body = http.MethodGet, ""
	}
	req, err := http.NewRequestWithContext(ctx, method, f.Server.Address(), strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	for name, value := range f.Server.Headers {
		req.Header.Set(name, value)
	}
	req.Header.Set("Accept", "application/json, text/event-stream")
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if session != "" {
		req.Header.Set("Mcp-Session-Id", session)
		req.Header.Set("Mcp-Protocol-Version", "2025-11-25")
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	resp.Body.Close()
	resp.Body = http.NoBody
	if _, err := oauthex.ParseWWWAuthenticate(resp.Header.Values("WWW-Authenticate")); err != nil {
		resp.Header.Del("WWW-Authenticate") // the metadata is found without it
	}
	return resp, nil
}

// pastedText returns the first line with text, without white space and quotes around it; "" at the end.
func (f *Flow) pastedText(ctx context.Context) string {
	for {
		select {
		case line, ok := <-f.Pasted:
			if text := strings.Trim(line, " \t\r\n\"'"); text != "" || !ok {
				return text
			}
		case <-ctx.Done():
			return ""
		}
	}
}

// fetchCode shows the login page, and waits for the callback or for its pasted address.
func (f *Flow) fetchCode(ctx context.Context, address string, resource *discovery, back *callback) (*auth.AuthorizationResult, error) {
	if err := resource.checkFound(); err != nil {
		return nil, err
	}
	address, state, err := checkPage(resource.guard, address, resource.name())
	if err != nil {
		return nil, err
	}
	if address, err = back.expect(state, address); err != nil {
		return nil, err
	}
	f.Show(address)

	// The user may type while the browser comes back: the first result counts.
	ctx, done := context.WithCancelCause(ctx)
	var typing sync.WaitGroup
	defer typing.Wait()
	defer done(nil)
	typing.Go(func() {
		text := f.pastedText(ctx)
		u, err := url.Parse(text)
		switch {
		case text == "": // the login has ended, or the input
		case err != nil || !u.Query().Has("state"):
			done(errors.New("what was pasted is not the address at which the browser ended: that has a state"))
		case errors.Is(back.accept(u.Query()), errNoSuchLogin):
			done(errors.New("the pasted address is of another login: state mismatch"))
		}
	})
	result, err := back.wait(ctx)
	if err == nil {
		err = resource.checkIss(result)
	}
	return result, err
}

// explain adds the reason of a failed login to the SDK's error.
func (f *Flow) explain(ctx context.Context, err error, challenge *http.Response, resource *discovery, back *callback) error {
	refused, isRefused := errors.AsType[*BlockedAddressError](err)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded) && resource.register == nil && resource.auth.ClientID != "":
		return fmt.Errorf(`nobody has logged in in time; if the login page refuses %s, write the address that the client is registered with as "callback" into "auth" of the entry`, back.RedirectURL)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return errors.New("nobody has logged in in time; --timeout allows more")
	case ctx.Err() != nil:
		return ctx.Err()
	case isRefused:
		return refused
	case (f.Server.Auth == nil || f.Server.Auth.ClientID == "") && resource.found.Token != "" && resource.found.Register == "":
		return errors.New(`the authorization server has no client registration: have a client registered by its operator, and write its id as "client_id" into "auth" of the entry`)
	}
	err = tokenError(err)
	if resource.found.Token == "" && challenge.StatusCode != http.StatusUnauthorized {
		return fmt.Errorf(`the server does not ask for a login (HTTP status %s), and has no metadata of one: %s; if it needs a key, write that into "headers" of the entry`,
			challenge.Status, printed(strings.TrimSpace(err.Error())))
	}
	return err
}
