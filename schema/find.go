package schema

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// FileNames are the names that Find tries, in this order.
var FileNames = []string{"mcp.json", ".mcp.json", "mcp.jsonc", "mcp.yaml", "mcp.yml"}

// Find returns the absolute path of the config file in dir, or in the working
// directory if dir is empty. It looks at names only; Load says whether the
// file is any good.
func Find(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("find the config file: %w", err)
	}
	for _, name := range FileNames {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			return path, nil
		}
	}
	text := fmt.Sprintf("No config file found in %s: tried %s; make one with dynmcp init, or name one with -c",
		dir, strings.Join(FileNames, ", "))
	return "", &fileError{text, fs.ErrNotExist}
}
