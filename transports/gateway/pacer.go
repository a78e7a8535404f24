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
	known map[string]*asked // by address; only issuers in the config choose addresses
}

// An asked is the last answer of an address.
type asked struct {
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
		is := result.Val.(*asked)
		if is.err != nil {
			return nil, is.err
		}
		answer := *is.answer
		answer.Header = answer.Header.Clone()
		answer.Request, answer.Body = r, io.NopCloser(bytes.NewReader(is.body))
		return &answer, nil
	}
}

// ask returns the stored answer of an address, or a new one if that is older than the pause.
func (p *pacer) ask(r *http.Request) (is *asked) {
	address := r.URL.String()
	p.mu.Lock()
	is = p.known[address]
	p.mu.Unlock()
	if is != nil && time.Since(is.at) < p.pause {
		return is
	}
	is = &asked{}
	defer func() {
		if panicked := recover(); panicked != nil {
			is.err = fmt.Errorf("internal error: %v", panicked)
		}
		is.at = time.Now()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.known[address] = is
	}()
	// The first caller may give up before the others have the answer.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), 10*time.Second)
	defer cancel()
	if is.answer, is.err = http.DefaultTransport.RoundTrip(r.Clone(ctx)); is.err == nil {
		defer is.answer.Body.Close()
		is.body, is.err = io.ReadAll(io.LimitReader(is.answer.Body, 1<<20))
	}
	return is
}
