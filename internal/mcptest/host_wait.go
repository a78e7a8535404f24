package mcptest

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// What a Host has received, and waiting for more of it.

var errTimeout = os.ErrDeadlineExceeded

// Messages are all lines received so far, in order.
func (h *Host) Messages() []Message {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clip(h.received)
}

// Lines are all lines received so far, verbatim.
func (h *Host) Lines() []string {
	var lines []string
	for _, m := range h.Messages() {
		lines = append(lines, m.Raw)
	}
	return lines
}

// Count tells how many messages of a method have come so far.
func (h *Host) Count(method string) int {
	n := 0
	for _, m := range h.Messages() {
		if m.Method == method {
			n++
		}
	}
	return n
}

// WaitFor returns the first message, of all that came and will come, that fits.
func (h *Host) WaitFor(fits func(Message) bool) Message {
	h.t.Helper()
	return h.wait(0, "a message that fits", fits)
}

// WaitMethod returns the nth message of a method, counted from 1 and from the start.
func (h *Host) WaitMethod(method string, nth int) Message {
	h.t.Helper()
	n := 0
	return h.wait(0, fmt.Sprintf("%s number %d", method, nth), func(m Message) bool {
		if m.Method == method {
			n++
		}
		return m.Method == method && n == nth
	})
}

// WaitAfter is WaitFor among what came after the first n lines; len(h.Lines()),
// taken earlier, makes it "from then on".
func (h *Host) WaitAfter(n int, fits func(Message) bool) Message {
	h.t.Helper()
	return h.wait(n, "a message that fits", fits)
}

// WaitEnd waits until the program has closed its stdout; it may still live.
func (h *Host) WaitEnd() {
	h.t.Helper()
	timer := time.NewTimer(watchdog)
	defer timer.Stop()
	for {
		_, changed := h.after(0)
		if changed == nil {
			return
		}
		select {
		case <-changed:
		case <-timer.C:
			h.t.Fatalf("stdout never ended\n%s", h.report())
		}
	}
}

// wait shows each message to fits once, in order.
func (h *Host) wait(from int, what string, fits func(Message) bool) Message {
	h.t.Helper()
	timer := time.NewTimer(watchdog)
	defer timer.Stop()
	exited := h.exited
	for {
		came, changed := h.after(from)
		if i := slices.IndexFunc(came, fits); i >= 0 {
			return came[i]
		}
		from += len(came)
		if changed == nil {
			h.t.Fatalf("the program closed stdout before %s came\n%s", what, h.report())
		}
		select {
		case <-changed:
		case <-exited:
			// A descendant may hold stdout open, but nothing useful comes from it.
			exited = nil
			timer.Reset(2 * time.Second)
		case <-timer.C:
			h.t.Fatalf("%s never came\n%s", what, h.report())
		}
	}
}

// after returns what came after the first n lines, and a channel that is closed
// when there is more; it is nil when there will be no more.
func (h *Host) after(n int) ([]Message, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	came := slices.Clip(h.received[n:])
	if h.over {
		return came, nil
	}
	if h.changed == nil {
		h.changed = make(chan struct{})
	}
	return came, h.changed
}

// report is what a failed wait has to say: the last lines and standard error.
func (h *Host) report() string {
	const last, width = 40, 500
	lines := h.Lines()
	var b strings.Builder
	fmt.Fprintf(&b, "%d lines received", len(lines))
	for _, line := range lines[max(0, len(lines)-last):] {
		if len(line) > width {
			line = fmt.Sprintf("%s… (%d bytes)", line[:width], len(line))
		}
		b.WriteString("\n\t" + line)
	}
	return b.String() + "\n" + h.Process.report()
}
