package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/internal/atomicfile"
	"github.com/dynmcp/dynmcp/internal/regular"
	"github.com/dynmcp/dynmcp/schema"
)

// A directory has a file for each listing. Many configs and processes share it, so it has
// files of servers that this config lacks.
type directory struct {
	path   string
	pruned sync.Once
}

func (d *directory) where(server schema.Server) string {
	return filepath.Join(d.path, Key(server)+".listing")
}

// failure is the file with the reason why the last start of a server failed. Its age is that of the
// failure.
func (d *directory) failure(server schema.Server) string {
	return filepath.Join(d.path, Key(server)+".failed")
}

func (d *directory) read(server schema.Server) ([]byte, func(), error) {
	path := d.where(server)
	text, err := regular.ReadNoFollow(context.Background(), path, largest, checkOwner)
	return text, func() { touch(path) }, err
}

func (d *directory) write(server schema.Server, text []byte) error {
	if err := d.prepare(); err != nil {
		return err
	}
	path := d.where(server)
	sweep(path)
	err := atomicfile.Replace(path, text, 0o600)
	d.pruned.Do(d.prune)
	return err
}

// largestFailure is the largest reason that is read, in bytes.
const largestFailure = 64 << 10

func (d *directory) writeFailure(server schema.Server, why string) error {
	if err := d.prepare(); err != nil {
		return err
	}
	return atomicfile.Replace(d.failure(server), []byte(why), 0o600)
}

func (d *directory) readFailure(server schema.Server) (why string, at time.Time) {
	text, err := regular.ReadNoFollow(context.Background(), d.failure(server), largestFailure, checkOwner)
	if err != nil {
		return "", at
	}
	if info, err := os.Lstat(d.failure(server)); err == nil {
		at = info.ModTime()
	}
	return string(text), at
}

func (d *directory) clearFailure(server schema.Server) {
	_ = os.Remove(d.failure(server)) // mostly it does not exist
}

func (d *directory) Check() error {
	if err := d.prepare(); err != nil {
		return err
	}
	file, err := os.CreateTemp(d.path, ".check.*")
	if err != nil {
		return err
	}
	return errors.Join(file.Close(), os.Remove(file.Name()))
}

// prepare creates the directory, and refuses one in which others can put files.
func (d *directory) prepare() error {
	if err := os.MkdirAll(d.path, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(d.path)
	if err != nil {
		return err
	}
	if err := checkOwner(info); err != nil {
		return fmt.Errorf("%s: %w", d.path, err)
	}
	return nil
}

// touch renews the modification time of a file, unless it is recent.
func touch(path string) {
	now := time.Now()
	if info, err := os.Lstat(path); err == nil && now.Sub(info.ModTime()) > renewed {
		_ = os.Chtimes(path, now, now) // on failure the file is removed and written again one day
	}
}

// isListing reports whether a file name has the form of where or failure.
func isListing(name string) bool {
	sum, ok := strings.CutSuffix(name, ".listing")
	if !ok {
		sum, ok = strings.CutSuffix(name, ".failed")
	}
	return ok && len(sum) == 2*sha256.Size && strings.Trim(sum, "0123456789abcdef") == ""
}

// prune removes the files of servers that are no longer used.
func (d *directory) prune() {
	entries, _ := os.ReadDir(d.path)
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || !isListing(e.Name()) || time.Since(info.ModTime()) < unused {
			continue
		}
		path := filepath.Join(d.path, e.Name())
		sweep(path)
		_ = os.Remove(path)
	}
}

// abandoned is the age at which the temporary file of an interrupted write is removed.
const abandoned = time.Hour

// sweep removes the temporary files that interrupted writes of this file have left.
func sweep(path string) {
	dir, base := filepath.Split(path)
	left, _ := filepath.Glob(filepath.Join(dir, "."+base+".*"))
	for _, path := range left {
		if info, err := os.Lstat(path); err == nil && time.Since(info.ModTime()) > abandoned {
			_ = os.Remove(path)
		}
	}
}
