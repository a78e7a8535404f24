// Package packages reads what packages of npm and of Python say they are, from the copies that
// npx and uvx keep. It fetches and runs nothing.
package packages

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/internal/regular"
)

// most is the most bytes of a file with the metadata of a package.
const most = 1 << 20

// Description returns what the package that a command runs says it is, "" where the command
// runs none, or there is no copy of it.
func Description(ctx context.Context, command string, args []string) string {
	program := strings.ToLower(filepath.Base(filepath.FromSlash(command)))
	switch program = strings.TrimSuffix(strings.TrimSuffix(program, ".cmd"), ".exe"); program {
	case "npx", "bunx", "pnpx":
		return ofNPM(ctx, NPM(args))
	case "uvx":
		return ofPython(ctx, python(args))
	case "uv":
		if len(args) > 2 && args[0] == "tool" && args[1] == "run" {
			return ofPython(ctx, python(args[2:]))
		}
	}
	return ""
}

// NPM returns the package that the arguments of npx name, with its version.
func NPM(args []string) string {
	for i, arg := range args {
		value, long := strings.CutPrefix(arg, "--package=")
		switch {
		case long:
			return value
		case (arg == "-p" || arg == "--package") && i+1 < len(args):
			return args[i+1]
		case !strings.HasPrefix(arg, "-"):
			return arg
		}
	}
	return ""
}

// ofNPM reads the description in a package.json.
func ofNPM(ctx context.Context, name string) string {
	if at := strings.LastIndexByte(name, '@'); at > 0 {
		name = name[:at]
	}
	dir := os.Getenv("npm_config_cache")
	switch {
	case dir != "":
	case runtime.GOOS == "windows":
		dir = filepath.Join(os.Getenv("LocalAppData"), "npm-cache")
	default:
		dir = filepath.Join(home(), ".npm")
	}
	text := newest(ctx, name, filepath.Join(dir, "_npx", "*", "node_modules", filepath.FromSlash(name), "package.json"))
	var about struct{ Description string }
	_ = json.Unmarshal(text, &about) // what is malformed says nothing
	return about.Description
}

// python returns the package that the arguments of uvx name.
func python(args []string) string {
	for i, arg := range args {
		value, long := strings.CutPrefix(arg, "--from=")
		switch {
		case long:
			return value
		case arg == "--from" && i+1 < len(args):
			return args[i+1]
		case !strings.HasPrefix(arg, "-") && (i == 0 || !slices.Contains([]string{"--with", "--python", "-p", "--index-url"}, args[i-1])):
			return arg
		}
	}
	return ""
}

// ofPython reads the summary in the METADATA of an installed wheel.
func ofPython(ctx context.Context, name string) string {
	if end := strings.IndexAny(name, "[=<>~!@ "); end >= 0 {
		name = name[:end]
	}
	name = strings.NewReplacer("-", "_", ".", "_").Replace(strings.ToLower(name))
	dir := os.Getenv("UV_CACHE_DIR")
	switch {
	case dir != "":
	case runtime.GOOS == "windows":
		dir = filepath.Join(os.Getenv("LocalAppData"), "uv", "cache")
	default:
		dir = filepath.Join(cmp.Or(os.Getenv("XDG_CACHE_HOME"), filepath.Join(home(), ".cache")), "uv")
	}
	text := newest(ctx, name, filepath.Join(dir, "archive-v0", "*", name+"-*.dist-info", "METADATA"))
	for line := range strings.Lines(string(text)) {
		if strings.TrimSpace(line) == "" { // what follows is its readme
			break
		}
		if summary, ok := strings.CutPrefix(line, "Summary: "); ok {
			return strings.TrimSpace(summary)
		}
	}
	return ""
}

// newest reads the newest of the files that match a pattern with the name of a package, nil if
// there is none.
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
	text, err := regular.Read(ctx, newest, most)
	if err != nil {
		return nil
	}
	return text
}

// home is the user's home directory, "" if there is none.
func home() string {
	dir, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return dir
}
