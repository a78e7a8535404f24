package conf

import (
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/catalog/store"
	"github.com/dynmcp/dynmcp/internal/rule"
	"github.com/dynmcp/dynmcp/internal/toolglob"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
)

// StateDir returns the directory of the user's state of dynmcp, by the XDG Base Directory
// Specification or the system's equivalent.
func StateDir() (string, error) {
	switch runtime.GOOS {
	case "windows":
		dir, err := os.UserCacheDir() // %LocalAppData%, which does not roam
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

// CatalogDir returns the default directory of stored listings, or "" if the user has no state
// directory.
func CatalogDir() string { return inStateDir("catalog") }

// DefinitionsDir returns the directory of the definitions of pinned or approved tools, or "" if the
// user has no state directory.
func DefinitionsDir() string { return inStateDir("definitions") }

// CrashDir returns the directory of the traces of crashed runs, or "" if the user has no state
// directory.
func CrashDir() string { return inStateDir("crashes") }

func inStateDir(name string) string {
	dir, err := StateDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, name)
}

// StoredOf returns the stored listing of a server. It is empty if there is none.
func StoredOf(cfg *schema.Config, s schema.Server) *catalog.Stored {
	stored, err := store.Of(cfg, CatalogDir()).Load(s)
	if err != nil || stored == nil {
		return &catalog.Stored{}
	}
	return stored
}

// FailureOf returns why the last start of a server failed, and when; "" if it did not.
func FailureOf(cfg *schema.Config, s schema.Server) (why string, at time.Time) {
	f := store.Of(cfg, CatalogDir()).Failure(s)
	return f.Why, f.At
}

// HiddenBy returns what the policy of a config hides from the user of this machine, nil if nothing.
func HiddenBy(cfg *schema.Config) rule.Hider {
	rules, err := rule.Of(cfg)
	if err != nil { // they were checked when the config was read
		return nil
	}
	return rule.HiddenFrom(rules, "")
}

// Count counts the tools in the stored listing of a server that pass its filter, and those of them
// that are hidden, because the policy refuses every call of them.
func Count(s schema.Server, stored *catalog.Stored, hidden rule.Hider) (tools, denied int) {
	hides := hidden != nil && hidden.MayHide(s.Name)
	if stored.ReadTools == nil || len(s.ToolFilter) == 0 && !hides {
		return stored.Count, 0
	}
	pass := toolglob.NewFilter(s.ToolFilter)
	for _, raw := range stored.ReadTools() {
		name, _ := wire.Text(wire.Get(raw, "name"))
		annotations := wire.Get(raw, "annotations")
		if !pass.Passes(name, toolglob.AccessOf(annotations)) {
			continue
		}
		tools++
		if hides && hidden.Hides(s.Name, name, toolglob.ClassOf(annotations)) {
			denied++
		}
	}
	return tools, denied
}
