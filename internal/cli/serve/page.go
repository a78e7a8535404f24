package serve

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/dynmcp/dynmcp/aggregator"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/event"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/gateway"
)

// A pageListener serves the debug page, if it has an address.
type pageListener struct {
	address string         // "" disables the page
	token   string         // required token, "" for none
	ui      string         // the config's gateway.ui: the mode of the page
	web     module.WebPart // set before serve; nil without a module that has one
	log     *slog.Logger

	modules []module.Module
	tap     *event.Tap
	ln      net.Listener // nil before open and without an address
}

func (p *pageListener) open(ctx context.Context, options *aggregator.Options) (err error) {
	if p.address == "" {
		return nil
	}
	p.modules = module.Of(ctx)
	p.tap = &event.Tap{}
	options.Tap = p.tap
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
	if p.web != nil {
		p.web.Hear(p.tap)
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

// handler returns the handler of the page, if a module has one, and of what it reads. Without a
// token it has only the view of what happens now.
func (p *pageListener) handler() http.Handler {
	mode := p.ui
	if p.token == "" {
		mode = schema.UIOff
	}
	mux := http.NewServeMux()
	for _, m := range p.modules {
		if m.Page != nil {
			mux.Handle("/", m.Page(mode, p.web != nil, module.Tabs(p.modules)))
		}
	}
	if p.web != nil {
		for path, handler := range p.web.Page() {
			mux.Handle(path, handler)
		}
	}
	return mux
}

func (p *pageListener) close() {
	if p.ln != nil {
		_ = p.ln.Close()
	}
}
