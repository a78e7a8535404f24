// Package command finds the programs of stdio servers, recognises package runners, and keeps the
// last lines of a child's stderr.
package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
)

// neededVariables are always inherited.
var neededVariables = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TERM", "TMPDIR", "TZ",
	// Windows
	"SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "APPDATA", "LOCALAPPDATA", "USERPROFILE", "USERNAME", "HOMEDRIVE", "HOMEPATH",
	"TEMP", "TMP", "PROGRAMFILES", "PROGRAMDATA", "PROCESSOR_ARCHITECTURE",
}

// Environment returns the variables that a child inherits, followed by its own.
func Environment(own map[string]string, inherit schema.Inherit) []string {
	env := os.Environ()
	if inherit.None || len(inherit.Names) > 0 {
		env = nil
		for _, name := range slices.Concat(neededVariables, inherit.Names) {
			if value, ok := os.LookupEnv(name); ok {
				env = append(env, name+"="+value)
			}
		}
	}
	for name, value := range own {
		env = append(env, name+"="+value)
	}
	return env
}

// Find finds a command as a shell in dir with the child's PATH would.
func Find(command, dir string, env []string) (string, error) {
	if filepath.Base(command) != command { // a path, also one of Windows with slashes
		if !filepath.IsAbs(command) && dir != "" {
			command = filepath.Join(dir, command)
		}
		return exec.LookPath(command)
	}
	path := os.Getenv("PATH")
	for _, entry := range env {
		if name, value, _ := strings.Cut(entry, "="); name == "PATH" || runtime.GOOS == "windows" && strings.EqualFold(name, "PATH") {
			path = value
		}
	}
	if path == os.Getenv("PATH") {
		return found.lookPath(command, path)
	}
	for _, folder := range filepath.SplitList(path) {
		if file, err := exec.LookPath(filepath.Join(folder, command)); err == nil {
			return file, nil
		}
	}
	return "", &exec.Error{Name: command, Err: exec.ErrNotFound}
}

// foundFor is how long a program that was found is not looked for again. At a start most servers of a
// config have the same few programs, and PATH has many directories.
const foundFor = time.Second

// found are the programs that were found in PATH.
var found programs

type programs struct {
	mu    sync.Mutex
	path  string
	until time.Time
	files map[string]string // by command
}

// lookPath is exec.LookPath with this PATH, that of the environment. It does not remember what is missing.
func (p *programs) lookPath(command, path string) (string, error) {
	p.mu.Lock()
	if p.path != path || time.Now().After(p.until) {
		p.path, p.until, p.files = path, time.Now().Add(foundFor), map[string]string{}
	}
	file, ok := p.files[command]
	p.mu.Unlock()
	if ok {
		return file, nil
	}
	file, err := exec.LookPath(command)
	if err == nil {
		p.mu.Lock()
		if p.path == path {
			p.files[command] = file
		}
		p.mu.Unlock()
	}
	return file, err
}

// AtHome returns a stdio server with a ~ that begins its command or its directory replaced by
// the home of the user. Some hosts do so, and in no host does it mean a directory named ~.
func AtHome(server schema.Server) schema.Server {
	server.Command, server.Cwd = atHome(server.Command), atHome(server.Cwd)
	return server
}

func atHome(path string) string {
	if !BeginsAtHome(path) {
		return path
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return path
	}
	return filepath.Join(home, path[1:])
}

// BeginsAtHome reports whether a shell would replace the ~ of a path by the home of the user.
func BeginsAtHome(path string) bool {
	return path == "~" || strings.HasPrefix(path, "~/") || runtime.GOOS == "windows" && strings.HasPrefix(path, `~\`)
}

// LookPath returns the file of a stdio server's program.
func LookPath(server schema.Server) (string, error) {
	server = AtHome(server)
	return Find(server.Command, server.Cwd, Environment(server.Env, server.InheritEnv))
}

// IsThisProgram reports whether a stdio server's program is this executable, under any name.
func IsThisProgram(server schema.Server) bool {
	path, err := LookPath(server)
	if err != nil {
		return false
	}
	file, err := os.Stat(path)
	own := thisProgram()
	return err == nil && own != nil && os.SameFile(file, own)
}

// thisProgram returns the file of this executable, nil where that is not known.
var thisProgram = sync.OnceValue(func() os.FileInfo {
	path, err := os.Executable()
	if err != nil {
		return nil
	}
	info, _ := os.Stat(path) // nil after an error
	return info
})

// Check checks that the command of a stdio server and its working directory exist. The error
// is a *transports.Failure.
func Check(server schema.Server) error {
	server = AtHome(server)
	if server.Cwd != "" {
		if info, err := os.Stat(server.Cwd); err != nil || !info.IsDir() {
			return startError(server, fmt.Errorf("the directory %q is not there", server.Cwd), "check cwd in the config")
		}
	}
	_, err := LookPath(server)
	if err != nil {
		if words := severalWords(server); words != nil {
			return words
		}
		if lookup, ok := errors.AsType[*exec.Error](err); ok {
			err = lookup.Err // without the name
		}
		missing := fmt.Errorf("cannot find the command %q: %w", server.Command, err)
		if errors.Is(err, exec.ErrNotFound) && filepath.Base(server.Command) == server.Command {
			missing = fmt.Errorf("cannot find the command %q on PATH", server.Command)
		}
		return startError(server, missing, "install it, or give its full path; PATH may differ in programs started from a desktop")
	}
	return nil
}

// CheckWords checks that the command of a stdio server is a program, and not a program and its
// arguments. The error is a *transports.Failure.
func CheckWords(server schema.Server) error {
	server = AtHome(server)
	if !strings.Contains(server.Command, " ") {
		return nil
	}
	if _, err := LookPath(server); err == nil {
		return nil
	}
	if words := severalWords(server); words != nil {
		return words
	}
	return nil
}

// severalWords returns the error for a command whose first word is a program, or nil.
func severalWords(server schema.Server) *transports.Failure {
	first, rest, ok := strings.Cut(server.Command, " ")
	if !ok {
		return nil
	}
	if _, err := Find(first, server.Cwd, Environment(server.Env, server.InheritEnv)); err != nil {
		return nil
	}
	args, _ := json.Marshal(append(strings.Fields(rest), server.Args...)) // strings can be marshalled
	return startError(server, fmt.Errorf("cannot find the command %q: it is several words", server.Command),
		fmt.Sprintf(`write the program as the command and the other words as args: "command": %q, "args": %s`, first, args))
}

func startError(server schema.Server, cause error, hint string) *transports.Failure {
	return &transports.Failure{Upstream: server.Name, Code: transports.CodeStartFailed, Outcome: transports.NotSent, Cause: cause, Hint: hint}
}
