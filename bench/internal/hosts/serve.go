package hosts

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Serve starts a command that serves HTTP, and waits until it prints its address, on stdout or stderr.
func Serve(cmd *exec.Cmd) (*Host, error) {
	pipe, theirs, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	h := &Host{Cmd: cmd, pipe: pipe, heard: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = theirs, theirs
	if err := h.run(); err != nil {
		pipe.Close()
		return nil, err
	}
	says := &listener{to: &h.Stderr, url: make(chan string, 1)}
	go func() {
		defer close(h.heard)
		defer close(says.url)
		_, _ = io.Copy(says, pipe)
	}()
	select {
	case h.URL = <-says.url:
	case <-time.After(Silence):
	}
	if h.URL == "" {
		h.End()
		return nil, fmt.Errorf("%s does not say where it serves", filepath.Base(cmd.Path))
	}
	return h, nil
}

// A listener receives what a program prints. It finds the address and keeps the end of the text.
type listener struct {
	to    *bytes.Buffer
	url   chan string // gets the address
	found bool
}

func (l *listener) Write(text []byte) (int, error) {
	const keep = 8 << 20
	l.to.Write(text)
	if !l.found {
		if _, rest, ok := strings.Cut(l.to.String(), "http://"); ok {
			if line, _, ok := strings.Cut(rest, "\n"); ok {
				l.found = true
				l.url <- "http://" + strings.Trim(strings.Fields(line)[0], `"`)
			}
		}
	}
	if l.to.Len() > 2*keep {
		l.to.Next(l.to.Len() - keep)
	}
	return len(text), nil
}
