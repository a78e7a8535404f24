// Package packages finds the package and version that a command runs, and the package's description,
// in the copies that npx, uvx and container engines keep. It fetches nothing.
package packages

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/dynmcp/dynmcp/internal/regular"
)

// most is the largest size of a package's metadata file, in bytes.
const most = 1 << 20

// Description returns the description of the package that a command runs, "" if it runs none, or there
// is no copy.
func Description(ctx context.Context, command string, args []string) string {
	p := Of(command, args)
	name, _ := p.Cut()
	switch p.Kind {
	case NPM:
		return manifest(newest(ctx, name, filepath.Join(npxDir(nil), "*", "node_modules", filepath.FromSlash(name), "package.json"))).Description
	case PyPI:
		return metadata(newestWheel(ctx, name, nil), "Summary")
	}
	return ""
}

// npxDir returns the directory of npx's installed packages.
func npxDir(env map[string]string) string { return filepath.Join(over(env).npmCache(), "_npx") }

// A npmManifest is the part of a package.json that is used.
type npmManifest struct{ Description, Version string }

func manifest(text []byte) (about npmManifest) {
	_ = json.Unmarshal(text, &about) // a malformed one is empty
	return about
}

// newestWheel reads the METADATA of the newest copy of a Python package in the cache of uvx.
func newestWheel(ctx context.Context, name string, env map[string]string) []byte {
	if end := strings.IndexAny(name, "[=<>~!@ "); end >= 0 {
		name = name[:end]
	}
	name = strings.NewReplacer("-", "_", ".", "_").Replace(strings.ToLower(name))
	return newest(ctx, name, filepath.Join(over(env).uvCache(), "archive-v0", "*", name+"-*.dist-info", "METADATA"))
}

// metadata returns a field of METADATA.
func metadata(text []byte, field string) string {
	for line := range strings.Lines(string(text)) {
		if strings.TrimSpace(line) == "" { // the readme follows
			break
		}
		if value, ok := strings.CutPrefix(line, field+": "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// newest reads the newest of the files that match a pattern with the name of a package, or
// nil.
func newest(ctx context.Context, name, pattern string) []byte {
	if name == "" || strings.ContainsAny(name, `*?[\:`) || strings.Contains(name, "..") || strings.HasPrefix(name, "/") {
		return nil // a path or an address
	}
	var newest string
	var written int64
	files, _ := filepath.Glob(pattern) // it fails only for a malformed pattern
	for _, file := range files {
		if info, err := os.Stat(file); err == nil && info.ModTime().UnixNano() >= written {
			newest, written = file, info.ModTime().UnixNano()
		}
	}
	if newest == "" {
		return nil
	}
	text, _ := regular.Read(ctx, newest, most) // nil after an error
	return text
}
