package conf

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
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
	return firstFile(filepath.Join(dir, "dynmcp"), "config.json", "config.yaml")
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
