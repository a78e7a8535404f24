package script

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/internal/guard"
	"github.com/dynmcp/dynmcp/internal/sandbox"
	"github.com/dynmcp/dynmcp/modules/scripts/engine"
)

// Missing describes the limits of scripts that this system cannot enforce.
func Missing() []string {
	return append(sandbox.Policy{Network: sandbox.NoNetwork}.Missing(), engine.Missing()...)
}

// A child is a running engine and its guard.
type child struct {
	tree   *guard.Tree
	out    *os.File // our end of its stdout
	events *bufio.Scanner
	last   int // id of its last call

	ended chan struct{} // closed when nothing of it is left
	why   error         // set before ended is closed

	mu sync.Mutex // held while a line is written
	in *os.File
}

// start starts a child. keep runs the function that waits for its end.
func start(bestEffort bool, keep func(func())) (*child, error) {
	if missing := Missing(); len(missing) > 0 && !bestEffort {
		return nil, fmt.Errorf("scripts are disabled: this system cannot limit %s (\"best_effort\": true in \"scripts\" runs them all the same)", strings.Join(missing, ", nor "))
	}
	self, read, err := program()
	if err != nil {
		return nil, err
	}
	restrictions, err := sandbox.Build(sandbox.Policy{Read: read, Network: sandbox.NoNetwork, BestEffort: true})
	if err != nil {
		return nil, err
	}
	defer restrictions.Close()
	cmd := &exec.Cmd{Path: self, Args: []string{self, engine.Name}, Env: []string{}, Dir: string(filepath.Separator)}
	if restrictions.Profile != "" { // of macOS
		cmd.Path, cmd.Args = "/usr/bin/sandbox-exec", append([]string{"sandbox-exec", "-p", restrictions.Profile}, cmd.Args...)
	}
	filter := func() ([]byte, error) { return restrictions.Filter, nil }
	return startCommand(cmd, &guard.Restrictions{Ruleset: restrictions.Ruleset, Filter: filter}, keep)
}

func startCommand(cmd *exec.Cmd, restrictions *guard.Restrictions, keep func(func())) (*child, error) {
	theirIn, in, err := os.Pipe()
	if err != nil {
		return nil, guard.MarkResources(err)
	}
	defer theirIn.Close()
	out, theirOut, err := os.Pipe()
	if err != nil {
		in.Close()
		return nil, guard.MarkResources(err)
	}
	defer theirOut.Close()
	cmd.Stdin, cmd.Stdout = theirIn, theirOut
	c := &child{in: in, out: out, events: bufio.NewScanner(out), ended: make(chan struct{})}
	c.events.Buffer(make([]byte, 64<<10), engine.MaxLine)
	if c.tree, err = guard.Start(cmd, nil, restrictions); err != nil {
		in.Close()
		out.Close()
		return nil, err
	}
	keep(func() {
		c.why = c.tree.Wait()
		c.tree.Reap()
		close(c.ended)
	})
	return c, nil
}

// send writes a request. It blocks while the child does not read, until the child is killed.
func (c *child) send(request engine.Request) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return engine.Write(c.in, request)
}

var errProtocol = errors.New("the process that ran the script broke its protocol")

// next returns an event, nil when there are no more.
func (c *child) next() (*engine.Event, error) {
	if !c.events.Scan() {
		if c.events.Err() == bufio.ErrTooLong {
			return nil, errProtocol
		}
		return nil, nil
	}
	var event engine.Event
	if json.Unmarshal(c.events.Bytes(), &event) != nil {
		return nil, errProtocol
	}
	return &event, nil
}

// gone reports whether the child has ended.
func (c *child) gone() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// end kills the child and returns when nothing of it is left.
func (c *child) end() {
	c.tree.Kill()
	<-c.ended
	c.in.Close()
	c.out.Close()
}

// failure explains why a child ended in the middle of a script.
func (c *child) failure(cpu time.Duration) *Failure {
	ended, ok := errors.AsType[*guard.Ended](c.why)
	switch {
	case ok && ended.Signal == guard.SIGXCPU:
		return &Failure{Message: fmt.Sprintf("the script was stopped: it used %v of processor time", cpu)}
	case ok && ended.Status == 2: // of the Go runtime
		return &Failure{Message: fmt.Sprintf("the script was stopped: it used more than %d MB of memory", engine.Memory>>20)}
	default:
		return &Failure{Message: "the process that ran the script ended: " + c.why.Error()}
	}
}
