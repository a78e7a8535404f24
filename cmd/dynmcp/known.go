package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"

	"dynmcp/internal/atomicfile"
	"dynmcp/internal/redact"
	"dynmcp/schema"
)

// stateDir returns the directory of what dynmcp keeps for the user (XDG Base
// Directory Specification; elsewhere what the system has for it).
func stateDir() (string, error) {
	switch runtime.GOOS {
	case "windows":
		dir, err := os.UserCacheDir() // %LocalAppData%: it does not roam
		return filepath.Join(dir, "dynmcp"), err
	case "darwin":
		dir, err := os.UserConfigDir()
		return filepath.Join(dir, "dynmcp"), err
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "dynmcp"), nil
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".local", "state", "dynmcp"), err
}

// A known server is what is kept of one that has been started, so that ls can tell
// it without a start: a file for each, since several dynmcp run at a time.
type known struct {
	Protocol string `json:"protocol"` // the version it spoke last
}

// knownFile returns where it is kept what is known of a server. The name stands
// for what the entry starts; no secret has a part in it.
func knownFile(s schema.Server) (string, error) {
	dir, err := stateDir()
	if err != nil {
		return "", err
	}
	s = s.ReplaceSecrets(func(schema.SecretUse) string { return redact.Mark })
	entry, err := json.Marshal([]any{s.Transport, s.Command, s.Args, s.Cwd, s.URL})
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "servers", fmt.Sprintf("%x.json", sha256.Sum256(entry))), nil
}

// knownOf returns what is known of a server, nothing where there is no such file or
// it is not one of ours.
func knownOf(s schema.Server) (k known) {
	path, err := knownFile(s)
	if err != nil {
		return known{}
	}
	text, err := readSmall(path)
	if err != nil || json.Unmarshal(text, &k) != nil {
		return known{}
	}
	return k
}

// readSmall reads a file that is one, and no larger than what is kept of a server.
func readSmall(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() > 64<<10:
		return nil, fs.ErrInvalid
	}
	return os.ReadFile(path)
}

// keepKnown keeps what is known of a server that was started. Where that is not
// possible ls knows less, and nothing else is lost.
func keepKnown(log *slog.Logger, s schema.Server, protocol string) {
	if err := writeKnown(s, known{Protocol: protocol}); err != nil && log != nil {
		log.Debug("what is known of a server is not kept", "upstream", s.Name, "err", err)
	}
}

func writeKnown(s schema.Server, k known) error {
	path, err := knownFile(s)
	if err != nil {
		return err
	}
	text, err := json.Marshal(k)
	if err != nil {
		return err
	}
	if old, _ := readSmall(path); bytes.Equal(old, text) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return atomicfile.Replace(path, text, 0o600)
}
