package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
	"golang.org/x/sync/singleflight"

	"github.com/dynmcp/dynmcp/internal/records"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/oauth/logins"
)

const (
	// renewTime limits a renewal with everything that it waits for: the lock that another
	// process holds during its own renewal, the keyring, one request.
	renewTime = 30 * time.Second
	// renewPause is the shortest time between two renewals of a token that is rejected:
	// another renewal would not help.
	renewPause = 10 * time.Second
	// refreshPause and refreshMost are the first and the longest pause after a failed refresh.
	refreshPause = time.Second
	refreshMost  = time.Minute
)

// renew returns a token other than the rejected one, fresh if possible, from the store or by a
// refresh; empty if absent.
func (s *Session) renew(ctx context.Context, rejected string) (string, error) {
	return oneToken(ctx, &s.group, rejected, func(ctx context.Context) (string, error) { return s.renewOnce(ctx, rejected) })
}

// oneToken gets one replacement for a rejected token for all callers that need it at the same
// time. A caller that gives up does not end it for the others.
func oneToken(ctx context.Context, group *singleflight.Group, rejected string, get func(context.Context) (string, error)) (string, error) {
	done := group.DoChan(rejected, func() (token any, err error) {
		defer func() {
			if p := recover(); p != nil {
				token, err = "", fmt.Errorf("internal error: %v", p)
			}
		}()
		ctx, cancel := context.WithTimeout(context.Background(), renewTime)
		defer cancel()
		return get(ctx)
	})
	select {
	case r := <-done:
		token, _ := r.Val.(string)
		return token, r.Err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func (s *Session) renewOnce(ctx context.Context, rejected string) (string, error) {
	l, err := s.loadWithRetry(ctx)
	if err != nil {
		s.mu.Lock()
		l = s.login // as it was read before
		s.mu.Unlock()
		if l != nil && errors.Is(err, records.ErrUnavailable) {
			return s.withoutRefresh(l, rejected, err)
		}
		return "", s.loadFailure(err)
	}
	if token, final := s.storedToken(l, rejected); final {
		return token, nil
	}
	s.mu.Lock()
	wait, failed := time.Until(s.retryAt), s.failed
	s.mu.Unlock()
	if wait > 0 {
		return s.withoutRefresh(l, rejected, fmt.Errorf("the last refresh of its login failed: %w; the next is due in %s", failed, wait.Truncate(time.Second)+time.Second))
	}

	// The holder of the lock refreshes. Others wait here and find its result: if tokens are
	// valid for one refresh only, a second one would end the login.
	ctx, unlock, err := s.Store.Lock(ctx, s.key)
	if err != nil {
		s.pause(err)
		return s.withoutRefresh(l, rejected, err)
	}
	defer unlock()
	if l, err = s.load(); err != nil {
		return "", s.loadFailure(err)
	}
	if token, final := s.storedToken(l, rejected); final {
		return token, nil
	}
	own := *l // others read the login that load published
	l = &own
	err = s.refresh(ctx, l)
	switch {
	case errors.Is(err, errRelogin):
		f := s.failure(transports.CodeAuthRequired, s.loginCommand(), err)
		f.Login = true
		return "", f
	case err != nil:
		s.Logger.Warn("refresh failed", "upstream", s.key.Server, "err", err)
		s.pause(err)
		return s.withoutRefresh(l, rejected, fmt.Errorf("refresh its login: %w", err))
	}
	s.mu.Lock()
	s.login, s.renewedAt, s.retryAt, s.failures = l, time.Now(), time.Time{}, 0
	s.mu.Unlock()
	s.Logger.Debug("login refreshed", "upstream", s.key.Server, "expires", l.Expires)
	return l.AccessToken, nil
}

// load reads the login from the store.
func (s *Session) load() (*logins.Login, error) {
	stamp := s.Store.Stamp() // before it is read, so that no change is missed
	l, err := s.Store.Load(s.key)
	if err != nil {
		return nil, err
	}
	if l != nil {
		s.Hide(s.slot(), l.Secrets.All()...)
	}
	s.mu.Lock()
	s.read, s.login, s.stamp, s.loadedAt, s.unreachableSince = true, l, stamp, time.Now(), time.Time{}
	s.mu.Unlock()
	return l, nil
}

// loadWithRetry is load, with retries for up to logins.WaitTime while the state of the cluster cannot be
// reached, so that an election of NATS fails no request. A longer outage delays one request only.
func (s *Session) loadWithRetry(ctx context.Context) (*logins.Login, error) {
	for {
		l, err := s.load()
		if !errors.Is(err, records.ErrUnavailable) {
			return l, err
		}
		s.mu.Lock()
		if s.unreachableSince.IsZero() {
			s.unreachableSince = time.Now()
		}
		lasted := time.Since(s.unreachableSince)
		s.mu.Unlock()
		if lasted >= logins.WaitTime {
			return nil, err
		}
		select {
		case <-time.After(logins.Pause):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// loadFailure returns the failure of a request if its login cannot be read. An outage of the
// cluster's state is not the server's fault: the retry budget does not count it.
func (s *Session) loadFailure(err error) error {
	if errors.Is(err, records.ErrUnavailable) {
		return s.failure(transports.CodeNotPlaced, "call again: the state of the cluster, which has its login, cannot be reached now", err)
	}
	return s.failure(transports.CodeAuthRequired, "", err)
}

func (s *Session) slot() string { return s.key.Slot() }

// storedToken returns the token to use if a stored login needs no refresh or cannot have one, and
// reports whether that is so.
func (s *Session) storedToken(l *logins.Login, rejected string) (token string, final bool) {
	now := time.Now()
	switch {
	case l == nil:
		return "", true
	case l.AccessToken != rejected && l.Fresh(now):
		return l.AccessToken, true
	case l.RefreshToken == "" && l.AccessToken != rejected && l.Valid(now):
		return l.AccessToken, true
	case l.RefreshToken == "":
		return "", true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return "", rejected != "" && l.AccessToken == rejected && now.Sub(s.renewedAt) < renewPause
}

// withoutRefresh continues with the present token, as long as it may be valid.
func (s *Session) withoutRefresh(l *logins.Login, rejected string, err error) (string, error) {
	switch {
	case l.AccessToken != rejected && l.Valid(time.Now()):
		return l.AccessToken, nil
	case errors.Is(err, records.ErrUnavailable):
		return "", s.loadFailure(err)
	}
	f := s.failure(transports.CodeUnreachable, "its login expired and cannot be refreshed now"+transports.TriesAgain, err)
	f.RetryAfter = refreshPause
	return "", f
}

// pause prevents refreshes for a while after a failed one.
func (s *Session) pause(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = err
	s.retryAt = time.Now().Add(min(refreshPause<<min(s.failures, 10), refreshMost))
	s.failures++
}

// refresh exchanges the refresh token (RFC 6749, 6) and stores the result. The caller holds
// the lock. An errRelogin means that the token is invalid; it was forgotten, unless
// another one was stored meanwhile.
func (s *Session) refresh(ctx context.Context, l *logins.Login) error {
	client, err := newClient(s.server, s.Hide, s.slot())
	if err != nil {
		return err
	}
	proveTokens(client, l, nil)
	config := clientcredentials.Config{
		ClientID:     l.ClientID,
		ClientSecret: clientSecretOf(l, s.server),
		TokenURL:     l.TokenURL,
		AuthStyle:    l.AuthStyle,
		EndpointParams: url.Values{
			"grant_type":    {"refresh_token"},
			"refresh_token": {l.RefreshToken},
			"resource":      {l.Resource}, // RFC 8707, 2.2
		},
	}
	token, err := config.Token(context.WithValue(ctx, oauth2.HTTPClient, client))
	if err != nil {
		var answer *oauth2.RetrieveError
		switch {
		case !errors.As(err, &answer):
		case answer.ErrorCode == "invalid_client", answer.ErrorCode == "unauthorized_client":
			err := fmt.Errorf("%w: its authorization server says %s", errRelogin, answer.ErrorCode)
			s.pause(err) // the client may be fixed in the config, so the token is kept
			return err
		case answer.ErrorCode == "invalid_grant":
			// Locks do not work on some network file systems. There, another process may have
			// exchanged the same token.
			now, err := s.Store.Load(s.key)
			switch {
			case errors.Is(err, records.ErrUnavailable):
				return err // another replica may have replaced it
			case err == nil && now != nil && now.RefreshToken != l.RefreshToken:
				*l = *now
				s.Hide(s.slot(), l.Secrets.All()...)
				return nil
			}
			// Or another process sent the token and then died, or was cut off from its lock, and the
			// answer is lost. A second use of the token costs nothing then: servers that accept one
			// twice do so for this case, and with others the login was already lost.
			l.AccessToken, l.RefreshToken, l.Expires = "", "", time.Time{}
			s.mu.Lock()
			s.login = l
			s.mu.Unlock()
			return errors.Join(fmt.Errorf("%w: its authorization server says %s", errRelogin, answer.ErrorCode), s.Store.Save(s.key, l))
		}
		return tokenError(err)
	}
	before := l.Scopes
	if err := takeToken(l, token); err != nil {
		return err
	}
	if l.Want(before) { // RFC 6749, 6: the new token may have fewer
		s.Logger.Warn("the refreshed login has fewer scopes, and the next login asks for them", "upstream", s.key.Server, "scopes", l.Scopes)
	}
	s.Hide(s.slot(), l.Secrets.All()...)
	if err := s.Store.Save(s.key, l); err != nil {
		// The token works in this process, but no other one has it.
		s.Logger.Error("a refreshed login cannot be kept", "upstream", s.key.Server, "err", err)
	}
	return nil
}

// clientSecretOf returns the secret of the config, or else of the registration.
func clientSecretOf(l *logins.Login, server schema.Server) string {
	if a := server.Auth; a != nil && a.ClientID == l.ClientID && a.ClientSecret != "" {
		return a.ClientSecret
	}
	return l.ClientSecret
}

// takeToken applies the answer of a token endpoint, or returns why it cannot be used.
func takeToken(l *logins.Login, token *oauth2.Token) error {
	bound := strings.EqualFold(token.TokenType, "DPoP") && l.DPoPKey != ""
	switch {
	case token.TokenType != "" && !strings.EqualFold(token.TokenType, "Bearer") && !bound:
		return fmt.Errorf("the token endpoint gave a token of type %q, and not Bearer; %s", transports.Printable([]byte(token.TokenType), 60), noKey)
	case strings.ContainsFunc(token.AccessToken, func(r rune) bool { return r <= ' ' || r > '~' }): // RFC 6750, 2.1
		return errors.New("the token endpoint gave a token with characters that no header can carry; " + noKey)
	}
	if !bound {
		l.DPoPKey = ""
	}
	l.AccessToken = token.AccessToken
	if token.RefreshToken != "" { // otherwise the old one stays valid
		l.RefreshToken = token.RefreshToken
	}
	l.Issued, l.Expires = time.Now(), token.Expiry
	if scope, ok := token.Extra("scope").(string); ok && scope != "" { // otherwise they are the requested ones, RFC 6749, 5.1
		l.Scopes = slices.Sorted(strings.FieldsSeq(scope))
	}
	return nil
}

// tokenError returns an error of a token endpoint without possible secrets: raw answer, addresses.
func tokenError(err error) error {
	answer, ok := errors.AsType[*oauth2.RetrieveError](err)
	if !ok {
		return withoutURL(err)
	}
	status := "an answer that cannot be read"
	if answer.Response != nil {
		status = "HTTP status " + answer.Response.Status
	}
	if answer.ErrorCode != "" {
		status += ": " + transports.Printable([]byte(answer.ErrorCode), 60)
	}
	if answer.ErrorDescription != "" {
		status += ": " + transports.Printable([]byte(answer.ErrorDescription), 200)
	}
	return errors.New("the token endpoint gave " + status)
}
