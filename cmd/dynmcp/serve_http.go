package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/aggregator"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/replica"
	"github.com/dynmcp/dynmcp/internal/selfloop"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/gateway"
	"github.com/dynmcp/dynmcp/transports/host"
	"github.com/dynmcp/dynmcp/transports/oauth"
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

// An httpListener serves hosts over HTTP, and as a replica also the other replicas.
type httpListener struct {
	httpFlags
	cfg     *schema.Config
	replica *replica.Replica // nil without a cluster
	metrics http.Handler
	log     *slog.Logger

	// Set by open.
	ln   net.Listener
	loop *selfloop.Gateway
}

func (l *httpListener) open(ctx context.Context, options *aggregator.Options) (err error) {
	if l.replica != nil {
		if err := joinCluster(ctx, l.replica, options); err != nil {
			return err
		}
	}
	if l.ln, err = l.listen(ctx); err != nil {
		return err
	}
	options.Reserved = !l.isLocal()
	if l.loop, err = newLoopGateway(l.cfg, options.Keys); err != nil {
		return err
	}
	options.Mark = l.loop.Mark
	return nil
}

// joinCluster makes the run a member of the cluster, and sets the options of its
// aggregator.
func joinCluster(ctx context.Context, member *replica.Replica, options *aggregator.Options) error {
	if err := member.Join(ctx); err != nil {
		return err
	}
	if err := member.SetOptions(ctx, options); err != nil {
		return err
	}
	logins, err := member.Logins(ctx)
	if err != nil {
		return err
	}
	open := func() (*oauth.Store, error) { return logins, nil }
	options.Login, options.LogIn = loginsOf(open, options.Logger), offeredLogin(open, options.Logger)
	return nil
}

// listen opens the address.
func (l *httpListener) listen(ctx context.Context) (net.Listener, error) {
	cfg := l.cfg.Gateway
	if (l.cert == "") != (l.key == "") {
		return nil, hinted(errors.New("--tls-cert and --tls-key go together"), "give both, or neither")
	}
	if len(cfg.Issuers) > 0 && cfg.Audience == "" {
		return nil, hinted(errors.New("gateway.issuers takes gateway.audience: tokens that are for others must not count"), "audience is the address that hosts are given")
	}
	secrets.Add(l.token)
	l.token = cmp.Or(l.token, cfg.Token)
	ln, err := gateway.Listen(l.address, l.public, l.token != "" || len(cfg.Issuers) > 0, gateway.Connections(cfg.MaxConnections))
	if _, ok := errors.AsType[*gateway.PublicError](err); ok {
		return nil, hinted(err, "use 127.0.0.1, or say --listen-public and give it a token")
	}
	if err != nil || l.cert == "" {
		return ln, err
	}
	config, err := gateway.TLS(ctx, l.cert, l.key, l.log)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("--tls-cert: %w", err), ln.Close())
	}
	return tls.NewListener(ln, config), nil
}

func (l *httpListener) isLoopback() bool {
	at, ok := l.ln.Addr().(*net.TCPAddr)
	return ok && at.IP.IsLoopback()
}

// isLocal reports whether only users of this machine reach the gateway, without a token:
// then it serves nobody on behalf of others, as a proxy would.
func (l *httpListener) isLocal() bool {
	return l.isLoopback() && l.token == "" && len(l.cfg.Gateway.Issuers) == 0
}

func (l *httpListener) close() {
	if l.ln != nil {
		_ = l.ln.Close()
	}
}

func (l *httpListener) serve(ctx context.Context, agg *aggregator.Aggregator) error {
	g := l.gateway(agg)
	if l.replica != nil {
		defer l.replica.Serve(agg, g)() // after it has drained
		var draining sync.WaitGroup
		defer draining.Wait()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		draining.Go(func() {
			<-ctx.Done()
			l.replica.Drain()
		})
	}
	agg.StartShared()
	return errors.Join(g.Serve(agg.While(ctx), l.ln), agg.Err())
}

func (l *httpListener) gateway(agg *aggregator.Aggregator) *gateway.Gateway {
	cfg := l.cfg.Gateway
	options := gateway.Options{
		InputSchema: agg.InputSchema,
		TreeKind:    agg.TreeKind,
		Named:       agg.Named,
		Health:      func(server string) (gateway.Health, bool) { return healthOf(agg, server) },

		Enter:   l.loop.Enter,
		Metrics: l.metrics,

		Token:            l.token,
		AllowedHosts:     cfg.AllowedHosts,
		AllowedOrigins:   cfg.AllowedOrigins,
		MaxRequestBytes:  cfg.MaxRequestBytes,
		MaxResponseBytes: cfg.MaxResponseBytes,
		MaxHeldBytes:     cfg.MaxHeldBytes,
		MaxConnections:   cfg.MaxConnections,
		SessionIdle:      cfg.SessionIdle,
		Logger:           l.log,
	}
	local := l.isLocal()
	// Of several users nobody is the one who runs us, whatever they reach us by.
	mayLogIn := l.isLoopback() && len(cfg.Issuers) == 0
	options.Open = func(edge host.Edge, user, server string, lasts bool) (*host.Session, func(context.Context)) {
		return agg.Open(edge, aggregator.Guest{User: user, Server: server, Lasts: lasts, MayLogIn: mayLogIn, Local: local})
	}
	options.OpenTree = func(edge host.Edge, user string) (*host.Session, func(context.Context)) {
		return agg.Open(edge, aggregator.Guest{User: user, Tree: true, Local: local})
	}
	if name, _, err := net.SplitHostPort(l.address); err == nil && name != "" && !net.ParseIP(name).IsUnspecified() {
		options.AllowedHosts = append([]string{name}, cfg.AllowedHosts...)
	}
	if len(cfg.Issuers) > 0 {
		options.OAuth = &gateway.OAuth{Issuers: cfg.Issuers, Audience: cfg.Audience, Scopes: cfg.Scopes}
	}
	if l.replica != nil {
		options.Replicas = l.replica.Gateway(agg)
	}
	scheme := "http://"
	if l.cert != "" {
		scheme = "https://"
	}
	l.log.Info("serving HTTP", "url", scheme+l.ln.Addr().String()+"/mcp")
	return gateway.New(options)
}

// healthOf returns what a gateway says of a server's connection.
func healthOf(agg *aggregator.Aggregator, server string) (health gateway.Health, offered bool) {
	pid, connected, offered := agg.Connection(server)
	switch {
	case pid != 0:
		return gateway.Health{Status: "running", PID: pid}, offered
	case connected:
		return gateway.Health{Status: "connected"}, offered
	}
	return gateway.Health{Status: "no subprocess"}, offered
}
