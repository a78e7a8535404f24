package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/dynmcp/dynmcp/aggregator"
	"github.com/dynmcp/dynmcp/internal/monitor"
	"github.com/dynmcp/dynmcp/transports/gateway"
)

// A monitoring shows what a run does: its metrics, traces if the environment asks for
// them, and the page, if it has an address.
type monitoring struct {
	*monitor.Monitor
	tracer *monitor.Tracer // nil is none
	token  string          // that the page asks for, "" is none
	ln     net.Listener    // of the page, nil where there is none
	log    *slog.Logger
}

// newMonitoring opens the page's address, "" is none, where the gateway's token is asked
// for if there is one. replica is the name of the one that we are, "" without a cluster.
// close must be called.
func newMonitoring(address, token, replica string, log *slog.Logger) (*monitoring, error) {
	m := &monitoring{log: log, token: token}
	opts := monitor.Options{Version: version, Replica: replica, Redact: func(text string) string {
		safe, _ := secrets.Split(text)
		return safe
	}}
	var err error
	if m.tracer, err = monitor.NewTracer(version, replica); err != nil {
		log.Warn("no traces are sent", "err", err)
	}
	if m.tracer != nil {
		opts.Trace = m.tracer.Call
	}
	if address != "" {
		var public *gateway.PublicError
		if m.ln, err = gateway.Listen(address, false, false, gateway.Connections(0)); errors.As(err, &public) {
			err = hinted(err, "the page shows what hosts and servers say: use 127.0.0.1, and from elsewhere a tunnel")
		}
		if err != nil {
			return nil, err
		}
	}
	m.Monitor = monitor.New(opts)
	return m, nil
}

func (m *monitoring) observer() *aggregator.Observer { return m.Observer(m.ln != nil) }

// serve serves the page until ctx ends.
func (m *monitoring) serve(ctx context.Context) error {
	server := &http.Server{
		Handler:           gateway.Local(m.token, m.Handler()),
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          slog.NewLogLogger(m.log.Handler(), slog.LevelDebug),
	}
	defer context.AfterFunc(ctx, func() { server.Close() })()
	m.log.Info("showing what happens", "url", "http://"+m.ln.Addr().String()+"/debug")
	if err := server.Serve(m.ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func (m *monitoring) close() {
	if m.ln != nil {
		m.ln.Close()
	}
	m.Close()
	if m.tracer != nil {
		if err := m.tracer.Close(); err != nil {
			m.log.Warn("the last traces were not sent", "err", err)
		}
	}
}
