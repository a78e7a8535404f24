package conf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/cli/terminal"
)

// fileNames are the names that Find tries, in this order.
var fileNames = []string{
	"mcp.json", ".mcp.json", "mcp.jsonc", "mcp.yaml", "mcp.yml",
	".dynmcp/config.json", ".dynmcp/config.yaml",
}

// Find returns the absolute path of the config file in dir, or in the working
// directory if dir is empty. It does not look at its content.
func Find(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("find the config file: %w", err)
	}
	if path := firstFile(dir, fileNames...); path != "" {
		return path, nil
	}
	text := fmt.Sprintf("No config file found in %s: tried %s; make one with dynmcp init, or name one with -c",
		dir, strings.Join(fileNames, ", "))
	return "", noFile(text)
}

// A Choice is what the flags of a verb say about the config it reads or writes.
type Choice struct {
	Config  string // the file
	User    bool   // that of the user
	Project bool   // that of the working directory
}

// Add adds the flags to the command of a verb that writes a config. verb is what it does to the file.
func (c *Choice) Add(cmd *cobra.Command, verb string) {
	cmd.Flags().StringVarP(&c.Config, "config", "c", "", "the config `file` to "+verb+" (default: that of the working directory, else yours)")
	cmd.Flags().BoolVar(&c.User, "user", false, "the config is yours, for all directories")
	cmd.Flags().BoolVar(&c.Project, "project", false, "the config is that of the working directory")
}

// File returns the path of the config: the file that is named, else that of the working directory, else
// that of the user. All verbs follow this rule. A file that is named need not exist.
func (c Choice) File() (string, error) {
	switch {
	case c.Config != "" && (c.User || c.Project) || c.User && c.Project:
		return "", hint.With(errors.New("--config, --user and --project exclude each other"), "leave out all but one")
	case c.Config != "":
		return c.Config, nil
	case c.User:
		if path := FindUser(); path != "" {
			return path, nil
		}
		return "", hint.With(noFile("No config file found for the user"), "make one with dynmcp init --user")
	}
	found, err := Find(".")
	if user := FindUser(); err != nil && user != "" && !c.Project {
		return user, nil
	}
	return found, err
}

// Say says on stderr, before a file is written, that it is the user's because the working directory has none.
func (c Choice) Say(errOut *terminal.Writer, path string) {
	if c == (Choice{}) && path == FindUser() {
		errOut.Printf("The config is %s, which is yours: this directory has none\n", path)
	}
}

// UserNames are the names that the user's own config may have.
var UserNames = []string{"config.json", "config.yaml"}

// NewUser returns the path of the user's own config, which need not exist, "" without a home directory.
func NewUser() string {
	if path := FindUser(); path != "" {
		return path
	}
	dir := userDir()
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, "dynmcp", UserNames[0])
}

// noFile is the error for a directory without a config file. It is fs.ErrNotExist.
type noFile string

func (e noFile) Error() string        { return string(e) }
func (e noFile) Is(target error) bool { return target == fs.ErrNotExist }

// FindUser returns the path of the user's own config file, which a project's file
// overrides, or "" if absent.
func FindUser() string {
	dir := userDir()
	if dir == "" {
		return ""
	}
	return firstFile(filepath.Join(dir, "dynmcp"), UserNames...)
}

// firstFile returns the path of the first of these files that exists, or "".
func firstFile(dir string, names ...string) string {
	for _, name := range names {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			return path
		}
	}
	return ""
}

// userDir is the directory of the user's settings. It is the same on Linux and
// macOS, so that people can share it between them.
func userDir() string {
	if dir := os.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return dir
	}
	if dir := os.Getenv("APPDATA"); runtime.GOOS == "windows" && dir != "" {
		return dir
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".config")
}
