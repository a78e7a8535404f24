package verify

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/dynmcp/dynmcp/aggregator"
	"github.com/dynmcp/dynmcp/internal/cli/login"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/upstream"
	"github.com/dynmcp/dynmcp/transports/upstream/command"
)

// canHear reports whether an ear fits between dynmcp and a server: a relay for a command, which a
// sandbox would not start, and a transport for a URL.
func canHear(s schema.Server) bool {
	return s.Transport != schema.Stdio || command.LauncherOf(s) == nil && runtime.GOOS != "windows"
}

// An ear is next to a server behind dynmcp and sees what the server hears.
type ear struct {
	file  string      // of the relay; it has a byte for each cancellation
	heard func() bool // reports whether there was a cancellation, or no call; nil without an ear
}

const cancelled = `"notifications/cancelled"`

// heardLogins are logins whose requests are heard.
type heardLogins struct {
	*login.Logins
	by *hearing
}

func (h heardLogins) For(s schema.Server, principal string) upstream.Login {
	l := h.Logins.For(s, principal)
	authorize := l.Transport
	l.Transport = func(next http.RoundTripper) http.RoundTripper {
		if h.by.RoundTripper = next; authorize != nil {
			h.by.RoundTripper = authorize(next)
		}
		return h.by
	}
	if l.Hint == nil {
		l.Hint = func(*http.Response) (string, bool) { return "", false }
	}
	return l
}

// between puts the ear between dynmcp, which will run with options, and a server.
func (e *ear) between(s schema.Server, era transports.Era, options *aggregator.Options, log *slog.Logger) (schema.Server, error) {
	if s.Transport != schema.Stdio {
		t := &hearing{era: era}
		e.heard = t.heard
		options.Logins = heardLogins{login.Of(login.Store, log), t}
		return s, nil
	}
	program, err := os.Executable()
	if err != nil {
		return s, err
	}
	dir, err := os.MkdirTemp("", "dynmcp-verify-")
	if err != nil {
		return s, err
	}
	e.file = filepath.Join(dir, "heard")
	e.heard = func() bool {
		info, err := os.Stat(e.file)
		return err == nil && info.Size() > 0
	}
	s.Args = append([]string{"verify", "--relay", e.file, "--", s.Command}, s.Args...)
	s.Command = program
	return s, nil
}

// wait waits for a cancellation, at most so long.
func (e *ear) wait(most time.Duration) bool {
	for end := time.Now().Add(most); !e.heard(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

func (e *ear) remove() error {
	if e.file == "" {
		return nil
	}
	return os.RemoveAll(filepath.Dir(e.file))
}

// relay runs a command and passes its stdin on. It writes a byte to a file for each cancellation,
// before the command has it.
func relay(file string, words []string) error {
	if len(words) == 0 {
		return errors.New("--relay wants a command after --")
	}
	told, err := os.Create(file) // in a directory of verify
	if err != nil {
		return err
	}
	defer told.Close()
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { // ends with the process: a read of stdin cannot be interrupted
		defer stdin.Close()
		in := bufio.NewReaderSize(os.Stdin, 64<<10)
		for {
			line, err := in.ReadBytes('\n')
			if bytes.Contains(line, []byte(cancelled)) {
				if _, err := told.WriteString("c"); err != nil {
					fmt.Fprintln(os.Stderr, err)
				}
			}
			if _, wrong := stdin.Write(line); err != nil || wrong != nil {
				return
			}
		}
	}()
	err = cmd.Wait()
	if end := cmd.ProcessState; end.ExitCode() > 0 {
		os.Exit(end.ExitCode()) // dynmcp says how the server ended
	} else if by, ok := end.Sys().(syscall.WaitStatus); ok && by.Signaled() {
		signal.Reset(by.Signal())
		if self, wrong := os.FindProcess(os.Getpid()); wrong == nil && self.Signal(by.Signal()) == nil {
			time.Sleep(time.Second) // the signal ends this process
		}
	}
	return err
}

// hearing is a transport that sees calls and their cancellations: a message, or in the stateless
// era the end of a request before that of its answer.
type hearing struct {
	http.RoundTripper
	era          transports.Era
	called, told atomic.Bool
}

func (t *hearing) heard() bool { return t.told.Load() || !t.called.Load() }

// RoundTrip implements http.RoundTripper.
func (t *hearing) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodPost || req.Body == nil {
		return t.RoundTripper.RoundTrip(req)
	}
	body, err := io.ReadAll(req.Body)
	req.Body.Close()
	if err != nil {
		return nil, err
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	if bytes.Contains(body, []byte(cancelled)) {
		t.told.Store(true)
	}
	call := bytes.Contains(body, []byte(`"tools/call"`))
	if call {
		t.called.Store(true)
	}
	resp, err := t.RoundTripper.RoundTrip(req)
	switch {
	case !call || t.era != transports.Stateless:
	case err != nil && req.Context().Err() != nil:
		t.told.Store(true)
	case err == nil:
		resp.Body = &answerBody{resp.Body, &t.told, false}
	}
	return resp, err
}

// answerBody is the body of a call's answer. That it is closed before its end cancels the call.
type answerBody struct {
	io.ReadCloser
	told *atomic.Bool
	done bool
}

func (b *answerBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.done = true
	} else if err != nil {
		b.told.Store(true)
	}
	return n, err
}

func (b *answerBody) Close() error {
	if !b.done {
		b.told.Store(true)
	}
	return b.ReadCloser.Close()
}
