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

// keysPause is how long what an issuer answered, or that it did not, is good for: tokens
// that nobody has checked yet must not have it asked once for each.
const keysPause = 10 * time.Second

// A pacer asks each address once in a while; requests in between get the same answer.
type pacer struct {
	pause  time.Duration
	asking singleflight.Group

	mu    sync.Mutex
	known map[string]*asked // by address: those that the issuers of the config name
}

// An asked is what an address answered.
type asked struct {
	at     time.Time
	answer *http.Response // its body was read
	body   []byte
	err    error
}

// RoundTrip implements http.RoundTripper, for GET.
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

// ask returns what the address of a request answers, or has a while ago.
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
	// The first who asks may be gone before others have the answer.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), 10*time.Second)
	defer cancel()
	if is.answer, is.err = http.DefaultTransport.RoundTrip(r.Clone(ctx)); is.err == nil {
		defer is.answer.Body.Close()
		is.body, is.err = io.ReadAll(io.LimitReader(is.answer.Body, 1<<20))
	}
	return is
}
