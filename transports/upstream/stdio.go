package upstream

import (
	"errors"
	"fmt"
	"io"
	"time"

	"dynmcp/internal/wire"
)

const (
	// writeStall is how long a child may leave its stdin unread.
	writeStall = 10 * time.Second
	// maxQueued is how much may wait for one child.
	maxQueued = 128 << 20
	// exitGrace is how long a child may take to end by itself, after its
	// stdin was closed and again after SIGTERM. MCP, "Transports", shutdown.
	exitGrace = 1500 * time.Millisecond
	// drainGrace is how long pipes are read after the child is gone: a
	// grandchild may hold them open.
	drainGrace = 500 * time.Millisecond
	// lastLines is how long the calls of a child that ended wait for what it
	// said last, where its own children keep its stderr open; quiet is how long
	// nothing must come from its stdout, where they keep that.
	lastLines = 50 * time.Millisecond
	quiet     = 250 * time.Millisecond
)

// openChild starts the server's command and reads what it prints.
func (c *Conn) openChild() error {
	p, err := startChild(c.server.Command, c.server.Args, c.server.Cwd, append(environment(c.server.Env, c.server.InheritEnv), c.opts.Env...))
	if err != nil {
		return c.StartFailure(fmt.Sprintf("start %q", c.server.Command), err)
	}
	c.log.Debug("started", "pid", p.tree.Pid())
	writer := wire.NewWriter(p.stdin, c.opts.stall)
	p.stderr.redact = c.opts.Redact
	c.stderr = p.stderr.tail
	c.sendLines(writer)
	c.stop = func() { p.stop(writer) }
	c.kill = p.tree.Kill

	answers, words := make(chan struct{}), make(chan struct{}) // closed when they are read
	c.spawn(func() {
		func() {
			defer close(answers)
			c.readLines(p.stdout)
		}()
		c.giveUp(p, exitGrace, errors.New("it closed its stdout"))
	})
	c.spawn(func() {
		defer close(words)
		p.stderr.drain(p.errPipe, func(line string) { c.log.Debug("stderr", "line", line) })
	})
	c.spawn(func() {
		<-writer.Done()
		if err := writer.Err(); err != nil {
			c.giveUp(p, drainGrace, fmt.Errorf("it does not read its stdin: %w", err))
		}
	})
	c.spawn(func() {
		why := p.tree.Wait()
		p.stdout.settle(answers)
		await(words, lastLines)
		c.lose(why)
		p.reap(answers, words)
		p.stdin.Close()
		writer.Close()
	})
	return nil
}

// giveUp ends a child that can no longer be talked to, unless it ends by
// itself in time: its exit status says more than a broken pipe.
func (c *Conn) giveUp(p *child, grace time.Duration, why error) {
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.gone:
	case <-c.ctx.Done():
	case <-timer.C:
		c.lose(why)
		c.kill()
	}
}

// sendLines has everything sent as lines.
func (c *Conn) sendLines(w *wire.Writer) {
	w.Cork = c.opts.Cork
	c.lines = w
	c.send = func(_ *Call, parts ...[]byte) error { return w.SendWithin(maxQueued, parts...) }
	c.begin = func(parts ...[]byte) error { return c.send(nil, parts...) }
}

// readLines handles what the upstream prints until that ends.
func (c *Conn) readLines(stream io.Reader) {
	r := wire.NewReader(heard{stream, &c.heard}, c.server.MaxMessageBytes)
	r.Cork, r.Idle = c.opts.Cork, c.opts.Throttle
	defer r.Uncork()
	for {
		m, err := r.Next()
		if err == nil {
			c.receive(m, nil)
			continue
		}
		var fault *wire.Fault
		if !errors.As(err, &fault) {
			return
		}
		c.fault(fault)
	}
}
