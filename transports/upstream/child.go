package upstream

import (
	"os"
	"os/exec"
	"time"

	"dynmcp/internal/guard"
	"dynmcp/internal/wire"
)

// A child is a command and all it starts, with our ends of its pipes.
type child struct {
	tree    *guard.Tree
	stdin   *os.File
	stdout  *watched
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
	p.stdin, p.stdout, p.errPipe = pipe(&in, true), &watched{File: pipe(&out, false)}, pipe(&errs, false)
	defer closeAll(&theirs)
	if err == nil {
		cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, errs
		p.tree, err = guard.Start(cmd)
	}
	if err != nil {
		closeAll(&[]*os.File{p.stdin, p.stdout.File, p.errPipe})
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
func (p *child) reap(answers, words <-chan struct{}) {
	p.tree.Reap()
	close(p.gone)
	cut := time.AfterFunc(drainGrace, func() {
		p.stdout.Close()
		p.errPipe.Close()
	})
	<-answers
	<-words
	cut.Stop()
	p.stdout.Close()
	p.errPipe.Close()
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
