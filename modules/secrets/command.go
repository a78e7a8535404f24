package secrets

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/guard"
	"github.com/dynmcp/dynmcp/internal/redact"
	"github.com/dynmcp/dynmcp/internal/secretref"
	"github.com/dynmcp/dynmcp/internal/secrets"
)

const (
	commandTime = 30 * time.Second
	maxStderr   = 4 << 10 // bytes of its end to keep
)

// A printed is the scheme cmd: what commands print. A value beside an error is the output before the failure.
type printed struct {
	limit time.Duration // of a command; 0 is 30 s
}

func (printed) Scheme() string { return "cmd" }

func (p printed) Resolve(ctx context.Context, line string, hide *redact.Redactor) (string, error) {
	words, err := secretref.Split(line)
	if err == nil && (len(words) == 0 || words[0] == "") {
		err = errors.New("there is no command in it")
	}
	if err != nil {
		return "", &secretref.Error{What: "a ${cmd:…} failed", Hint: err.Error()}
	}
	limit := cmp.Or(p.limit, commandTime)
	what := fmt.Sprintf("${cmd:%s …} failed", filepath.Base(words[0]))
	running, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(running, words[0], words[1:]...)
	if err := guard.Batch(cmd); err != nil {
		return "", &secretref.Error{What: what, Hint: err.Error()}
	}
	cmd.WaitDelay = time.Second // for its children, which may hold its pipes
	stdout, stderr := &head{}, &tail{}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	err = cmd.Run()
	value := secretref.TrimNewline(string(stdout.text))
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return "", &secretref.Error{What: what, Hint: fmt.Sprintf("there is no %q on the PATH", words[0])}
	case stdout.full:
		return value, &secretref.Error{What: what, Hint: fmt.Sprintf("it printed more than %d bytes", secretref.MaxSize)}
	case running.Err() != nil && ctx.Err() == nil:
		err = fmt.Errorf("it did not end within %v", limit)
	case err == nil || errors.Is(err, exec.ErrWaitDelay):
		return secretref.Checked(value, what)
	}
	hint := err.Error()
	if said := lastLine(string(stderr.text), value, hide); said != "" {
		hint += ", and it said: " + said
	}
	return value, &secretref.Error{What: what, Hint: hint}
}

// lastLine returns the last line of a command's stderr without known secrets: those of the config, of
// the environment and of its own output.
func lastLine(stderr, printed string, hide *redact.Redactor) string {
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	if len(lines) == 1 && len(stderr) == maxStderr {
		return "" // it may begin within a secret
	}
	var known redact.Redactor
	known.Add(printed)
	for _, entry := range os.Environ() {
		if name, value, _ := strings.Cut(entry, "="); secrets.Named(name) {
			known.Add(value)
		}
	}
	line := known.String(hide.String(lines[len(lines)-1]))
	line = secrets.Hide(line, secrets.Find("", "", line), redact.Mark)
	return display.Cut(display.Fold(line), 200)
}

// head keeps the data written to it, up to secretref.MaxSize.
type head struct {
	text []byte
	full bool
}

func (h *head) Write(p []byte) (int, error) {
	if h.full = h.full || len(h.text)+len(p) > secretref.MaxSize; h.full {
		return 0, io.ErrShortWrite
	}
	h.text = append(h.text, p...)
	return len(p), nil
}

// tail keeps the end of the data written to it.
type tail struct{ text []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.text = append(t.text, p...)
	t.text = bytes.Clone(t.text[max(0, len(t.text)-maxStderr):])
	return len(p), nil
}
