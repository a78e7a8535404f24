package apps

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/extension"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// A host that shows no views, such as one in a terminal, gets the address of a page on this machine
// with each result of a tool that has a view. The page is the host of the view: it runs it in a frame
// of another port without an origin, and makes its calls as a companion of the host.

const (
	maxShown  = 32       // results whose pages are kept; the oldest go
	maxResult = 1 << 20  // bytes of one of them
	maxAnswer = 64 << 20 // bytes of a message for a page
	maxBody   = 4 << 20  // bytes of a request of a page
)

// A screen serves the pages of a run, from the first result on.
type screen struct {
	log     *slog.Logger
	running sync.WaitGroup // its servers, and companions that end

	begin        sync.Once
	page, frames *origin // nil before begin, and if err is not nil
	err          error   // why no pages are served

	mu    sync.Mutex
	shown []*shown // the newest last
}

// An origin is an HTTP server on a port of this machine.
type origin struct {
	address string
	web     *http.Server
}

// A shown result has a page.
type shown struct {
	code, frame  string // in the addresses of the page, and of the frame in it
	server, name string
	uri          string
	tool         json.RawMessage
	arguments    json.RawMessage
	result       json.RawMessage
	host         extension.Host

	begin sync.Once
	conn  *upstream.Conn // of the companion; nil before begin, and if err is not nil
	err   error          // of the connection

	mu   sync.Mutex
	html string // as read last, with its CSP; "" if it was served
	csp  string
}

// Keeps implements extension.Keeper.
func (p *part) Keeps(h extension.Host, t *catalog.Tool, surface string) bool {
	return p.on.Load() && t.HasView && surface == schema.ExposeDiscover && p.hosts && h.OnThisMachine() && !h.Declares(catalog.AppsExtension)
}

// withAddress returns a result with the address of its page.
func (p *part) withAddress(h extension.Host, a extension.Answer, result json.RawMessage) json.RawMessage {
	uri := h.View().ViewOf(a.Tool)
	if uri == "" || string(wire.Get(result, "isError")) == "true" || len(result) > maxResult || wire.Get(result, "content") == nil {
		return result
	}
	s := &shown{
		code: rand.Text(), frame: rand.Text(), server: a.Server, name: a.Tool.Upstream, uri: uri, host: h,
		tool: a.Tool.Raw, arguments: a.Arguments, result: slices.Clone(result),
	}
	address, err := p.screen.add(s)
	if err != nil {
		p.screen.log.Warn("a view has no page", "upstream", a.Server, "tool", s.name, "err", err)
		return result
	}
	text := fmt.Appendf(nil, `{"type":"text","text":%s}`, wire.Quote("[dynmcp: this result has a view, for your user to open: "+address+"]"))
	content := append(slices.Collect(wire.Elements(wire.Get(result, "content"))), text)
	return wire.Set(result, "content", wire.Array(content))
}

// add keeps a result, and returns the address of its page.
func (sc *screen) add(s *shown) (address string, err error) {
	sc.begin.Do(func() {
		if sc.frames, sc.err = sc.serve(http.HandlerFunc(sc.serveFrame)); sc.err == nil {
			sc.page, sc.err = sc.serve(sc.pages())
		}
	})
	if sc.err != nil {
		return "", sc.err
	}
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if sc.shown = append(sc.shown, s); len(sc.shown) > maxShown {
		sc.running.Go(sc.shown[0].close) // its page may be opening
		sc.shown = slices.Delete(sc.shown, 0, 1)
	}
	return sc.page.address + "/" + s.code + "/", nil
}

// serve serves on a free port. A request by another name of this machine is refused: a site could have
// its own name lead here.
func (sc *screen) serve(handler http.Handler) (*origin, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	at := ln.Addr().String()
	o := &origin{address: "http://" + at}
	o.web = &http.Server{ReadHeaderTimeout: 5 * time.Second, ReadTimeout: time.Minute, MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Host != at {
				http.Error(w, "this page is at "+o.address, http.StatusForbidden)
				return
			}
			for key, value := range map[string]string{"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff"} {
				w.Header().Set(key, value)
			}
			handler.ServeHTTP(w, r)
		})}
	sc.running.Go(func() { _ = o.web.Serve(ln) }) // until end closes it
	return o, nil
}

// end closes all pages.
func (sc *screen) end() {
	sc.begin.Do(func() { sc.err = errors.New("the run is ending") })
	for _, o := range []*origin{sc.page, sc.frames} {
		if o != nil {
			_ = o.web.Close()
		}
	}
	sc.mu.Lock()
	all := sc.shown
	sc.shown = nil
	sc.mu.Unlock()
	for _, s := range all {
		s.close()
	}
	sc.running.Wait()
}

// find returns the result whose page or frame has a code, nil if it is gone.
func (sc *screen) find(fits func(*shown) bool) *shown {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if i := slices.IndexFunc(sc.shown, fits); i >= 0 {
		return sc.shown[i]
	}
	return nil
}

// serveFrame serves a view, with its own CSP, once for each time that its page was loaded: views are large.
func (sc *screen) serveFrame(w http.ResponseWriter, r *http.Request) {
	s := sc.find(func(s *shown) bool { return "/"+s.frame == r.URL.Path })
	if s == nil || r.Method != http.MethodGet {
		http.NotFound(w, r)
		return
	}
	s.mu.Lock()
	html, csp := s.html, s.csp
	s.html = ""
	s.mu.Unlock()
	if html == "" {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Security-Policy", csp+"; frame-ancestors "+sc.page.address+"; sandbox allow-scripts allow-forms")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write([]byte(html))
}

// open connects the companion, and reads the view.
func (s *shown) open(ctx context.Context) (view json.RawMessage, err error) {
	result, err := s.request(ctx, "resources/read", wire.Set([]byte(`{}`), "uri", wire.Quote(s.uri)))
	if err != nil {
		return nil, err
	}
	for content := range wire.Elements(wire.Get(result, "contents")) {
		html, ok := wire.Text(wire.Get(content, "text"))
		if blob, isBlob := wire.Text(wire.Get(content, "blob")); isBlob && !ok {
			decoded, err := base64.StdEncoding.DecodeString(blob)
			if err != nil {
				return nil, fmt.Errorf("the view: %w", err)
			}
			html = string(decoded)
		}
		var n needs
		ui := wire.Get(content, "_meta", "ui")
		_ = json.Unmarshal(ui, &n) // what is of another type is not given
		s.mu.Lock()
		s.html, s.csp = html, policyOf(n.CSP)
		s.mu.Unlock()
		return ui, nil
	}
	return nil, errors.New("the server returned no view")
}

// views is what the companion declares.
const views = `{"extensions":{"` + catalog.AppsExtension + `":{"mimeTypes":["text/html;profile=mcp-app"]}}}`

// request makes a request as the companion, which the first one connects.
func (s *shown) request(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	s.begin.Do(func() {
		conn := upstream.OpenStream(schema.Server{Name: "dynmcp", MaxMessageBytes: maxAnswer}, s.host.Companion(), upstream.ConnOptions{
			Info: upstream.Info{Name: "dynmcp view", Version: cli.Version}, HandshakeOnly: true, Dynmcp: true, Peer: silent{},
		})
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxAsked)
		defer cancel()
		if s.err = conn.Handshake(ctx, json.RawMessage(views)); s.err != nil {
			conn.Close()
			return
		}
		s.conn = conn
	})
	if s.err != nil {
		return nil, s.err
	}
	return s.conn.Call(ctx, method, params)
}

func (s *shown) close() {
	s.begin.Do(func() { s.err = errors.New("the page is gone") })
	if s.conn != nil {
		s.conn.Close()
	}
}

// silent is the peer of a companion, which declares nothing that it could be asked for.
type silent struct{}

func (silent) Notify(string, json.RawMessage) {}

func (silent) Request(context.Context, string, json.RawMessage) func() (json.RawMessage, error) {
	return func() (json.RawMessage, error) {
		return nil, transports.InvalidParams("the page of a view answers no questions")
	}
}
