package ui

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/schema"
)

// maxRequest limits the size of a request, in bytes.
const maxRequest = 4 << 20

// A server serves the page.
type server struct {
	from    *conf.Flags // a config to show even if no run has it; may be nil
	access  *access     // nil if requests are authenticated before they arrive here
	run     int         // the process id of the only run to show; 0 shows all
	fixed   bool        // the page cannot change anything
	program string      // dynmcp itself

	mu      sync.Mutex
	calls   map[string]*journal // by the directory of the record
	configs map[source]*loaded
	last    []place // the last answer to a page, nil if things have changed since
	asked   time.Time
}

// handler returns the handler of the page at the root, and of its API.
func (s *server) handler(tabs []module.Tab) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /{$}", newDocument(tabs, false, true))
	s.addAPI(mux)
	return s.guard(mux)
}

// gatewayPage returns the page of this process alone at /debug, for the verb serve, which authenticates
// requests and serves the state and the messages that the page shows. With mode off there is
// nothing else; otherwise the page has the views of dynmcp ui, which change nothing unless mode
// is change. The view of what happens now is there if live is set.
func gatewayPage(mode string, live bool, tabs []module.Tab) http.Handler {
	s, mux, api := newServer(), http.NewServeMux(), mode != schema.UIOff
	if api {
		s.run, s.fixed = os.Getpid(), mode != schema.UIChange
		s.addAPI(mux)
		mux.Handle("GET /ui/", http.RedirectHandler("/debug", http.StatusFound)) // where these views were
	}
	mux.Handle("GET /{$}", http.RedirectHandler("/debug", http.StatusFound))
	mux.Handle("GET /debug", newDocument(tabs, live, api))
	return s.guard(mux)
}

// addAPI adds the API of the page, below /api.
func (s *server) addAPI(mux *http.ServeMux) {
	if s.access != nil {
		mux.HandleFunc("POST /api/login", answer(func(_ context.Context, q struct{ Code string }) (any, error) {
			token, err := s.access.redeem(q.Code)
			return map[string]string{"token": token}, err
		}))
	}
	for path, f := range map[string]http.HandlerFunc{
		"POST /api/places": answer(s.places), "POST /api/do": answer(s.do), "POST /api/calls": answer(s.callsSince), "POST /api/call": answer(s.wholeCall),
		"POST /api/reads": answer(s.reads), "POST /api/search": answer(s.search), "POST /api/tool": answer(s.tool), "POST /api/entry": answer(s.entry),
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			if s.access != nil && !s.access.admits(r) {
				http.Error(w, "this needs the code of dynmcp ui", http.StatusUnauthorized)
				return
			}
			f(w, r)
		})
	}
}

// guard adds headers that protect the page, and refuses requests of other pages.
func (s *server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range map[string]string{
			"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			w.Header().Set(name, value)
		}
		why := foreign(r)
		if s.access != nil {
			why = cmp.Or(s.access.refuse(r), why)
		}
		if why != "" {
			http.Error(w, why, http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// answer returns a handler that decodes a request from JSON, calls f, and encodes its answer.
func answer[Q, A any](f func(context.Context, Q) (A, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var q Q
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest)).Decode(&q); err != nil {
			http.Error(w, "the request is not valid JSON", http.StatusBadRequest)
			return
		}
		a, err := f(r.Context(), q)
		if err != nil {
			text := err.Error()
			if with, ok := errors.AsType[*hint.Error](err); ok {
				text += "; " + with.Hint
			}
			http.Error(w, cli.Secrets.String(text), http.StatusConflict)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(a)
	}
}
