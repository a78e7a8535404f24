package main

import (
	"context"
	"errors"
	"log/slog"
	"net"

	"github.com/spf13/cobra"

	"dynmcp/aggregator"
	"dynmcp/schema"
	"dynmcp/transports/gateway"
	"dynmcp/transports/host"
)

// httpFlags say how a run is reached over HTTP, where the config's gateway says
// something else or nothing.
type httpFlags struct {
	address string
	token   string
	public  bool
}

func (f *httpFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.address, "http", "", "the `address` to serve HTTP on, HOST:PORT")
	cmd.Flags().StringVar(&f.token, "token", "", "the bearer `token` that every request must carry; others of this machine see it in the list of processes, gateway.token of the config they do not")
	cmd.Flags().BoolVar(&f.public, "listen-public", false, "allow --http to be an address that other machines reach, which takes a token")
}

// listen opens the address.
func (f *httpFlags) listen(cfg schema.Gateway) (net.Listener, error) {
	if f.token != "" {
		secrets.Add(f.token)
	} else {
		f.token = cfg.Token
	}
	ln, err := gateway.Listen(f.address, f.public, f.token != "")
	var public *gateway.PublicError
	if errors.As(err, &public) {
		return nil, hinted(err, "use 127.0.0.1, or say --listen-public and give it a token")
	}
	return ln, err
}

// serveHTTP serves hosts over HTTP until ctx ends.
func serveHTTP(ctx context.Context, ln net.Listener, flags httpFlags, cfg schema.Gateway, agg *aggregator.Aggregator, log *slog.Logger) error {
	hosts := cfg.AllowedHosts
	if name, _, err := net.SplitHostPort(flags.address); err == nil && name != "" && !net.ParseIP(name).IsUnspecified() {
		hosts = append([]string{name}, hosts...)
	}
	at, ok := ln.Addr().(*net.TCPAddr)
	local := !ok || at.IP.IsLoopback()
	g := gateway.New(gateway.Options{
		Open: func(edge host.Edge, user, server string) (*host.Session, func(context.Context)) {
			return agg.Open(edge, user, server, local)
		},
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

		Token:            flags.token,
		AllowedHosts:     hosts,
		AllowedOrigins:   cfg.AllowedOrigins,
		MaxRequestBytes:  cfg.MaxRequestBytes,
		MaxResponseBytes: cfg.MaxResponseBytes,
		MaxConnections:   cfg.MaxConnections,
		SessionIdle:      cfg.SessionIdle,
		Logger:           log,
	})
	log.Info("serving HTTP", "url", "http://"+ln.Addr().String()+"/mcp")
	agg.StartShared()
	return errors.Join(g.Serve(agg.While(ctx), ln), agg.Err())
}
