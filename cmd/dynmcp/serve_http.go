package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/aggregator"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/replica"
	"github.com/dynmcp/dynmcp/internal/selfloop"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/gateway"
	"github.com/dynmcp/dynmcp/transports/host"
)

// httpFlags say how a run is reached over HTTP, where the config's gateway says
// something else or nothing.
type httpFlags struct {
	address string
	token   string
	public  bool
	cert    string
	key     string
}

func (f *httpFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.address, "http", "", "the `address` to serve HTTP on, HOST:PORT")
	cmd.Flags().StringVar(&f.token, "token", "", "the bearer `token` that every request must carry; others of this machine see it in the list of processes, gateway.token of the config they do not")
	cmd.Flags().StringVar(&f.cert, "tls-cert", "", "serve HTTPS with the certificate in this `file` (PEM), which is read again when it changes")
	cmd.Flags().StringVar(&f.key, "tls-key", "", "the `file` with its key (PEM)")
	cmd.Flags().BoolVar(&f.public, "listen-public", false, "allow --http to be an address that other machines reach, which takes a token")
}

// listen opens the address.
func (f *httpFlags) listen(ctx context.Context, cfg schema.Gateway, log *slog.Logger) (net.Listener, error) {
	if (f.cert == "") != (f.key == "") {
		return nil, hinted(errors.New("--tls-cert and --tls-key go together"), "give both, or neither")
	}
	if len(cfg.Issuers) > 0 && cfg.Audience == "" {
		return nil, hinted(errors.New("gateway.issuers takes gateway.audience: tokens that are for others must not count"), "audience is the address that hosts are given")
	}
	if f.token != "" {
		secrets.Add(f.token)
	} else {
		f.token = cfg.Token
	}
	ln, err := gateway.Listen(f.address, f.public, f.token != "" || len(cfg.Issuers) > 0, gateway.Connections(cfg.MaxConnections))
	if _, ok := errors.AsType[*gateway.PublicError](err); ok {
		return nil, hinted(err, "use 127.0.0.1, or say --listen-public and give it a token")
	}
	if err != nil || f.cert == "" {
		return ln, err
	}
	config, err := gateway.TLS(ctx, f.cert, f.key, log)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("--tls-cert: %w", err), ln.Close())
	}
	return tls.NewListener(ln, config), nil
}

// isLocal reports whether only users of this machine reach ln, and none of them shows a
// token: then nobody is served on behalf of others, as a proxy would be.
func (f *httpFlags) isLocal(ln net.Listener, cfg schema.Gateway) bool {
	return isLoopback(ln) && f.token == "" && len(cfg.Issuers) == 0
}

func isLoopback(ln net.Listener) bool {
	at, ok := ln.Addr().(*net.TCPAddr)
	return ok && at.IP.IsLoopback()
}

// newGateway returns what serves hosts over HTTP on ln, as a member of a cluster unless
// that is nil.
func newGateway(ln net.Listener, flags httpFlags, cfg schema.Gateway, agg *aggregator.Aggregator, around *selfloop.Gateway, metrics http.Handler, member *replica.Replica, log *slog.Logger) *gateway.Gateway {
	hosts := cfg.AllowedHosts
	if name, _, err := net.SplitHostPort(flags.address); err == nil && name != "" && !net.ParseIP(name).IsUnspecified() {
		hosts = append([]string{name}, hosts...)
	}
	// Of several users nobody is who runs us, whatever they reach us by.
	mayLogIn, local := isLoopback(ln) && len(cfg.Issuers) == 0, flags.isLocal(ln, cfg)
	var issued *gateway.OAuth
	if len(cfg.Issuers) > 0 {
		issued = &gateway.OAuth{Issuers: cfg.Issuers, Audience: cfg.Audience, Scopes: cfg.Scopes}
	}
	var replicas *gateway.Replicas
	if member != nil {
		replicas = member.Gateway(agg)
	}
	scheme := "http://"
	if flags.cert != "" {
		scheme = "https://"
	}
	log.Info("serving HTTP", "url", scheme+ln.Addr().String()+"/mcp")
	return gateway.New(gateway.Options{
		Open: func(edge host.Edge, user, server string, lasts bool) (*host.Session, func(context.Context)) {
			return agg.Open(edge, aggregator.Guest{User: user, Server: server, Lasts: lasts, MayLogIn: mayLogIn, Local: local})
		},
		OpenTree: func(edge host.Edge, user string) (*host.Session, func(context.Context)) {
			return agg.Open(edge, aggregator.Guest{User: user, Tree: true, Local: local})
		},
		InputSchema: agg.InputSchema,
		TreeKind:    agg.TreeKind,
		Named:       agg.Named,
		Health: func(server string) (gateway.Health, bool) {
			pid, connected, offered := agg.Connection(server)
			switch {
			case pid != 0:
				return gateway.Health{Status: "running", PID: pid}, offered
			case connected:
				return gateway.Health{Status: "connected"}, offered
			}
			return gateway.Health{Status: "no subprocess"}, offered
		},

		Enter:    around.Enter,
		Metrics:  metrics,
		Replicas: replicas,

		Token:            flags.token,
		OAuth:            issued,
		AllowedHosts:     hosts,
		AllowedOrigins:   cfg.AllowedOrigins,
		MaxRequestBytes:  cfg.MaxRequestBytes,
		MaxResponseBytes: cfg.MaxResponseBytes,
		MaxHeldBytes:     cfg.MaxHeldBytes,
		MaxConnections:   cfg.MaxConnections,
		SessionIdle:      cfg.SessionIdle,
		Logger:           log,
	})
}

// serveHTTP serves hosts over HTTP until ctx ends.
func serveHTTP(ctx context.Context, ln net.Listener, g *gateway.Gateway, agg *aggregator.Aggregator) error {
	agg.StartShared()
	return errors.Join(g.Serve(agg.While(ctx), ln), agg.Err())
}
