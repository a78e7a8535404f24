package farside

import (
	"bytes"
	"context"
	"crypto/rand"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/internal/guard"
	"github.com/dynmcp/dynmcp/internal/regular"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/upstream/command"
)

// limit is how long the command may take that ends a far side.
const limit = 5 * time.Second

// A Far is what a server's command starts outside of its own processes, such as a container. A nil one is
// nothing.
type Far struct {
	file  string   // with its name, "" if words have it
	path  string   // of the command that ends it
	words []string // of that command; guard.Mark stands for the name
	dir   string
	env   []string
	once  sync.Once
}

// New returns the far side of a server, nil if it has none, and the arguments with which the server
// is started.
func New(server schema.Server, env []string) (*Far, []string) {
	id := "dynmcp-" + server.Name + "-" + strings.ToLower(rand.Text()[:10])
	side := Of(server.Command, server.Args, os.TempDir(), id)
	if side == nil {
		return nil, server.Args
	}
	path, err := command.Find(side.End[0], server.Cwd, env)
	if err != nil {
		return nil, server.Args
	}
	f := &Far{file: side.File, path: path, words: side.End, dir: server.Cwd, env: env}
	switch i := slices.Index(f.words, guard.Mark); {
	case f.file == "":
		f.words[i] = side.Name
	case !filepath.IsAbs(f.file):
		f.file = filepath.Join(f.dir, f.file)
	}
	return f, side.Args
}

// After returns what the guard runs if this process is gone.
func (f *Far) After() *guard.After {
	if f == nil {
		return nil
	}
	return &guard.After{File: f.file, Path: f.path, Args: f.words}
}

// End ends the far side, once. It is killed: its server has had the end of its stdin and SIGTERM.
func (f *Far) End(log *slog.Logger) {
	if f != nil {
		f.once.Do(func() { f.end(log) })
	}
}

func (f *Far) end(log *slog.Logger) {
	words := slices.Clone(f.words)
	if f.file != "" {
		text, err := regular.Read(context.Background(), f.file, 1<<10)
		name, _, _ := bytes.Cut(text, []byte("\n"))
		if err != nil || len(name) == 0 {
			return // it was not made
		}
		words[slices.Index(words, guard.Mark)] = string(name)
		defer os.Remove(f.file)
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, f.path, words[1:]...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = f.dir, f.env, time.Second
	if out, err := cmd.CombinedOutput(); err != nil { // it has ended already, as a rule
		log.Debug("ended what the command started elsewhere", "command", words, "err", err, "output", string(out))
	}
}
