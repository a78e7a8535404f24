package sandbox

import "path/filepath"

// Resolve returns a path without symbolic links, as the kernel sees it. What is missing of the path
// stays as it is.
func Resolve(path string) string {
	missing := ""
	for dir := path; ; dir = filepath.Dir(dir) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, missing)
		}
		if dir == filepath.Dir(dir) {
			return path
		}
		missing = filepath.Join(filepath.Base(dir), missing)
	}
}

// Resolved returns the paths without symbolic links, as the kernel sees them.
func Resolved(paths []string) []string {
	all := make([]string, len(paths))
	for i, path := range paths {
		all[i] = Resolve(path)
	}
	return all
}
