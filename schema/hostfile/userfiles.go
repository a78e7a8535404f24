package hostfile

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/dynmcp/dynmcp/internal/lazyregexp"
)

// UserFiles returns the paths of the user's files. Desktop programs use the system's
// directory for configs; programs made for a shell do not.
func (h *Host) UserFiles() ([]string, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, err
	}
	config, zed := filepath.Join(home, ".config"), ""
	switch runtime.GOOS {
	case "darwin":
		zed = filepath.Join(config, "zed")
		config = filepath.Join(home, "Library", "Application Support")
	case "windows":
		config = os.Getenv("APPDATA")
		zed = filepath.Join(config, "Zed")
	default:
		if dir := os.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
			config = dir
		}
		zed = filepath.Join(config, "zed")
	}
	var files []string
	for _, pattern := range h.User {
		file := userVariable().ReplaceAllStringFunc(pattern, func(ref string) string {
			m := userVariable().FindStringSubmatch(ref)
			if value := os.Getenv(m[1]); value != "" && (m[1] != "XDG_CONFIG_HOME" || filepath.IsAbs(value)) {
				return value
			}
			return m[2]
		})
		if file == "" {
			continue
		}
		if rest, ok := strings.CutPrefix(file, "~"); ok {
			file = home + rest
		}
		files = append(files, filepath.FromSlash(strings.NewReplacer("{config}", config, "{zed}", zed).Replace(file)))
	}
	return files, nil
}

var userVariable = lazyregexp.New(`\$\{(\w+)(?::-([^}]*))?\}`)
