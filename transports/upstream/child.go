package upstream

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync/atomic"
	"time"

	"github.com/dynmcp/dynmcp/internal/event"
	"github.com/dynmcp/dynmcp/internal/guard"
	"github.com/dynmcp/dynmcp/internal/packages"
	"github.com/dynmcp/dynmcp/transports/upstream/command"
	"github.com/dynmcp/dynmcp/transports/upstream/farside"
)

const (
	// stopGrace is how long a child may take to end after its stdin was closed,
	// and again after SIGTERM. MCP, "Transports", shutdown.
	stopGrace = 1500 * time.Millisecond
	// exitGrace is how long to wait for the exit of a child whose pipe broke: its exit
	// status is more specific.
	exitGrace = 1500 * time.Millisecond
	// drainGrace is how long pipes are read after the child is gone, because a grandchild may
	// hold them open.
	drainGrace = 500 * time.Millisecond
	// quiet is how long the stdout and stderr of an ended child must be silent before its calls
	// fail, if its own children keep them open: its last output may still be in the pipes.
	quiet = 250 * time.Millisecond
)

// A childLink talks to a command over the pipes of its process. The command and everything that
// it starts are one tree, which ends with the connection.
type childLink struct {
	lineLink
	tree       *guard.Tree
	installing atomic.Bool // a package runner has written nothing to stdout so far
	stdin      *os.File
	stdout     *timedPipe
	errPipe    *timedPipe
	stderrTail command.Tail
	launch     command.Launch
	stdoutRead chan struct{} // closed when stdout was read to its end
	stderrRead chan struct{} // closed when stderr was
	gone       chan struct{} // closed when nothing of the tree is left
	far        *farside.Far  // nil if the command starts nothing elsewhere
}

// A Process serves a connection. The zero value means a remote server.
type Process struct {
	PID     int
	Sandbox *event.Sandbox // nil without one
}

// Process returns the process that serves the connection.
func (c *Conn) Process() Process {
	if l, ok := c.link.(*childLink); ok {
		return Process{l.tree.Pid(), l.launch.Status()}
	}
	return Process{}
}

// openChild starts the server's command and reads its output.
func openChild(c *Conn) error {
	l := &childLink{
		stderrTail: command.Tail{Max: 64 << 10, Redact: c.opts.Redact},
		stdoutRead: make(chan struct{}),
		stderrRead: make(chan struct{}),
		gone:       make(chan struct{}),
	}
	var err error
	if l.launch, err = command.Prepare(c.server, c.log, l.stderrTail.Add); err != nil {
		return c.StartFailure(fmt.Sprintf("start %q", c.server.Command), err)
	}
	env := append(l.launch.Env(), c.opts.Env...)
	at := command.AtHome(c.server)
	if command.LauncherOf(at) == nil { // no client of an engine works in a sandbox
		l.far, at.Args = farside.New(at, env)
	}
	if err := l.start(at.Command, at.Args, at.Cwd, env, c.opts.Fence); err != nil {
		l.endLaunch(c)
		if missing := command.Check(c.server); missing != nil {
			err = missing // says what to install, or what to correct
		}
		return c.StartFailure(fmt.Sprintf("start %q", c.server.Command), err)
	}
	c.log.Debug("started", "pid", l.tree.Pid())
	if runner, _ := packages.Installer(c.server.Command, c.server.Args); runner != "" {
		l.installing.Store(true)
		l.tree.Installing(true)
		l.stdout.onFirst = func() {
			l.installing.Store(false)
			l.tree.Installing(false)
		}
	}
	l.lineLink = newLineLink(c, l.stdin)
	c.link = l
	c.spawn(l.readStdout)
	c.spawn(func() {
		defer close(l.stderrRead)
		l.stderrTail.Drain(l.errPipe, func(line string) { c.log.Debug("stderr", "line", line) })
	})
	c.spawn(l.watchStdin)
	c.spawn(l.watchExit)
	return nil
}

// start starts the command with the other ends of our pipes.
func (l *childLink) start(program string, args []string, dir string, env []string, fence *guard.Fence) error {
	path, err := command.Find(program, dir, env)
	if err != nil {
		return err
	}
	path, args = l.launch.Command(path, append([]string{program}, args...))
	var pipes [6]*os.File // of stdin, stdout and stderr: the end to read and the end to write
	for i := 0; i < len(pipes); i += 2 {
		if pipes[i], pipes[i+1], err = os.Pipe(); err != nil {
			closeAll(pipes[:]...)
			return guard.MarkResources(err)
		}
	}
	l.stdin, l.stdout, l.errPipe = pipes[1], &timedPipe{File: pipes[2]}, &timedPipe{File: pipes[4]}
	cmd := &exec.Cmd{Path: path, Args: args, Dir: dir, Env: env, Stdin: pipes[0], Stdout: pipes[3], Stderr: pipes[5]}
	l.tree, err = guard.StartWith(cmd, fence, l.launch.Restrictions(), l.far.After())
	closeAll(pipes[0], pipes[3], pipes[5])
	if err != nil {
		closeAll(pipes[1], pipes[2], pipes[4])
	}
	return err
}

func closeAll(files ...*os.File) {
	for _, f := range files {
		f.Close() // a nil file returns an error
	}
}

func (l *childLink) readStdout() {
	func() {
		defer close(l.stdoutRead)
		l.conn.readLines(l.stdout, l.writer)
	}()
	l.endAfter(exitGrace, errors.New("it closed its stdout"))
}

func (l *childLink) watchStdin() {
	<-l.writer.Done()
	if err := l.writer.Err(); err != nil {
		l.endAfter(drainGrace, fmt.Errorf("it closed its stdin: %w", withoutPath(err)))
	}
}

// endAfter ends a child whose pipe broke, unless it ends by itself in time: its exit status
// is more specific than a broken pipe.
func (l *childLink) endAfter(grace time.Duration, why error) {
	select {
	case <-l.gone:
	case <-l.conn.ctx.Done():
	case <-time.After(grace):
		l.conn.end(why)
		l.kill()
	}
}

// watchExit ends the connection when the child has ended. It returns when nothing is left of
// the tree and its output was read, or when an unknown process has held the pipes open for
// longer than drainGrace.
func (l *childLink) watchExit() {
	why := l.tree.Wait()
	switch {
	case errors.Is(why, guard.ErrFenced):
		why = fmt.Errorf("%w: %w", why, ErrMoved)
	case l.conn.killed.Load():
		why = errNotHere
	}
	l.stdout.awaitSilence(l.stdoutRead)
	l.errPipe.awaitSilence(l.stderrRead)
	l.conn.end(why)
	l.tree.Reap()
	l.far.End(l.conn.log)
	close(l.gone)
	late := time.AfterFunc(drainGrace, func() { closeAll(l.stdout.File, l.errPipe.File) })
	<-l.stdoutRead
	<-l.stderrRead
	late.Stop()
	closeAll(l.stdout.File, l.errPipe.File)
	l.stdin.Close()
	l.writer.Close()
	l.endLaunch(l.conn)
}

func (l *childLink) endLaunch(c *Conn) {
	if err := l.launch.Close(); err != nil {
		c.log.Warn("the sandbox was not removed", "err", err)
	}
}

func (l *childLink) kill() { l.tree.Kill() }

func (l *childLink) stderr() string { return l.stderrTail.Text() }

// close ends the child in stages: its stdin is closed, its group gets SIGTERM, the whole tree
// SIGKILL. It returns when the tree is gone. A package runner may finish its install first: an
// interrupted npm leaves files with which every later npx of the package fails.
func (l *childLink) close() {
	if l.conn.killed.Load() { // the tree is ending already
		<-l.gone
		return
	}
	flushed := make(chan struct{})
	l.conn.spawn(func() {
		defer close(flushed)
		l.writer.Close() // queued messages are sent first, if the child reads
		l.stdin.Close()
	})
	defer func() {
		l.stdin.Close()
		<-flushed
	}()
	first, grace := func() {}, l.conn.opts.timing.stopGrace
	if l.installing.Load() {
		l.conn.log.Info("waiting for the install to finish", "at_most", guard.InstallLimit)
		first, grace = l.tree.End, guard.InstallLimit
	}
	for _, stage := range []func(){first, l.tree.Terminate, func() { l.far.End(l.conn.log); l.tree.Kill() }} {
		stage()
		late := time.After(grace)
		grace = l.conn.opts.timing.stopGrace
		select {
		case <-l.gone:
			return
		case <-late:
			l.stdin.Close() // interrupts a write that the child does not read
		}
	}
	<-l.gone
}

// waitAtMost waits until done is closed, and reports false if that takes longer than atMost.
func waitAtMost(done <-chan struct{}, atMost time.Duration) bool {
	select {
	case <-done:
		return true
	case <-time.After(atMost):
		return false
	}
}

// A timedPipe records since when a read has been waiting for data.
type timedPipe struct {
	*os.File
	waitingSince atomic.Int64 // in nanoseconds of Unix time; 0 while no read waits
	onFirst      func()       // called once, when something was read; may be nil
}

func (p *timedPipe) Read(b []byte) (int, error) {
	p.waitingSince.Store(time.Now().UnixNano())
	defer p.waitingSince.Store(0)
	n, err := p.File.Read(b)
	if n > 0 && p.onFirst != nil {
		p.onFirst()
		p.onFirst = nil
	}
	return n, err
}

// awaitSilence returns when the pipe of an ended process was read to its end or, if another
// process holds it open, until no more data arrives. It takes as long as handling the
// contents of the pipe.
func (p *timedPipe) awaitSilence(atEnd <-chan struct{}) {
	began := time.Now().UnixNano()
	ticker := time.NewTicker(quiet / 5)
	defer ticker.Stop()
	for {
		select {
		case <-atEnd:
			return
		case now := <-ticker.C:
			since := p.waitingSince.Load()
			if since != 0 && now.UnixNano()-max(since, began) > int64(quiet) {
				return
			}
		}
	}
}
