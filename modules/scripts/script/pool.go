package script

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/modules/scripts/engine"
)

// A Pool manages the children that run scripts. Its zero value is ready; Close ends it.
type Pool struct {
	// BestEffort runs scripts even if the system cannot limit everything that the child may do: see
	// [Missing].
	BestEffort bool
	// Idle is how long an unused child is kept; 0 is a minute.
	Idle time.Duration
	// CPU is the processor time of a script; 0 is 10 s. A regular expression may use a second
	// or two more: the kernel ends it.
	CPU time.Duration

	children sync.WaitGroup // and the timer that ends one
	shares   shares

	mu     sync.Mutex
	closed bool
	warm   *child // an unused child; may be nil
	idle   *time.Timer
}

// Run runs a script. The Result is never nil. The error is a *[Failure] if the script is at fault,
// otherwise that of the context, or of starting a child.
func (p *Pool) Run(ctx context.Context, s Script, answer Answerer) (*Result, error) {
	if err := p.shares.take(ctx, s.User); err != nil {
		return &Result{}, err
	}
	place := &place{in: &p.shares, who: s.User}
	defer place.end()
	if !s.Memory.Resize(leastMemory) {
		return &Result{}, &Failure{Message: "the script was not run: " + tooMuch, Outcome: engine.NotSent}
	}
	defer s.Memory.Resize(0)
	c, err := p.get()
	if err != nil {
		return &Result{}, err
	}
	s.CPU = cmp.Or(p.CPU, 10*time.Second)
	r := &run{child: c, script: s, answer: answer, place: place}
	err = r.run(ctx)
	p.put(c, r.healthy)
	return &r.result, err
}

// get returns an unused child: the one that is kept, or a new one.
func (p *Pool) get() (*child, error) {
	p.mu.Lock()
	c := p.warm
	p.warm = nil
	if c != nil {
		p.idle.Stop()
	}
	p.mu.Unlock()
	if c != nil && !c.gone() {
		return c, nil
	}
	if c != nil {
		c.end()
	}
	return start(p.BestEffort, p.children.Go)
}

// put keeps a child for the next script, unless one is already kept or it must not be reused.
func (p *Pool) put(c *child, healthy bool) {
	p.mu.Lock()
	keep := healthy && !p.closed && p.warm == nil
	if keep {
		p.warm = c
		p.idle = time.AfterFunc(cmp.Or(p.Idle, time.Minute), func() { p.dismiss(c) })
	}
	p.mu.Unlock()
	if !keep {
		c.end()
	}
}

// dismiss kills c if it is still idle.
func (p *Pool) dismiss(c *child) {
	p.mu.Lock()
	kept := p.warm == c
	if kept {
		p.warm = nil
		p.children.Add(1)
		defer p.children.Done()
	}
	p.mu.Unlock()
	if kept {
		c.end()
	}
}

// Close ends the children. Run must not be called any more, and has returned.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	c := p.warm
	if c != nil {
		p.idle.Stop()
	}
	p.mu.Unlock()
	if c != nil {
		p.dismiss(c)
	}
	p.children.Wait()
}
