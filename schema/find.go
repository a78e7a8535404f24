package schema

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
// directory if dir is empty. It looks at names only; Load says whether the
// file is any good.
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
	return "", &fileError{text, fs.ErrNotExist}
}

// FindUser returns the path of the user's own config file, over which that of
// a project lies, or empty if there is none.
func FindUser() string {
	dir := userDir()
	if dir == "" {
		return ""
	}
	return firstFile(filepath.Join(dir, "dynmcp"), "config.json", "config.yaml")
}

// firstFile is the path of the first of these files that is there, empty if
// none is.
func firstFile(dir string, names ...string) string {
	for _, name := range names {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			return path
		}
	}
	return ""
}

// userDir is where programs keep what a user has set. It is the same on Linux
// and macOS, where people keep it under version control alike.
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
