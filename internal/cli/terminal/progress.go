package terminal

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Progress is a line on a terminal that shows what is waited for and for how long. On other outputs
// it shows nothing.
type Progress struct {
	out   *Writer
	began time.Time
	stop  chan struct{}
	end   sync.Once
	done  sync.WaitGroup

	mu    sync.Mutex // also held while the line is written, so that other output does not mix with it
	text  string
	drawn bool
}

// progressDelay is the duration of a wait before the line appears.
const progressDelay = 300 * time.Millisecond

// ShowProgress shows a text until End is called.
func ShowProgress(out *Writer, text string) *Progress {
	p := &Progress{out: out, began: time.Now(), stop: make(chan struct{}), text: text}
	if out.Interactive {
		p.done.Go(p.run)
	}
	return p
}

// ShowStarting shows the servers that are being started. ready removes a server.
func ShowStarting(out *Writer, servers []string) (p *Progress, ready func(server string)) {
	left := slices.Clone(servers)
	text := func() string { return "starting " + strings.Join(left, ", ") }
	p = ShowProgress(out, text())
	var mu sync.Mutex
	return p, func(server string) {
		mu.Lock()
		defer mu.Unlock()
		left = slices.DeleteFunc(left, func(name string) bool { return name == server })
		p.Say(text())
	}
}

func (p *Progress) run() {
	ticker := time.NewTicker(progressDelay / 3)
	defer ticker.Stop()
	for {
		select {
		case <-p.stop:
			p.Above(func() {})
			return
		case <-ticker.C:
			if time.Since(p.began) >= progressDelay {
				p.draw()
			}
		}
	}
}

func (p *Progress) draw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	elapsed := fmt.Sprintf(" (%.1fs)", time.Since(p.began).Seconds())
	text := OneLine(p.text)
	if p.out.Width > 0 {
		text = Truncate(text, max(0, p.out.Width-1-len(elapsed)))
	}
	p.drawn = true
	fmt.Fprintf(p.out.W, "\r\x1b[K%s%s", text, elapsed)
}

// Above removes the line, calls print, and lets the line appear again below.
func (p *Progress) Above(print func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.drawn {
		p.out.ClearLine()
		p.drawn = false
	}
	print()
}

// Say changes the text of the line.
func (p *Progress) Say(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text = text
}

// End removes the line. It may be called more than once.
func (p *Progress) End() {
	p.end.Do(func() { close(p.stop) })
	p.done.Wait()
}
