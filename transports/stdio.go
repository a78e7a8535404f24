package transports

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"dynmcp/internal/guard"
	"dynmcp/internal/wire"
	"dynmcp/schema"
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
	// said last, where its own children keep its stderr open.
	lastLines = 50 * time.Millisecond
)

// openChild starts the server's command and reads what it prints.
func (c *Conn) openChild() error {
	p, err := startChild(c.server.Command, c.server.Args, c.server.Cwd, environment(c.server.Env, c.server.InheritEnv))
	if err != nil {
		return c.StartFailure(fmt.Sprintf("start %q", c.server.Command), err)
	}
	c.log.Debug("started", "pid", p.tree.Pid())
	writer := wire.NewWriter(p.stdin, c.opts.stall)
	p.stderr.redact = c.opts.Redact
	c.stderr = p.stderr.tail
	c.send = func(_ *Call, parts ...[]byte) error { return writer.SendWithin(maxQueued, parts...) }
	c.begin = func(parts ...[]byte) error { return c.send(nil, parts...) }
	c.stop = func() { p.stop(writer) }

	var readers sync.WaitGroup
	readers.Add(2)
	c.spawn(func() {
		func() {
			defer readers.Done()
			c.readLines(p.stdout)
		}()
		c.giveUp(p, exitGrace, errors.New("it closed its stdout"))
	})
	c.spawn(func() {
		defer readers.Done()
		p.stderr.drain(p.errPipe, func(line string) { c.log.Debug("stderr", "line", line) })
	})
	c.spawn(func() {
		<-writer.Done()
		if err := writer.Err(); err != nil {
			c.giveUp(p, drainGrace, fmt.Errorf("it does not read its stdin: %w", err))
		}
	})
	read := make(chan struct{})
	c.spawn(func() {
		readers.Wait()
		close(read)
	})
	c.spawn(func() {
		why := p.tree.Wait()
		await(read, lastLines)
		c.lose(why)
		p.reap(read)
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
		p.tree.Kill()
	}
}

// readLines handles what the upstream prints until that ends.
func (c *Conn) readLines(stream io.Reader) {
	r := wire.NewReader(stream, c.server.MaxMessageBytes)
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

// A child is a command and all it starts, with our ends of its pipes.
type child struct {
	tree    *guard.Tree
	stdin   *os.File
	stdout  *os.File
	errPipe *os.File
	stderr  *ring
	gone    chan struct{} // closed when nothing of the tree is left
}

func startChild(command string, args []string, dir string, env []string) (*child, error) {
	path, err := lookPath(command, dir, env)
	if err != nil {
		return nil, err
	}
	cmd := &exec.Cmd{Path: path, Args: append([]string{command}, args...), Dir: dir, Env: env}
	p := &child{stderr: &ring{max: 64 << 10}, gone: make(chan struct{})}
	var theirs []*os.File
	pipe := func(child **os.File, childReads bool) *os.File {
		r, w, pipeErr := os.Pipe()
		if pipeErr != nil {
			err = pipeErr
			return nil
		}
		if childReads {
			*child, theirs = r, append(theirs, r)
			return w
		}
		*child, theirs = w, append(theirs, w)
		return r
	}
	var in, out, errs *os.File
	p.stdin, p.stdout, p.errPipe = pipe(&in, true), pipe(&out, false), pipe(&errs, false)
	defer closeAll(&theirs)
	if err == nil {
		cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, errs
		p.tree, err = guard.Start(cmd)
	}
	if err != nil {
		closeAll(&[]*os.File{p.stdin, p.stdout, p.errPipe})
		return nil, err
	}
	return p, nil
}

func closeAll(files *[]*os.File) {
	for _, f := range *files {
		if f != nil {
			f.Close()
		}
	}
}

// reap returns when nothing is left of a child that has ended, and its output is
// read, or held open by someone we cannot see for longer than drainGrace.
func (p *child) reap(read <-chan struct{}) {
	p.tree.Reap()
	close(p.gone)
	await(read, drainGrace)
	p.stdout.Close()
	p.errPipe.Close()
	<-read
}

func await(what <-chan struct{}, atMost time.Duration) {
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	select {
	case <-what:
	case <-timer.C:
	}
}

// stop ends the child in stages: its stdin is closed, its group gets SIGTERM,
// the whole tree SIGKILL. It returns when the tree is gone.
func (p *child) stop(w *wire.Writer) {
	flushed := make(chan struct{})
	go func() {
		defer close(flushed)
		w.Close() // what is queued goes out first, if the child reads
		p.stdin.Close()
	}()
	defer func() {
		p.stdin.Close()
		<-flushed
	}()
	for _, stage := range []func(){func() {}, p.tree.Terminate, p.tree.Kill} {
		stage()
		timer := time.NewTimer(exitGrace)
		select {
		case <-p.gone:
			timer.Stop()
			return
		case <-timer.C:
			p.stdin.Close()
		}
	}
	<-p.gone
}

// neededVariables are what every program needs, whatever else is kept from it.
var neededVariables = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TERM", "TMPDIR", "TZ",
	"SYSTEMROOT", "SYSTEMDRIVE", "COMSPEC", "PATHEXT", "APPDATA", "LOCALAPPDATA", "USERPROFILE", "TEMP", "TMP", // Windows
}

// environment returns what a child inherits of ours with its own variables on
// top.
func environment(own map[string]string, inherit schema.Inherit) []string {
	env := os.Environ()
	if inherit.None || len(inherit.Names) > 0 {
		env = nil
		for _, name := range slices.Concat(neededVariables, inherit.Names) {
			if value, ok := os.LookupEnv(name); ok {
				env = append(env, name+"="+value)
			}
		}
	}
	for name, value := range own {
		env = append(env, name+"="+value)
	}
	return env
}

// lookPath finds a command as a shell in dir with the child's own PATH would.
func lookPath(command, dir string, env []string) (string, error) {
	if strings.ContainsRune(command, filepath.Separator) || filepath.IsAbs(command) {
		if !filepath.IsAbs(command) && dir != "" {
			command = filepath.Join(dir, command)
		}
		return exec.LookPath(command)
	}
	path := os.Getenv("PATH")
	for _, entry := range env {
		if value, ok := strings.CutPrefix(entry, "PATH="); ok {
			path = value
		}
	}
	if path == os.Getenv("PATH") {
		return exec.LookPath(command)
	}
	for _, folder := range filepath.SplitList(path) {
		if found, err := exec.LookPath(filepath.Join(folder, command)); err == nil {
			return found, nil
		}
	}
	return "", &exec.Error{Name: command, Err: exec.ErrNotFound}
}

// CheckCommand reports whether the command of a stdio server, and the
// directory it is to run in, are there. The error is a *Failure.
func CheckCommand(server schema.Server) error {
	if server.Cwd != "" {
		if info, err := os.Stat(server.Cwd); err != nil || !info.IsDir() {
			return startError(server, fmt.Errorf("the directory %q is not there", server.Cwd), "check cwd in the config")
		}
	}
	_, err := lookPath(server.Command, server.Cwd, environment(server.Env, server.InheritEnv))
	if err != nil {
		return startError(server, fmt.Errorf("the command %q is not there: %w", server.Command, lookupCause(err)), "install it, or give its full path; PATH may differ in programs started from a desktop")
	}
	return nil
}

func startError(server schema.Server, cause error, hint string) *Failure {
	return &Failure{Upstream: server.Name, Code: CodeStartFailed, Outcome: NotSent, Cause: cause, Hint: hint}
}

// lookupCause returns what is wrong without the name that it repeats.
func lookupCause(err error) error {
	var lookup *exec.Error
	if errors.As(err, &lookup) {
		return lookup.Err
	}
	return err
}
