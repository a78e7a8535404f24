package sharing

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/internal/cli/localhttp"
	"github.com/dynmcp/dynmcp/internal/regular"
	"github.com/dynmcp/dynmcp/schema"
)

// startShared starts a run on a socket and returns when it accepts hosts. The error is
// localhttp.ErrLocked if another run exists or is being started.
func (c *Client) startShared(ctx context.Context, path string) error {
	starting, err := localhttp.Lock(path + ".start")
	if err != nil {
		return err
	}
	defer starting.Close()
	lock, err := localhttp.Lock(path + ".lock")
	if err != nil {
		return err
	}
	lock.Close() // for the run
	// Loaded here as well, so that its errors are reported as usual.
	cfg, err := c.Load(ctx)
	if err != nil {
		return err
	}
	cmd, err := c.command(path, cfg)
	if err != nil {
		return err
	}
	logs, err := localhttp.OpenLog(path + ".log")
	if err != nil {
		return err
	}
	defer logs.Close()
	ready, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	defer ready.Close()
	cmd.Stdout, cmd.Stderr = theirs, logs
	err = cmd.Run()
	theirs.Close()
	if cmd.Process == nil {
		return err
	}
	var pid int
	if _, err := fmt.Fscanln(ready, &pid); err == nil {
		c.Log.Info("started a run that hosts share", "socket", path, "pid", pid, "log", logs.Name())
		if c.Socket == "" {
			localhttp.Announce(path)
		}
		return nil
	}
	said, err := regular.Read(ctx, logs.Name(), 2*maxLog)
	if err != nil {
		return fmt.Errorf("the run that hosts share did not start: %w", err)
	}
	said = said[max(0, len(said)-4<<10):]
	return fmt.Errorf("the run that hosts share did not start: %s", strings.TrimPrefix(strings.TrimSpace(string(said)), "dynmcp: "))
}

// Ready reports on stdout that the run accepts hosts, and closes it.
func Ready() {
	fmt.Println(os.Getpid())
	os.Stdout.Close()
}

// Orphan starts this program again, without --orphan, and returns. When the caller exits, init
// becomes the parent. Some hosts kill all descendants of their servers, which a shared run must
// not be.
func Orphan() error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(program, slices.DeleteFunc(slices.Clone(os.Args[1:]), func(arg string) bool { return arg == "--orphan" })...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	localhttp.Detach(cmd)
	return cmd.Start()
}

// command returns a command that starts the run of a config on a socket and then exits.
func (c *Client) command(path string, cfg *schema.Config) (*exec.Cmd, error) {
	args := []string{"serve", "--socket", path, "--started", "--orphan", "--idle", c.Idle.String(), "--log-level", c.Level, "-c", cfg.Path}
	if c.EnvFile != "" {
		env, err := filepath.Abs(c.EnvFile)
		if err != nil {
			return nil, err
		}
		args = append(args, "-e", env)
	}
	if c.Profile != "" {
		args = append(args, "--profile", c.Profile)
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program, args...)
	cmd.Dir = workingDir(cfg.Path)
	cmd.Env = append(os.Environ(), "PATH="+sharedPath(programs(cfg)))
	localhttp.Detach(cmd)
	return cmd, nil
}

// workingDir returns the working directory of a shared run, which is the same for all hosts: the
// directory of its config, or of the project that the config is for.
func workingDir(config string) string {
	dir := filepath.Dir(config)
	if filepath.Base(dir) == ".dynmcp" {
		return filepath.Dir(dir)
	}
	return dir
}

// maxLog is the size at which the log of a shared run is truncated.
const maxLog = 1 << 20

// A BoundedLog is a log file that is truncated when it is larger than maxLog.
type BoundedLog struct{ *os.File }

// Write implements io.Writer.
func (l BoundedLog) Write(line []byte) (int, error) {
	if info, err := l.Stat(); err == nil && info.Mode().IsRegular() && info.Size() > maxLog {
		if err := l.Truncate(0); err != nil {
			return 0, err
		}
		_, _ = l.Seek(0, io.SeekStart) // of a file that is not opened for appending
	}
	return l.File.Write(line)
}
