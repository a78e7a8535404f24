package script

import (
	"context"
	"slices"
	"sync"
)

// maxScripts is how many scripts run at a time. Others wait.
const maxScripts = 16

// shares are the places for scripts that run. A user may have as many as it leaves free for others,
// and one in any case.
type shares struct {
	mu      sync.Mutex
	taken   int
	of      map[string]int // by user
	waiting []*waiter      // the first came first
}

type waiter struct {
	who string
	got chan struct{} // closed when it has a place
}

// take waits for a place, and returns an error if ctx ends first.
func (s *shares) take(ctx context.Context, who string) error {
	s.mu.Lock()
	w := &waiter{who, make(chan struct{})}
	s.waiting = append(s.waiting, w)
	s.grantLocked()
	s.mu.Unlock()
	select {
	case <-w.got:
		if ctx.Err() == nil {
			return nil
		}
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.waiting, w); i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
	} else {
		s.changeLocked(who, -1)
	}
	return context.Cause(ctx)
}

// change gives a place back with -1. A script that goes on after a wait takes one with 1, even if
// there is none left: what it waits for has happened.
func (s *shares) change(who string, by int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changeLocked(who, by)
}

func (s *shares) changeLocked(who string, by int) {
	if s.of == nil {
		s.of = map[string]int{}
	}
	s.taken += by
	if s.of[who] += by; s.of[who] == 0 {
		delete(s.of, who)
	}
	s.grantLocked()
}

// grantLocked gives free places to those who wait and may have one.
func (s *shares) grantLocked() {
	for i := 0; i < len(s.waiting); {
		w := s.waiting[i]
		free, own := maxScripts-s.taken, s.of[w.who]
		if free < 1 || own > 0 && own+1 > free {
			i++
			continue
		}
		s.waiting = slices.Delete(s.waiting, i, i+1)
		if s.of == nil {
			s.of = map[string]int{}
		}
		s.taken++
		s.of[w.who]++
		close(w.got)
	}
}

// A place is the place of one script, which gives it back while it waits for a person or a timer.
type place struct {
	in  *shares
	who string

	mu    sync.Mutex
	waits int // reasons for which it waits
}

// wait gives the place back until goOn was called as often.
func (p *place) wait() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waits++; p.waits == 1 {
		p.in.change(p.who, -1)
	}
}

func (p *place) goOn() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waits--; p.waits == 0 {
		p.in.change(p.who, 1)
	}
}

// end gives the place back for good.
func (p *place) end() { p.wait() }
