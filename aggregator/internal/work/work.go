// Package work runs the goroutines of an aggregator. Each has an owner that waits for it,
// and a panic ends only the goroutine, not the process.
package work

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
)

// A Group is a set of goroutines that Close waits for.
type Group struct {
	ctx context.Context
	log *slog.Logger

	mu     sync.Mutex
	closed bool
	wg     sync.WaitGroup
}

// New returns a group whose goroutines have to end with ctx.
func New(ctx context.Context, log *slog.Logger) *Group { return &Group{ctx: ctx, log: log} }

// Close waits for all goroutines. No goroutine can begin after it.
func (g *Group) Close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.wg.Wait()
}

// Go runs f on a goroutine. It reports false, and does not run f, after Close.
func (g *Group) Go(f func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.wg.Go(func() { g.Guard(f) })
	return true
}

// Guard runs f, and logs a panic.
func (g *Group) Guard(f func()) {
	defer g.Recover()
	f()
}

// Recover, deferred, logs a panic and ends it.
func (g *Group) Recover() {
	if p := recover(); p != nil {
		g.log.Error("panic", "panic", p, "stack", string(debug.Stack()))
	}
}

// Answer is Go for a function that answers a request. If it panics, the request is answered
// with the panic.
func (g *Group) Answer(r *host.Request, f func()) {
	began := g.Go(func() {
		defer ReplyPanic(r)
		f()
	})
	if !began {
		r.Reply(nil, transports.ShuttingDown(transports.NotSent))
	}
}

// AnswerWithin is Answer with the context of the request.
func (g *Group) AnswerWithin(r *host.Request, f func(ctx context.Context)) {
	g.Answer(r, func() {
		ctx, cancel := g.ContextOf(r)
		defer cancel()
		f(ctx)
	})
}

// ContextOf returns a context that ends when the host cancels a request, and with the group's
// context.
func (g *Group) ContextOf(r *host.Request) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(g.ctx)
	if !r.OnCancel(func(json.RawMessage) { cancel() }) {
		cancel()
	}
	return ctx, cancel
}

// ReplyPanic, deferred, answers a request with a panic, and panics again.
func ReplyPanic(r *host.Request) {
	if p := recover(); p != nil {
		r.Reply(nil, &wire.Error{Code: wire.CodeInternal, Message: fmt.Sprintf("internal error: %v", p)})
		panic(p)
	}
}

// Context returns the context with which the goroutines have to end.
func (g *Group) Context() context.Context { return g.ctx }

// ReportWait sends a host progress every two seconds, which says what its request waits for.
// stop ends the reports, and returns when the last one was sent.
func (g *Group) ReportWait(ctx context.Context, host transports.Peer, token json.RawMessage, text string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer g.Recover()
		ticker := time.NewTicker(2 * time.Second)
		defer ticker.Stop()
		for n := 1; ; n++ {
			select {
			case <-ticker.C:
				host.Notify("notifications/progress", fmt.Appendf(nil, `{"progressToken":%s,"progress":%d,"message":%s}`,
					token, n, wire.Quote(text)))
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}
