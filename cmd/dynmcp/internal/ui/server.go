package ui

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
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

// handler returns the handler of the page, and of its API below /api.
func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", page().policy)
		_, _ = w.Write(page().text) // fails only if the client is gone
	})
	if s.access != nil {
		mux.HandleFunc("POST /api/login", answer(func(_ context.Context, q struct{ Code string }) (any, error) {
			token, err := s.access.redeem(q.Code)
			return map[string]string{"token": token}, err
		}))
	}
	for path, f := range map[string]http.HandlerFunc{
		"POST /api/places": answer(s.places), "POST /api/do": answer(s.do), "POST /api/calls": answer(s.callsSince), "POST /api/call": answer(s.wholeCall),
		"POST /api/reads": answer(s.reads), "POST /api/search": answer(s.search), "POST /api/tool": answer(s.tool),
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			if s.access != nil && !s.access.admits(r) {
				http.Error(w, "this needs the code of dynmcp ui", http.StatusUnauthorized)
				return
			}
			f(w, r)
		})
	}
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
		mux.ServeHTTP(w, r)
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
