package install

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"

	"github.com/dynmcp/dynmcp/internal/atomicfile"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/hosts"
	"github.com/dynmcp/dynmcp/internal/regular"
)

// An installed is a file of a host that dynmcp was put into.
type installed struct {
	Host    string `json:"host"`
	File    string `json:"file"`
	Name    string `json:"name"`    // of dynmcp there
	Created bool   `json:"created"` // the file did not exist before
}

// backups is the directory of what is kept of hosts' files: a directory for each, with an installed in
// installed.json, and its backups.
func backups() (string, error) {
	state, err := conf.StateDir()
	return filepath.Join(state, "backups"), err
}

// dir returns the directory of what is kept of the file.
func (f *installed) dir() (string, error) {
	all, err := backups()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(f.File))
	return filepath.Join(all, f.Host+"-"+hex.EncodeToString(sum[:4])), nil
}

// write records the installation, unless it is known with the state before it.
func (f *installed) write(dir string) error {
	if known, err := read(dir); err == nil {
		f.Created = f.Created || known.Created
	}
	text, err := json.Marshal(f)
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		return err
	}
	return atomicfile.Replace(filepath.Join(dir, "installed.json"), append(text, '\n'), 0o600)
}

func read(dir string) (f installed, err error) {
	text, err := regular.Read(context.Background(), filepath.Join(dir, "installed.json"), regular.Large)
	if err == nil {
		err = json.Unmarshal(text, &f)
	}
	return f, err
}

// everywhere returns the files that dynmcp is in, or may be: those that are recorded, and those of hosts that
// exist, in which older versions put it unrecorded.
func everywhere() (all []installed) {
	dir, err := backups()
	if err == nil {
		entries, _ := os.ReadDir(dir) // none without an installation
		for _, e := range entries {
			if f, err := read(filepath.Join(dir, e.Name())); err == nil && slices.Contains(hosts.Installable(), f.Host) {
				all = append(all, f)
			}
		}
	}
	for _, name := range hosts.Installable() {
		h, err := hosts.Among(name, hosts.Installable())
		if err != nil {
			continue
		}
		files, _ := h.Files() // none without a home directory
		for _, file := range files {
			path, err := filepath.Abs(file)
			if err == nil {
				path, err = filepath.EvalSymlinks(path)
			}
			if err == nil && !slices.ContainsFunc(all, func(f installed) bool { return f.File == path }) {
				all = append(all, installed{Host: name, File: path, Name: "dynmcp"})
			}
		}
	}
	return all
}
