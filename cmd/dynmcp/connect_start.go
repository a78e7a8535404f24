package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/internal/regular"
)

// always are the variables that a run depends on, whatever its config says: which
// programs are found, which files are the user's, how servers are reached.
var always = []string{
	"PATH", "HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
}

// sharedSocket returns the path of the socket that hosts share which would start the
// same: its name stands for the config and for what of the environment it depends on.
func (f *configFlags) sharedSocket(ctx context.Context) (string, error) {
	paths, err := f.files()
	if err != nil {
		return "", err
	}
	h := sha256.New()
	var text []byte
	for _, path := range paths {
		data, err := regular.Read(ctx, path, regular.Small)
		if err != nil {
			if _, loaded := f.load(ctx); loaded != nil { // which says it better
				return "", loaded
			}
			return "", err
		}
		text = append(text, data...)
		if path, err = filepath.Abs(path); err != nil {
			return "", err
		}
		fmt.Fprintf(h, "config %q\n", path)
	}
	if f.envFile != "" {
		path, err := filepath.Abs(f.envFile)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "env %q\n", path)
	}
	environment := os.Environ()
	slices.Sort(environment)
	for _, variable := range environment {
		name, _, _ := strings.Cut(variable, "=")
		if slices.Contains(always, name) || strings.HasPrefix(name, "DYNMCP_") || mentions(text, name) {
			fmt.Fprintf(h, "%q\n", variable)
		}
	}
	dir, err := runtimeDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, fmt.Sprintf("%x.sock", h.Sum(nil)[:8])), nil
}

// mentions reports whether a text has a word in it, as ${NAME} or however else configs
// refer to a variable.
func mentions(text []byte, word string) bool {
	isPart := func(b byte) bool {
		return b == '_' || '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
	}
	for rest := text; ; {
		at := bytes.Index(rest, []byte(word))
		if at < 0 || word == "" {
			return false
		}
		end := at + len(word)
		if (at == 0 || !isPart(rest[at-1])) && (end == len(rest) || !isPart(rest[end])) {
			return true
		}
		rest = rest[end:]
	}
}

// runtimeDir returns the directory of this user's sockets, where nobody else can put
// any.
func runtimeDir() (string, error) {
	dir := os.Getenv("XDG_RUNTIME_DIR")
	if filepath.IsAbs(dir) {
		dir = filepath.Join(dir, "dynmcp")
	} else {
		dir = filepath.Join(os.TempDir(), fmt.Sprintf("dynmcp-%d", os.Getuid()))
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", hinted(err, "name a socket with --socket")
	}
	return dir, checkPrivate(dir)
}

// startShared starts a run on a socket and returns when it admits hosts. The error is
// errLocked if another one is there already, or is about to be.
func (f *connectFlags) startShared(ctx context.Context, path string, log *slog.Logger) error {
	lock, err := lockSocket(path)
	if err != nil {
		return err
	}
	defer lock.Close() // the run has it as well
	// Loaded here as well, so that what is wrong with it is said as it always is.
	cfg, err := f.load(ctx)
	if err != nil {
		return err
	}
	args := []string{"serve", "--socket", path, "--inherit", "--idle", f.idle.String(), "--log-level", f.level, "-c", cfg.Path}
	if f.envFile != "" {
		env, err := filepath.Abs(f.envFile)
		if err != nil {
			return err
		}
		args = append(args, "-e", env)
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	logs, err := openPrivate(path + ".log")
	if err != nil {
		return err
	}
	defer logs.Close()
	ready, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	defer ready.Close()
	cmd := exec.Command(program, args...)
	cmd.Dir = workingDir(cfg.Path)
	cmd.Stderr = logs
	cmd.ExtraFiles = []*os.File{lock, theirs}
	detach(cmd)
	err = cmd.Start()
	theirs.Close()
	if err != nil {
		return err
	}
	if line, _ := bufio.NewReader(ready).ReadString('\n'); line != "" {
		log.Info("started a run that hosts share", "socket", path, "pid", cmd.Process.Pid, "log", logs.Name())
		return cmd.Process.Release()
	}
	ended := cmd.Wait()
	said, err := regular.Read(ctx, logs.Name(), 2*maxLog)
	if err != nil {
		return fmt.Errorf("the run that hosts share: %w", ended)
	}
	said = said[max(0, len(said)-4<<10):]
	return fmt.Errorf("the run that hosts share did not start: %s", strings.TrimPrefix(strings.TrimSpace(string(said)), "dynmcp: "))
}

// workingDir returns where a shared run works, whichever host it was started for: in
// the directory of its config, or of the project that this is for.
func workingDir(config string) string {
	dir := filepath.Dir(config)
	if filepath.Base(dir) == ".dynmcp" {
		return filepath.Dir(dir)
	}
	return dir
}

// maxLog is how much a run that was started for a host leaves in its log.
const maxLog = 1 << 20

// A boundedLog is a file that is begun anew when it has become too long.
type boundedLog struct{ file *os.File }

// Write implements io.Writer.
func (l boundedLog) Write(line []byte) (int, error) {
	if info, err := l.file.Stat(); err == nil && info.Mode().IsRegular() && info.Size() > maxLog {
		if err := l.file.Truncate(0); err != nil {
			return 0, err
		}
	}
	return l.file.Write(line)
}
