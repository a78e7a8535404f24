package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/oauth2"

	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/oauth/logins"
)

// Logout forgets the login of a user at a server, or with "" that for all, and reports whether there was one. If the authorization
// server supports it, the tokens are revoked (RFC 7009) and the client that was registered
// for the login is deleted (RFC 7592); the error reports failures of these. The login is
// forgotten in any case.
func (o LoginOptions) Logout(ctx context.Context, server schema.Server, principal string) (was bool, err error) {
	o.complete()
	key := logins.KeyOf(server).Of(principal)
	_, unlock, err := o.Store.Lock(ctx, key)
	if err != nil {
		return false, err
	}
	defer unlock()
	all, err := o.Store.LoadAll(key)
	was, deleted := o.Store.Delete(key)
	if len(all) > 0 && !slices.ContainsFunc(all, func(l *logins.Login) bool { return l.Issuer != "" }) {
		was = false // only scopes for the next login were recorded
	}
	if len(all) == 0 || err != nil || deleted != nil {
		return was, errors.Join(err, deleted)
	}
	slot := key.Slot()
	for _, l := range all {
		o.Hide(slot, l.Secrets.All()...)
	}
	client, err := newClient(server, o.Hide, slot)
	if err != nil {
		return was, err
	}
	for _, l := range all {
		err = errors.Join(err, endLogin(ctx, client, server, l))
	}
	return was, err
}

// endLogin revokes the tokens of a login at its issuer, and deletes the registered client.
func endLogin(ctx context.Context, client *http.Client, server schema.Server, l *logins.Login) error {
	var failed []error
	secret := clientSecretOf(l, server)
	// The refresh token first: some servers revoke the whole grant with it.
	for _, token := range []struct{ hint, value string }{{"refresh_token", l.RefreshToken}, {"access_token", l.AccessToken}} {
		if l.RevokeURL == "" || token.value == "" {
			continue
		}
		if err := revoke(ctx, client, l, secret, token.hint, token.value); err != nil {
			failed = append(failed, fmt.Errorf("revoke the %s: %w", strings.ReplaceAll(token.hint, "_", " "), err))
		}
	}
	if l.RegisterURL != "" && l.RegistrationToken != "" {
		req, err := http.NewRequestWithContext(ctx, http.MethodDelete, l.RegisterURL, nil)
		if err == nil {
			req.Header.Set("Authorization", "Bearer "+l.RegistrationToken)
			err = send(client, req)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("delete the registered client: %w", err))
		}
	}
	return errors.Join(failed...)
}

func revoke(ctx context.Context, client *http.Client, l *logins.Login, secret, hint, token string) error {
	form := url.Values{"token": {token}, "token_type_hint": {hint}}
	if secret == "" || l.AuthStyle == oauth2.AuthStyleInParams {
		form.Set("client_id", l.ClientID)
		if secret != "" {
			form.Set("client_secret", secret)
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.RevokeURL, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", formType)
	if form.Get("client_id") == "" {
		req.SetBasicAuth(url.QueryEscape(l.ClientID), url.QueryEscape(secret)) // RFC 6749, 2.3.1
	}
	return send(client, req)
}

func send(client *http.Client, req *http.Request) error {
	resp, err := client.Do(req)
	if err != nil {
		return withoutURL(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	_, _ = io.Copy(io.Discard, resp.Body)
	if resp.StatusCode >= 300 {
		var said struct {
			Error string `json:"error"`
		}
		if json.Unmarshal(text, &said) == nil && said.Error == "unsupported_token_type" { // RFC 7009, 2.2.1: it ends by itself
			return nil
		}
		return fmt.Errorf("HTTP status %s", resp.Status)
	}
	return nil
}
