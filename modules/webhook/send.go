package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/event"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/schema"
)

const (
	queued     = 256              // messages that wait for an address
	maxTime    = 10 * time.Second // of a request
	maxEnd     = 5 * time.Second  // for what is queued when the run ends
	maxAnswer  = 4 << 10          // bytes that are read of an answer
	firstPause = time.Second      // before a request is repeated; each further pause is 5 times as long
	tries      = 4                // for a message
)

// start sends the events of a run to the addresses of its config.
func start(run module.Run) (module.Part, error) {
	if !run.Hosts {
		return nil, nil
	}
	p := &part{log: run.Log}
	return p, p.Follow(run.Config)
}

// A part sends the events of a run.
type part struct {
	log *slog.Logger

	mu      sync.RWMutex
	hooks   []Webhook
	senders []*sender
	ended   sync.WaitGroup // senders of earlier configs
}

// Follow changes to the addresses of another config. What is queued for earlier ones is sent.
func (p *part) Follow(cfg *schema.Config) error {
	hooks := schema.Keys[Keys](cfg).Webhooks
	p.mu.Lock()
	defer p.mu.Unlock()
	if reflect.DeepEqual(hooks, p.hooks) {
		return nil
	}
	for _, s := range p.senders {
		p.ended.Go(s.end)
	}
	p.hooks, p.senders = hooks, nil
	for _, hook := range hooks {
		p.senders = append(p.senders, newSender(hook, nil, p.log))
	}
	return nil
}

func (p *part) each(message func(Webhook) (message, bool)) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	for _, s := range p.senders {
		if m, ok := message(s.hook); ok {
			s.add(m)
		}
	}
}

// Called, Listed, Wants and End are those of an event.ToolsObserver.

func (p *part) Called(c event.Call) {
	p.each(func(hook Webhook) (message, bool) { return hook.aboutCall(&c) })
}

func (p *part) Listed(t event.Tools) {
	p.each(func(hook Webhook) (message, bool) { return hook.aboutTools(t, time.Now()) })
}

func (p *part) Opened(event.Session)  {}
func (p *part) Closed(event.Session)  {}
func (p *part) Dropped(event.Session) {}

func (p *part) Wants() (calls, arguments bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return len(p.senders) > 0, false
}

// End waits until what is queued was sent, but not long.
func (p *part) End() {
	p.mu.Lock()
	senders := p.senders
	p.senders = nil
	p.mu.Unlock()
	for _, s := range senders {
		p.ended.Go(s.end)
	}
	p.ended.Wait()
}

// A sender sends messages to one address, in order.
type sender struct {
	hook    Webhook
	web     *http.Client
	log     *slog.Logger
	queue   chan message
	dropped atomic.Int64
	cancel  context.CancelFunc
	done    chan struct{} // closed when run has returned
}

// newSender starts a sender. A nil transport is a new one.
func newSender(hook Webhook, transport http.RoundTripper, log *slog.Logger) *sender {
	if transport == nil {
		transport = http.DefaultTransport.(*http.Transport).Clone()
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &sender{
		hook: hook, log: log, queue: make(chan message, queued), cancel: cancel, done: make(chan struct{}),
		web: &http.Client{Transport: transport, Timeout: maxTime, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}
	go s.run(ctx)
	return s
}

// add queues a message. It does not wait: without room the message is lost, and a later one says so.
func (s *sender) add(m message) {
	select {
	case s.queue <- m:
	default:
		s.dropped.Add(1)
	}
}

// end sends what is queued, for at most maxEnd. Nothing is added afterwards.
func (s *sender) end() {
	close(s.queue)
	defer time.AfterFunc(maxEnd, s.cancel).Stop()
	<-s.done
	s.cancel()
	s.web.CloseIdleConnections()
}

func (s *sender) run(ctx context.Context) {
	defer close(s.done)
	left := 0
	for m := range s.queue {
		if ctx.Err() != nil {
			left++
			continue
		}
		m.Dropped = s.dropped.Swap(0)
		if err := s.deliver(ctx, m); err != nil {
			s.dropped.Add(m.Dropped + 1)
			s.log.Warn("a webhook was not delivered", "to", s.hook.name(), "type", m.Type, "err", err)
		}
	}
	if left > 0 {
		s.log.Warn("webhooks were not delivered before the end", "to", s.hook.name(), "messages", left)
	}
}

// deliver sends a message, and repeats it while the address is not available.
func (s *sender) deliver(ctx context.Context, m message) error {
	id, pause := newID(), firstPause
	for try := 1; ; try++ {
		status, err := s.post(ctx, id, m)
		if err == nil && (status < 300 || status != http.StatusTooManyRequests && status < 500) || try == tries || ctx.Err() != nil {
			return errors.Join(err, failed(status))
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return errors.Join(err, failed(status))
		}
		pause *= 5
	}
}

// failed returns the error of a status that is not one of success; 0 is none.
func failed(status int) error {
	if status == 0 || status >= 200 && status < 300 {
		return nil
	}
	return fmt.Errorf("the address answered %d %s", status, http.StatusText(status))
}

// post sends a message once. Its error does not show the address.
func (s *sender) post(ctx context.Context, id string, m message) (status int, err error) {
	body, err := json.Marshal(m)
	if err != nil {
		return 0, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.hook.URL, bytes.NewReader(body))
	if err != nil {
		return 0, errors.New("the address is not valid")
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "dynmcp/"+cli.Version)
	for name, value := range s.hook.headers(id, body, time.Now()) {
		r.Header.Set(name, value)
	}
	answer, err := s.web.Do(r)
	if err != nil {
		if shown, ok := errors.AsType[*url.Error](err); ok {
			err = shown.Err
		}
		return 0, err
	}
	defer answer.Body.Close()
	_, _ = io.CopyN(io.Discard, answer.Body, maxAnswer) // so that the connection can be used again
	return answer.StatusCode, nil
}
