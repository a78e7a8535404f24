package gateway

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// keysPause is how long the answer of an issuer, or its failure, is reused. Otherwise forged
// tokens would cause a request each.
const keysPause = 10 * time.Second

// A pacer is an http.RoundTripper that sends at most one request to each address per pause.
// Requests in between get the same answer.
type pacer struct {
	pause  time.Duration
	asking singleflight.Group

	mu    sync.Mutex
	known map[string]*storedAnswer // by address; only issuers in the config choose addresses
}

// A storedAnswer is the last answer of an address.
type storedAnswer struct {
	at     time.Time
	answer *http.Response // its body is in body
	body   []byte
	err    error
}

// RoundTrip implements http.RoundTripper for GET requests.
func (p *pacer) RoundTrip(r *http.Request) (*http.Response, error) {
	address := r.URL.String()
	done := p.asking.DoChan(address, func() (any, error) { return p.ask(r), nil })
	select {
	case <-r.Context().Done():
		return nil, context.Cause(r.Context())
	case result := <-done:
		last := result.Val.(*storedAnswer)
		if last.err != nil {
			return nil, last.err
		}
		answer := *last.answer
		answer.Header = answer.Header.Clone()
		answer.Request, answer.Body = r, io.NopCloser(bytes.NewReader(last.body))
		return &answer, nil
	}
}

// ask returns the stored answer of an address, or a new one if that is older than the pause.
func (p *pacer) ask(r *http.Request) (last *storedAnswer) {
	address := r.URL.String()
	p.mu.Lock()
	last = p.known[address]
	p.mu.Unlock()
	if last != nil && time.Since(last.at) < p.pause {
		return last
	}
	last = &storedAnswer{}
	defer func() {
		if panicked := recover(); panicked != nil {
			last.err = fmt.Errorf("internal error: %v", panicked)
		}
		last.at = time.Now()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.known[address] = last
	}()
	// The first caller may give up before the others have the answer.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), 10*time.Second)
	defer cancel()
	if last.answer, last.err = http.DefaultTransport.RoundTrip(r.Clone(ctx)); last.err == nil {
		defer last.answer.Body.Close()
		last.body, last.err = io.ReadAll(io.LimitReader(last.answer.Body, 1<<20))
	}
	return last
}
