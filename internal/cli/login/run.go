package login

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/oauth"
	"github.com/dynmcp/dynmcp/transports/oauth/logins"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// Logins are the logins of the servers of a run. They implement aggregator.Logins.
type Logins struct {
	log  *slog.Logger
	open func() (*logins.Store, error)
	web  atomic.Pointer[oauth.Web] // nil unless users come back to a gateway

	// Callers are the users of a gateway, whose tokens are exchanged.
	Callers oauth.Callers

	exchanges oauth.Exchanges
	sessions  func() (*oauth.Sessions, error) // opened once
}

// Of returns the logins in the store that open returns, which is called when the first remote server
// is used.
func Of(open func() (*logins.Store, error), log *slog.Logger) *Logins {
	l := &Logins{log: log, open: open}
	l.exchanges.LoginOptions, l.exchanges.Callers = oauth.LoginOptions{Hide: cli.Secrets.Rotate, Logger: log}, &l.Callers
	l.sessions = sync.OnceValues(func() (*oauth.Sessions, error) {
		store, err := open()
		if err != nil {
			return nil, err
		}
		return oauth.NewSessions(oauth.LoginOptions{Store: store, Hide: cli.Secrets.Rotate, Logger: log}), nil
	})
	return l
}

// Store returns the store of the logins, which is that of the cluster if there is one.
func (l *Logins) Store() (*logins.Store, error) { return l.open() }

// ServeAt returns what receives the browsers of users at the address of a gateway.
func (l *Logins) ServeAt(address string) (*oauth.Web, error) {
	store, err := l.open()
	if err != nil {
		return nil, err
	}
	w := oauth.NewWeb(address, store)
	l.web.Store(w)
	return w, nil
}

// Reaches reports whether the browsers of users come back to a gateway.
func (l *Logins) Reaches() bool { return l.web.Load() != nil }

// For returns the authorization of requests to a server for a principal.
func (l *Logins) For(s schema.Server, principal string) upstream.Login {
	if !oauth.Applies(s) {
		return upstream.Login{}
	}
	if s.Credentials.Exchange != nil {
		x := l.exchanges.For(s, principal)
		return upstream.Login{Transport: x.Transport, Hint: x.Hint}
	}
	all, err := l.sessions()
	if err != nil {
		if l.log != nil {
			l.log.Warn("no logins", "err", err)
		}
		return upstream.Login{}
	}
	session := all.For(s, principal)
	return upstream.Login{Transport: session.Transport, Hint: session.Hint}
}

// Entries returns a function that returns the entry of a server with the values of a principal, which it
// reads once.
func (l *Logins) Entries(principal string) func(schema.Server) (schema.Server, error) {
	read := sync.OnceValues(func() (map[string]string, error) {
		store, err := l.open()
		if err != nil {
			return nil, err
		}
		return store.Values(principal)
	})
	return func(s schema.Server) (schema.Server, error) { return l.fill(s, principal, read) }
}

// fill returns the entry of a server with the values of a principal, which are read if it needs any.
func (l *Logins) fill(s schema.Server, principal string, read func() (map[string]string, error)) (schema.Server, error) {
	if len(s.UserValues()) == 0 {
		return s, nil
	}
	values, err := read()
	if err != nil {
		return s, &transports.Failure{Upstream: s.Name, Code: transports.CodeNotPlaced, Outcome: transports.NotSent,
			Cause: fmt.Errorf("read what its user keeps for it: %w", err), Hint: "call again when that can be read"}
	}
	full, missing := s.WithUserValues(values)
	if len(missing) > 0 {
		return s, &transports.Failure{Upstream: s.Name, Code: transports.CodeAuthRequired, Outcome: transports.NotSent, Personal: true,
			Cause: fmt.Errorf("its user keeps no %s, which it is called with", strings.Join(missing, ", ")), Hint: l.whereToSet(missing[0], principal)}
	}
	for _, name := range s.UserValues() {
		cli.Secrets.Rotate("value "+name+" of "+principal, values[name])
	}
	return full, nil
}

// whereToSet says how a principal sets a value.
func (l *Logins) whereToSet(name, principal string) string {
	web := l.web.Load()
	switch {
	case principal == "":
		return fmt.Sprintf("set it: dynmcp credential set %s", name)
	case web == nil:
		return fmt.Sprintf("have it set: dynmcp credential set %s --principal %q", name, principal)
	}
	return fmt.Sprintf("set it, with a PUT to %s/credentials/%s and the token for this gateway", web.Address(), name)
}

// LogIn has a person log in to a server, as a principal.
func (l *Logins) LogIn(ctx context.Context, server schema.Server, principal string, show func(address string)) error {
	store, err := l.open()
	if err != nil {
		return err
	}
	flow := oauth.Flow{LoginOptions: oauth.LoginOptions{Store: store, Hide: cli.Secrets.Rotate, Logger: l.log}, Server: server, Principal: principal, Show: show}
	if principal != "" {
		flow.Web = l.web.Load()
	}
	_, err = flow.Run(ctx)
	return err
}
