package probe

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/internal/guard"
	"github.com/dynmcp/dynmcp/internal/redact"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/upstream/command"
)

// lines is a link of one message a line.
type lines struct {
	peer *Peer
	read sync.WaitGroup

	mu sync.Mutex // held while a line is written
	to io.WriteCloser
}

// Stream returns a peer that talks to a server over conn.
func Stream(conn io.ReadWriteCloser, name, version string, observer Observer) *Peer {
	p := newPeer(name, version, observer)
	l := &lines{peer: p, to: conn}
	p.link = l
	l.readFrom(conn, func() error { return io.EOF })
	return p
}

// readFrom reads until the stream ends, for the reason that why returns.
func (l *lines) readFrom(from io.Reader, why func() error) {
	l.read.Go(func() {
		in := bufio.NewReaderSize(from, 64<<10)
		for {
			line, err := in.ReadBytes('\n')
			l.peer.handle(line)
			if err != nil {
				l.peer.end(why())
				return
			}
		}
	})
}

func (l *lines) send(message []byte, _ *Call) {
	l.mu.Lock()
	_, err := l.to.Write(append(message, '\n'))
	l.mu.Unlock()
	if err != nil {
		l.peer.end(err)
	}
}

func (*lines) cancelled(*Call) bool     { return false }
func (*lines) opened(string)            {}
func (*lines) listen()                  {}
func (*lines) listed([]json.RawMessage) {}
func (*lines) failure(err error) error  { return err }

func (l *lines) close() {
	l.to.Close()
	l.read.Wait()
}

// A child is a link to a command over its pipes.
type child struct {
	lines
	tree   *guard.Tree
	launch command.Launch
	stdout *os.File
	errors command.Tail
	gone   chan struct{} // closed when nothing of the tree is left
	status error         // why the command ended, once it is gone
}

// Command starts the command of a server, within the limits of its entry. env are more variables.
func Command(s schema.Server, env []string, secrets *redact.Redactor, log *slog.Logger, name, version string, observer Observer) (*Peer, error) {
	c := &child{errors: command.Tail{Max: 64 << 10, Redact: secrets}, gone: make(chan struct{})}
	var err error
	if c.launch, err = command.Prepare(s, log, c.errors.Add); err != nil {
		return nil, err
	}
	own := c.launch.Env()
	path, err := command.Find(s.Command, s.Cwd, own)
	if err != nil {
		return nil, errors.Join(err, c.launch.Close())
	}
	path, args := c.launch.Command(path, append([]string{s.Command}, s.Args...))
	cmd := &exec.Cmd{Path: path, Args: args, Dir: s.Cwd, Env: append(own, env...)}
	if err := c.start(cmd); err != nil {
		return nil, errors.Join(err, c.launch.Close())
	}
	p := newPeer(name, version, observer)
	c.peer, p.link = p, c
	c.readFrom(c.stdout, func() error {
		select {
		case <-c.gone:
			return cmp.Or(c.status, errors.New("it exited with status 0"))
		case <-time.After(stopGrace):
			return errors.New("it closed its stdout")
		}
	})
	return p, nil
}

// start starts the command with pipes, whose other ends it keeps.
func (c *child) start(cmd *exec.Cmd) error {
	var pipes [6]*os.File
	for i := 0; i < len(pipes); i += 2 {
		var err error
		if pipes[i], pipes[i+1], err = os.Pipe(); err != nil {
			closeAll(pipes[:]...)
			return err
		}
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = pipes[0], pipes[3], pipes[5]
	tree, err := guard.Start(cmd, nil, c.launch.Restrictions())
	closeAll(pipes[0], pipes[3], pipes[5])
	if err != nil {
		closeAll(pipes[1], pipes[2], pipes[4])
		return err
	}
	c.tree, c.to, c.stdout = tree, pipes[1], pipes[2]
	c.read.Go(func() { c.errors.Drain(pipes[4], func(string) {}) })
	c.read.Go(func() {
		c.status = c.tree.Wait()
		c.tree.Reap()
		close(c.gone)
		// What the command left in the pipes is read; a process that holds them open is not waited for.
		time.AfterFunc(stopGrace, func() { closeAll(c.stdout, pipes[4]) })
	})
	return nil
}

func closeAll(files ...*os.File) {
	for _, f := range files {
		f.Close() // a nil file returns an error
	}
}

func (c *child) failure(err error) error {
	if text := c.errors.Text(); text != "" {
		return fmt.Errorf("%w; its stderr:\n%s", err, text)
	}
	return err
}

// stopGrace is how long a command may take to end after its stdin was closed, and again after
// SIGTERM. MCP, "Transports", shutdown.
const stopGrace = 1500 * time.Millisecond

func (c *child) close() {
	for _, stage := range []func(){func() { c.to.Close() }, c.tree.Terminate, c.tree.Kill} {
		stage()
		select {
		case <-c.gone:
		case <-time.After(stopGrace):
			continue
		}
		break
	}
	<-c.gone
	c.read.Wait()
	_ = c.launch.Close() // what is left of it does not change what was compared
}
