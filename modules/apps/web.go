package apps

import (
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/lazyregexp"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
)

//go:embed page.html page.js
var files embed.FS

// pages serves the pages of results: /CODE, its /CODE/data, and the calls of its view at /CODE/call.
func (sc *screen) pages() http.Handler {
	mux := http.NewServeMux()
	of := func(handler func(http.ResponseWriter, *http.Request, *shown)) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			s := sc.find(func(s *shown) bool { return s.code == r.PathValue("code") })
			if s == nil {
				http.Error(w, "This view is gone: the run of dynmcp has ended, or has newer ones.", http.StatusNotFound)
				return
			}
			w.Header().Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; connect-src 'self'; frame-src "+sc.frames.address+"; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
			handler(w, r, s)
		}
	}
	mux.HandleFunc("GET /{code}/{$}", of(func(w http.ResponseWriter, r *http.Request, _ *shown) { http.ServeFileFS(w, r, files, "page.html") }))
	mux.HandleFunc("GET /{code}/page.js", of(func(w http.ResponseWriter, r *http.Request, _ *shown) { http.ServeFileFS(w, r, files, "page.js") }))
	mux.HandleFunc("GET /{code}/data", of(func(w http.ResponseWriter, r *http.Request, s *shown) {
		ui, err := s.open(r.Context())
		if err != nil {
			answer(w, nil, err)
			return
		}
		answer(w, fmt.Appendf(nil, `{"server":%s,"version":%s,"frame":%s,"permissions":%s,"tool":%s,"arguments":%s,"result":%s}`,
			wire.Quote(s.server), wire.Quote(cli.Version), wire.Quote(sc.frames.address+"/"+s.frame), orEmpty(wire.Get(ui, "permissions")), s.tool, orEmpty(s.arguments), s.result), nil)
	}))
	mux.HandleFunc("POST /{code}/call", of(func(w http.ResponseWriter, r *http.Request, s *shown) {
		if r.Header.Get("Origin") != sc.page.address || r.Header.Get("Content-Type") != "application/json" {
			http.Error(w, "only the page itself calls", http.StatusForbidden)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		method, _ := wire.Text(wire.Get(body, "method"))
		params := wire.Get(body, "params")
		switch {
		case err != nil:
		case !wire.Valid(body) || !wire.IsObject(params):
			err = transports.InvalidParams("this is no request")
		case method == "tools/call" && wire.EqualString(wire.Get(params, "name"), viewCall), method == "resources/read":
			var result json.RawMessage
			result, err = s.request(r.Context(), method, params)
			answer(w, result, err)
			return
		default:
			err = &wire.Error{Code: wire.CodeMethodNotFound, Message: "views do not call " + method}
		}
		answer(w, nil, err)
	}))
	return mux
}

// answer writes the result of a request, or its error.
func answer(w http.ResponseWriter, result json.RawMessage, err error) {
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		_, _ = w.Write(wire.Set([]byte(`{}`), "error", transports.WireError(err).JSON()))
		return
	}
	_, _ = w.Write(wire.Set([]byte(`{}`), "result", result))
}

func orEmpty(object json.RawMessage) json.RawMessage {
	if !wire.IsObject(object) {
		return json.RawMessage(`{}`)
	}
	return object
}

// source matches what may be a source in a CSP: an origin, or a pattern of hosts.
var source = lazyregexp.New(`^(https?|wss?)://[A-Za-z0-9*.:\[\]-]+(/[A-Za-z0-9._~/%-]*)?$`)

// policyOf returns the CSP of a view with these domains, as the specification of MCP Apps has it.
func policyOf(csp map[string][]string) string {
	domains := func(kind, otherwise string) string {
		var all []string
		for _, domain := range csp[kind] {
			if source().MatchString(domain) {
				all = append(all, domain)
			}
		}
		if all == nil {
			return otherwise
		}
		return strings.Join(all, " ")
	}
	from := domains("resourceDomains", "")
	return "default-src 'none'; script-src 'unsafe-inline' blob: data: " + from + "; style-src 'unsafe-inline' blob: data: " + from +
		"; img-src data: blob: " + from + "; media-src data: blob: " + from + "; font-src data: blob: " + from + "; worker-src blob: " + from +
		"; connect-src " + domains("connectDomains", "'none'") + "; frame-src " + domains("frameDomains", "'none'") +
		"; object-src 'none'; base-uri " + domains("baseUriDomains", "'none'")
}
