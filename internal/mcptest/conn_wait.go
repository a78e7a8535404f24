package mcptest

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

var errTimeout = os.ErrDeadlineExceeded

// Messages returns all messages received so far, in order.
func (c *Conn) Messages() []Message {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clip(c.received)
}

// Lines returns all lines received so far, verbatim.
func (c *Conn) Lines() []string {
	var lines []string
	for _, m := range c.Messages() {
		lines = append(lines, m.Raw)
	}
	return lines
}

// Count returns the number of messages with a method that were received so far.
func (c *Conn) Count(method string) int {
	n := 0
	for _, m := range c.Messages() {
		if m.Method == method {
			n++
		}
	}
	return n
}

// WaitFor returns the first message that fits, of those already received and those to come.
func (c *Conn) WaitFor(fits func(Message) bool) Message {
	c.t.Helper()
	return c.wait(0, "a message that fits", fits)
}

// WaitMethod returns the nth message with a method, counted from 1 and from the start.
func (c *Conn) WaitMethod(method string, nth int) Message {
	c.t.Helper()
	n := 0
	return c.wait(0, fmt.Sprintf("%s number %d", method, nth), func(m Message) bool {
		if m.Method == method {
			n++
		}
		return m.Method == method && n == nth
	})
}

// WaitAfter is WaitFor without the first n lines. With an earlier len(c.Lines()) it waits for a
// message since then.
func (c *Conn) WaitAfter(n int, fits func(Message) bool) Message {
	c.t.Helper()
	return c.wait(n, "a message that fits", fits)
}

// WaitEnd waits until the program has closed its stdout. It may still be running.
func (c *Conn) WaitEnd() {
	c.t.Helper()
	timer := time.NewTimer(watchdog)
	defer timer.Stop()
	for {
		_, changed := c.after(0)
		if changed == nil {
			return
		}
		select {
		case <-changed:
		case <-timer.C:
			c.t.Fatalf("stdout never ended\n%s", c.report())
		}
	}
}

// wait calls fits once for each message, in order.
func (c *Conn) wait(from int, what string, fits func(Message) bool) Message {
	c.t.Helper()
	timer := time.NewTimer(watchdog)
	defer timer.Stop()
	gone := c.gone
	for {
		came, changed := c.after(from)
		if i := slices.IndexFunc(came, fits); i >= 0 {
			return came[i]
		}
		from += len(came)
		if changed == nil {
			c.t.Fatalf("the program closed stdout before %s came\n%s", what, c.report())
		}
		select {
		case <-changed:
		case <-gone:
			// A descendant may hold stdout open, but sends no answer.
			gone = nil
			timer.Reset(min(watchdog, 10*time.Second))
		case <-timer.C:
			c.t.Fatalf("%s never came\n%s", what, c.report())
		}
	}
}

// after returns the messages after the first n lines, and a channel that is closed at the next one,
// nil if the stream has ended.
func (c *Conn) after(n int) ([]Message, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	came := slices.Clip(c.received[n:])
	if c.over {
		return came, nil
	}
	if c.changed == nil {
		c.changed = make(chan struct{})
	}
	return came, c.changed
}

// report describes a failed wait: the last lines and standard error.
func (c *Conn) report() string {
	const last, width = 40, 500
	lines := c.Lines()
	var b strings.Builder
	fmt.Fprintf(&b, "%d lines received", len(lines))
	for _, line := range lines[max(0, len(lines)-last):] {
		if len(line) > width {
			line = fmt.Sprintf("%s… (%d bytes)", line[:width], len(line))
		}
		b.WriteString("\n\t" + line)
	}
	return b.String() + "\n" + c.more()
}
