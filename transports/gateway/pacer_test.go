package gateway

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Forged tokens do not have an issuer asked once for each: neither one that fails, nor one
// that answers and has no such key.
func TestForgedTokensDoNotFloodTheIssuer(t *testing.T) {
	of := newIssuer(t)
	var requests atomic.Int64
	var down atomic.Bool
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		if down.Load() {
			http.Error(w, "down", http.StatusBadGateway)
			return
		}
		of.serve(w, r)
	}))
	t.Cleanup(front.Close)
	of.url = front.URL
	tg := newTestGateway(t, Options{OAuth: &OAuth{Issuers: []string{of.url}, Audience: "tests"}}, nil)
	pace := tg.g.access.issued.client.Transport.(*pacer)
	pace.pause = time.Hour
	token := of.sign(jose.ES256, of.key, map[string]any{"iss": of.url, "sub": "ann", "aud": "tests", "exp": time.Now().Add(time.Hour).Unix()})
	forged := of.signAs("unknown", jose.ES256, of.key, map[string]any{"iss": of.url, "sub": "ann", "aud": "tests", "exp": time.Now().Add(time.Hour).Unix()})
	flood := func(token string, status int) {
		t.Helper()
		var work sync.WaitGroup
		for range 50 {
			work.Go(func() {
				if a := tg.do("POST", "/mcp", initialize, "Authorization", "Bearer "+token); a.status != status {
					t.Errorf("got %+v, want %d", a, status)
				}
			})
		}
		work.Wait()
	}
	down.Store(true)
	flood(forged, 401)
	if got := requests.Load(); got != 2 { // the two places where its metadata may be
		t.Errorf("an issuer that is down was asked %d times, want 2", got)
	}
	down.Store(false)
	pace.pause = 0 // it is over
	flood(token, 200)
	requests.Store(0)
	pace.pause = time.Hour
	flood(forged, 401)
	if got := requests.Load(); got > 1 {
		t.Errorf("an issuer without the key was asked %d times, want one", got)
	}
	flood(token, 200)
}
