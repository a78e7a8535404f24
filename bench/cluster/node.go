//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"
)

// A node is a replica or a server of NATS: a process that can be killed and restarted.
type node struct {
	name   string
	argv   []string // with the prefix that enters its network
	env    []string
	log    string // the file of its output
	health string // the URL that answers 200 when it works

	mu    sync.Mutex
	cmd   *exec.Cmd
	ended chan struct{} // closed when cmd has ended
	how   error         // of Wait
}

// start starts the process, and does not wait until it works.
func (n *node) start() error {
	out, err := os.OpenFile(n.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := exec.Command(n.argv[0], n.argv[1:]...)
	cmd.Env = append(os.Environ(), n.env...)
	cmd.Dir = filepath.Dir(n.log)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt reaches this process alone
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	n.mu.Lock()
	n.cmd, n.ended = cmd, ended
	n.mu.Unlock()
	go func() { // ends with the process, which end waits for
		err := cmd.Wait()
		n.mu.Lock()
		n.how = err
		n.mu.Unlock()
		close(ended)
	}()
	return nil
}

func (n *node) signal(sig syscall.Signal) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cmd != nil {
		_ = n.cmd.Process.Signal(sig) // it may have ended
	}
}

// end ends the process with a signal and waits for its exit. It is an error unless the process exits
// with status 0 or by SIGKILL.
func (n *node) end(sig syscall.Signal) error {
	n.mu.Lock()
	ended := n.ended
	n.mu.Unlock()
	if ended == nil {
		return nil
	}
	n.signal(sig)
	select {
	case <-ended:
	case <-time.After(bound):
		n.signal(syscall.SIGKILL)
		<-ended
		return fmt.Errorf("%s does not end %v after %v", n.name, bound, sig)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	var status *exec.ExitError
	if sig == syscall.SIGKILL && errors.As(n.how, &status) {
		return nil
	}
	if n.how != nil {
		return fmt.Errorf("%s: %w", n.name, n.how)
	}
	return nil
}

// tail returns the end of the log.
func (n *node) tail() string {
	text, _ := os.ReadFile(n.log) // a missing log is empty
	return string(text[max(0, len(text)-4000):])
}

// newNode returns a node with a directory of its own below the cluster's.
func (c *cluster) newNode(name string, argv ...string) (*node, error) {
	dir := filepath.Join(c.dir, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return &node{
		name: name, argv: slices.Concat(c.net.enter(name), argv), log: filepath.Join(dir, "log"),
		env: []string{c.marker, "REPLICA=" + name, "XDG_STATE_HOME=" + filepath.Join(dir, "state"), "HOME=" + dir},
	}, nil
}
