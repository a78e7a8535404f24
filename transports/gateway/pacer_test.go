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

// For forged tokens, the gateway sends an issuer one request in ten seconds and not one for each
// token. That holds for an issuer that is down and for one that lacks the key, and for
// concurrent and for consecutive tokens.
func TestForgedTokensDoNotFloodTheIssuer(t *testing.T) {
	t.Parallel()
	const many = 50
	of := newIssuer(t)
	var requests, atOnce atomic.Int64
	var down atomic.Bool
	var tg *testGateway
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		for deadline := time.Now().Add(5 * time.Second); atOnce.Load() > 0 && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
			if unauthenticated, authenticated := tg.ln.conns.counts(); unauthenticated+authenticated >= many {
				break // all requests have come
			}
		}
		if down.Load() {
			http.Error(w, "down", http.StatusBadGateway)
			return
		}
		of.serve(w, r)
	}))
	t.Cleanup(front.Close)
	of.url = front.URL
	tg = newTestGateway(t, GatewayOptions{OAuth: &OAuth{Issuers: []string{of.url}, Audience: "tests"}}, nil)
	tg.client.Transport.(*http.Transport).MaxIdleConnsPerHost = many
	began := time.Now()
	asked := func(what string, most int64) {
		t.Helper()
		most += most * int64(time.Since(began)/(10*time.Second)) // on a slow machine the pause may end
		if got := requests.Load(); got > most {
			t.Errorf("%s was asked %d times in %v, want %d", what, got, time.Since(began), most)
		}
	}
	claims := map[string]any{"iss": of.url, "sub": "ann", "aud": "tests", "exp": time.Now().Add(time.Hour).Unix()}
	token, forged := of.sign(jose.ES256, of.key, claims), of.signAs("unknown", jose.ES256, of.key, claims)
	flood := func(token string, status int) {
		t.Helper()
		one := func() {
			if a := tg.do("POST", "/mcp", initialize, "Authorization", "Bearer "+token); a.status != status {
				t.Errorf("got %+v, want %d", a, status)
			}
		}
		var work sync.WaitGroup
		atOnce.Store(1)
		for range many {
			work.Go(one)
		}
		work.Wait()
		atOnce.Store(0)
		for range many {
			one()
		}
	}
	down.Store(true)
	flood(forged, 401)
	asked("an issuer that is down", 2) // the two addresses of its metadata
	down.Store(false)
	pace := tg.g.access.issued.client.Transport.(*pacer)
	pace.pause = 0 // as if it were over
	flood(token, 200)
	pace.pause = keysPause
	requests.Store(0)
	began = time.Now()
	flood(forged, 401)
	asked("an issuer without the key", 1)
	flood(token, 200)
}
