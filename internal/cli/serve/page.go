package serve

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/dynmcp/dynmcp/aggregator"
	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/cli/ui"
	"github.com/dynmcp/dynmcp/internal/event"
	"github.com/dynmcp/dynmcp/internal/monitor"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/gateway"
)

// A pageListener serves the debug page, if it has an address. It collects the metrics of the run,
// and sends traces if the environment requests them.
type pageListener struct {
	*monitor.Monitor
	address string          // "" disables the page
	token   string          // required token, "" for none
	ui      string          // the config's gateway.ui: the mode of the page
	tracer  *monitor.Tracer // nil if unset
	log     *slog.Logger

	ln net.Listener // nil before open and without an address
}

// newPage returns the debug page. uiMode is the config's gateway.ui, replica the name of this
// replica, "" without a cluster.
func newPage(address, token, uiMode, replica string, log *slog.Logger) *pageListener {
	p := &pageListener{address: address, token: token, ui: uiMode, log: log}
	options := monitor.MonitorOptions{Version: cli.Version, Replica: replica, Redact: cli.Redacted}
	var err error
	if p.tracer, err = monitor.NewTracer(cli.Version, replica); err != nil {
		log.Warn("no traces are sent", "err", err)
	}
	if p.tracer != nil {
		options.Trace = p.tracer.Call
	}
	p.Monitor = monitor.New(options)
	return p
}

func (p *pageListener) open(_ context.Context, options *aggregator.Options) (err error) {
	options.Observe = append(options.Observe, p.Monitor)
	if p.address == "" {
		return nil
	}
	options.Tap = &event.Tap{}
	p.Follow(options.Tap)
	p.ln, err = gateway.Listen(p.address, false, false, gateway.Connections(0))
	if _, public := errors.AsType[*gateway.PublicError](err); public {
		return hint.With(err, "the page shows what hosts and servers say: use 127.0.0.1, and from elsewhere a tunnel")
	}
	return err
}

func (p *pageListener) serve(ctx context.Context, _ *aggregator.Aggregator) error {
	if p.ln == nil {
		return nil
	}
	server := &http.Server{
		Handler:           gateway.Local(p.token, p.handler()),
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          slog.NewLogLogger(p.log.Handler(), slog.LevelDebug),
	}
	defer context.AfterFunc(ctx, func() { server.Close() })()
	p.log.Info("showing what happens", "url", "http://"+p.ln.Addr().String()+"/debug")
	if err := server.Serve(p.ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// handler returns the handler of the page and of what it reads. Without a token it has only the view
// of what happens now.
func (p *pageListener) handler() http.Handler {
	mode := p.ui
	if p.token == "" {
		mode = schema.UIOff
	}
	mux := http.NewServeMux()
	mux.Handle("/", ui.Gateway(mode))
	for _, path := range []string{"/debug/state", "/debug/stream", "/metrics"} {
		mux.Handle(path, p.Handler())
	}
	return mux
}

func (p *pageListener) close() {
	if p.ln != nil {
		_ = p.ln.Close()
	}
	p.Close()
	if p.tracer == nil {
		return
	}
	if err := p.tracer.Close(); err != nil {
		p.log.Warn("the last traces were not sent", "err", err)
	}
}
