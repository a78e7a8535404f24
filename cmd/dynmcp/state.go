package main

import (
	"os"
	"path/filepath"
	"runtime"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/catalog/store"
	"github.com/dynmcp/dynmcp/schema"
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

// catalogDir is where it is kept between runs what servers list, unless a config names
// another directory; "" where the user has no directory for such things.
func catalogDir() string {
	dir, err := stateDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "catalog")
}

// storedOf returns what a server listed when it was last started, nothing if that is not
// known.
func storedOf(cfg *schema.Config, s schema.Server) *catalog.Stored {
	stored, err := store.Of(cfg, catalogDir()).Load(s)
	if err != nil || stored == nil {
		return &catalog.Stored{}
	}
	return stored
}
