package serve

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/aggregator"
	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/cli/login"
	"github.com/dynmcp/dynmcp/internal/cli/selfhost"
	"github.com/dynmcp/dynmcp/internal/membudget"
	"github.com/dynmcp/dynmcp/internal/seal"
	"github.com/dynmcp/dynmcp/internal/selfloop"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/gateway"
	"github.com/dynmcp/dynmcp/transports/host"
	"github.com/dynmcp/dynmcp/transports/oauth/logins"
)

// newLoopGateway returns the detector of requests that come from the run itself or, in a cluster,
// from any replica. keys are those of the cluster, nil without one.
func newLoopGateway(cfg *schema.Config, keys *seal.Keys) (*selfloop.Gateway, error) {
	if keys == nil {
		return selfloop.NewGateway(cfg.Path, rand.Text()), nil
	}
	secrets, err := keys.Derive("lineage", seal.MinSecret)
	if err != nil {
		return nil, err
	}
	return selfloop.NewGateway(cfg.Path, string(secrets[0])), nil
}

// httpFlags configure the HTTP listener, overriding the config's gateway.
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
	cmd.Flags().BoolVar(&f.public, "listen-public", false, "allow an address of --http that other machines reach; it needs a token, or gateway.issuers of the config")
}

// An httpListener serves hosts over HTTP, and in a cluster the other replicas.
type httpListener struct {
	httpFlags
	cfg     *schema.Config
	replica module.Replica // nil without a cluster
	metrics http.Handler
	own     []gateway.OwnRoute
	log     *slog.Logger

	// Set by open.
	ln     net.Listener
	loop   *selfloop.Gateway
	memory *membudget.Budget
	logins *login.Logins
}

func (l *httpListener) open(ctx context.Context, options *aggregator.Options) (err error) {
	l.logins = login.Of(login.Store, options.Logger)
	if l.replica != nil {
		if l.logins, err = joinCluster(ctx, l.replica, options); err != nil {
			return err
		}
	}
	options.Logins = l.logins
	if l.ln, err = l.listen(ctx); err != nil {
		return err
	}
	options.Reserved = !l.isLocal()
	if l.loop, err = newLoopGateway(l.cfg, options.Keys); err != nil {
		return err
	}
	l.memory = membudget.New(int64(l.cfg.Gateway.MaxHeldBytes), wire.LargeInUse)
	options.Launcher, options.Memory = selfhost.Launcher{Loop: l.loop}, l.memory
	return nil
}

// joinCluster makes the run a member of the cluster, and sets the options of its aggregator. It returns
// the logins of the cluster.
func joinCluster(ctx context.Context, member module.Replica, options *aggregator.Options) (*login.Logins, error) {
	if err := member.Join(ctx); err != nil {
		return nil, err
	}
	if err := member.SetOptions(ctx, options); err != nil {
		return nil, err
	}
	store, err := member.Logins(ctx)
	if err != nil {
		return nil, err
	}
	return login.Of(func() (*logins.Store, error) { return store, nil }, options.Logger), nil
}

func (l *httpListener) listen(ctx context.Context) (net.Listener, error) {
	cfg := l.cfg.Gateway
	if (l.cert == "") != (l.key == "") {
		return nil, hint.With(errors.New("--tls-cert and --tls-key go together"), "give both, or neither")
	}
	if len(cfg.Issuers) > 0 && cfg.Audience == "" {
		return nil, hint.With(errors.New("gateway.issuers takes gateway.audience: tokens that are for others must not count"), "audience is the address that hosts are given")
	}
	cli.Secrets.Add(l.token)
	l.token = cmp.Or(l.token, cfg.Token)
	ln, err := gateway.Listen(l.address, l.public, l.token != "" || len(cfg.Issuers) > 0, gateway.Connections(cfg.MaxConnections))
	if _, ok := errors.AsType[*gateway.PublicError](err); ok {
		return nil, hint.With(err, "use 127.0.0.1, or --listen-public with a token")
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

// isLocal reports whether the gateway serves only this machine, without authentication. Then it does
// not act on behalf of other users.
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
		defer l.replica.Serve(agg, g)() // after draining
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
	cfg, names := l.cfg.Gateway, agg.Directory()
	options := gateway.GatewayOptions{
		InputSchema: names.InputSchema,
		TreeKind:    names.TreeKind,
		Named:       names.Named,
		Unknown:     names.Unknown,
		Health:      func(server string) (gateway.Health, bool) { return healthOf(agg, server) },

		Own:     l.own,
		Enter:   l.loop.Enter,
		Metrics: l.metrics,

		Token:            l.token,
		AllowedHosts:     l.allowedHosts(),
		AllowedOrigins:   cfg.AllowedOrigins,
		MaxRequestBytes:  cfg.MaxRequestBytes,
		MaxResponseBytes: cfg.MaxResponseBytes,
		Memory:           l.memory,
		MaxConnections:   cfg.MaxConnections,
		SessionIdle:      cfg.SessionIdle,
		Logger:           l.log,
	}
	if len(cfg.Issuers) > 0 {
		options.OAuth = &gateway.OAuth{Issuers: cfg.Issuers, Audience: cfg.Audience, Scopes: cfg.Scopes, Callers: &l.logins.Callers}
	}
	if l.replica != nil {
		options.Replicas = l.replica.Gateway(agg)
	}
	l.openSessions(agg, &options)
	l.serveLogins(&options)
	l.log.Info("serving HTTP", "url", l.url())
	return gateway.New(options)
}

// serveLogins has the browsers of users come back to the gateway after their logins.
func (l *httpListener) serveLogins(options *gateway.GatewayOptions) {
	address, wanted := l.publicURL(), slices.ContainsFunc(l.cfg.Servers, func(s schema.Server) bool { return s.Credentials.User })
	if address == "" {
		if wanted {
			l.log.Warn("users cannot log in to servers as themselves: gateway.public_url, the address at which their browsers reach the gateway, is missing")
		}
		return
	}
	web, err := l.logins.ServeAt(address)
	if err != nil {
		l.log.Warn("users cannot log in to servers as themselves", "err", err)
		return
	}
	options.Logins = web
}

// publicURL returns the address of the gateway for browsers, without a path, "" if it is not known.
func (l *httpListener) publicURL() string {
	cfg := l.cfg.Gateway
	if cfg.PublicURL != "" {
		return cfg.PublicURL
	}
	if at, err := url.Parse(cfg.Audience); err == nil && at.Host != "" && (at.Scheme == "http" || at.Scheme == "https") {
		return at.Scheme + "://" + at.Host
	}
	if at, ok := l.ln.Addr().(*net.TCPAddr); !ok || at.IP.IsUnspecified() {
		return ""
	}
	return strings.TrimSuffix(l.url(), "/mcp")
}

// openSessions sets the functions that open sessions with hosts.
func (l *httpListener) openSessions(agg *aggregator.Aggregator, options *gateway.GatewayOptions) {
	local := l.isLocal()
	// With several users, none of them is known to be the user who runs dynmcp.
	mayLogIn := l.isLoopback() && len(l.cfg.Gateway.Issuers) == 0
	options.Open = func(edge gateway.Edge, user, server string, lasts bool) (*host.Session, func(context.Context)) {
		return agg.Open(edge, aggregator.Identity{User: user, Account: edge.Account(), Server: server, Persistent: lasts, MayLogIn: mayLogIn, Local: local})
	}
	if agg.Tree() != nil {
		options.OpenTree = func(edge gateway.Edge, user string) (*host.Session, func(context.Context)) {
			return agg.Open(edge, aggregator.Identity{User: user, Account: edge.Account(), TreeOnly: true, Local: local})
		}
	}
}

// allowedHosts returns the accepted Host headers, with the name in the address.
func (l *httpListener) allowedHosts() []string {
	allowed := l.cfg.Gateway.AllowedHosts
	if name, _, err := net.SplitHostPort(l.address); err == nil && name != "" && !net.ParseIP(name).IsUnspecified() {
		return append([]string{name}, allowed...)
	}
	return allowed
}

func (l *httpListener) url() string {
	scheme := "http://"
	if l.cert != "" {
		scheme = "https://"
	}
	return scheme + l.ln.Addr().String() + "/mcp"
}

// healthOf returns the health of a server's connection, and whether there is such a server.
func healthOf(agg *aggregator.Aggregator, server string) (health gateway.Health, offered bool) {
	if name, ok := strings.CutPrefix(server, aggregator.ProfilePrefix); ok {
		return gateway.Health{Status: "no subprocess"}, agg.Directory().HasProfile(name)
	}
	pid, connected, offered := agg.Directory().Connection(server)
	switch {
	case pid != 0:
		return gateway.Health{Status: "running", PID: pid}, offered
	case connected:
		return gateway.Health{Status: "connected"}, offered
	}
	return gateway.Health{Status: "no subprocess"}, offered
}
