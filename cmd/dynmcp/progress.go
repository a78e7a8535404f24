package main

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// A progress shows on a terminal, in one line, what is being waited for and for
// how long already. On anything else it shows nothing.
type progress struct {
	out   *terminal
	began time.Time
	stop  chan struct{}
	done  sync.WaitGroup

	mu    sync.Mutex // held while the line is written, too: no one clears half of it
	text  string
	drawn bool
}

// progressDelay is how long a wait may be without a progress line.
const progressDelay = 300 * time.Millisecond

func showProgress(out *terminal, text string) *progress {
	p := &progress{out: out, began: time.Now(), stop: make(chan struct{}), text: text}
	if out.interactive {
		p.done.Go(p.run)
	}
	return p
}

// showStarting shows which of several servers are still being started. ready takes
// one off the list.
func showStarting(out *terminal, servers []string) (p *progress, ready func(server string)) {
	left := slices.Clone(servers)
	text := func() string { return "starting " + strings.Join(left, ", ") }
	p = showProgress(out, text())
	var mu sync.Mutex
	return p, func(server string) {
		mu.Lock()
		defer mu.Unlock()
		left = slices.DeleteFunc(left, func(name string) bool { return name == server })
		p.say(text())
	}
}

func (p *progress) run() {
	ticker := time.NewTicker(progressDelay / 3)
	defer ticker.Stop()
	for {
		select {
		case <-p.stop:
			p.clear()
			return
		case <-ticker.C:
			if time.Since(p.began) >= progressDelay {
				p.draw()
			}
		}
	}
}

func (p *progress) draw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	elapsed := fmt.Sprintf(" (%.1fs)", time.Since(p.began).Seconds())
	text := oneLine(p.text)
	if p.out.width > 0 {
		text = truncate(text, max(0, p.out.width-1-len(elapsed)))
	}
	p.drawn = true
	fmt.Fprintf(p.out.w, "\r\x1b[K%s%s", text, elapsed)
}

func (p *progress) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.drawn {
		p.out.clearLine()
	}
}

// above prints lines in the place of the progress line, which then goes on below.
func (p *progress) above(print func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.drawn {
		p.out.clearLine()
		p.drawn = false
	}
	print()
}

// say changes the text of the line.
func (p *progress) say(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text = text
}

// end removes the line; it may be called more than once.
func (p *progress) end() {
	p.mu.Lock()
	select {
	case <-p.stop:
	default:
		close(p.stop)
	}
	p.mu.Unlock()
	p.done.Wait()
}
