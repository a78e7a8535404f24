package conf

import (
	"context"
	"os"
	"path/filepath"
	"runtime"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/catalog/store"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/packages"
	"github.com/dynmcp/dynmcp/schema"
)

// StateDir returns the directory of what dynmcp keeps for the user (XDG Base
// Directory Specification; elsewhere what the system has for it).
func StateDir() (string, error) {
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

// CatalogDir is where it is kept between runs what servers list, unless a config names
// another directory; "" where the user has no directory for such things.
func CatalogDir() string {
	dir, err := StateDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "catalog")
}

// DefinitionsDir is where the definitions of tools are kept that are pinned or approved; ""
// where the user has no directory for such things.
func DefinitionsDir() string {
	dir, err := StateDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "definitions")
}

// Running returns which package a server runs, and in which version, as the lock of approved
// tools has it: without secrets, for that is committed.
func Running(ctx context.Context, s schema.Server) string {
	return cli.Secrets.String(packages.Running(ctx, s.Command, s.Args, s.Env))
}

// StoredOf returns what a server listed when it was last started, nothing if that is not
// known.
func StoredOf(cfg *schema.Config, s schema.Server) *catalog.Stored {
	stored, err := store.Of(cfg, CatalogDir()).Load(s)
	if err != nil || stored == nil {
		return &catalog.Stored{}
	}
	return stored
}
