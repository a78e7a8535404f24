package logins

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dynmcp/dynmcp/internal/atomicfile"
	"github.com/dynmcp/dynmcp/internal/regular"
)

// files stores logins, one per file. Their secrets are sealed with a key from the system's
// keyring; without a keyring they are stored in plain text, readable only by their owner.
type files struct {
	dir     string
	keyring keyring
}

// NewFiles returns the store in a directory, which is created when it is needed.
func NewFiles(dir string) *Store { return &Store{&files{dir: dir}} }

// file returns the name of the file for a login at an issuer. It does not reveal the address,
// which may contain a secret. The name for "" is from before issuers had separate files.
func (k Key) file(issuer string) string {
	if issuer == "" {
		return k.prefix() + ".json"
	}
	sum := sha256.Sum256([]byte(issuer))
	return k.prefix() + "-" + hex.EncodeToString(sum[:8]) + ".json"
}

func (k Key) prefix() string {
	sum := sha256.Sum256(k.digested())
	return k.Server + "-" + hex.EncodeToString(sum[:12])
}

// isFile reports whether a name has the form of the names from file.
func (k Key) isFile(name string) bool {
	issuer, ok := strings.CutPrefix(name, k.prefix())
	return ok && (issuer == ".json" || len(issuer) == len("-0123456789abcdef.json") && strings.HasPrefix(issuer, "-") && strings.HasSuffix(issuer, ".json"))
}

func (f *files) Place() string {
	if _, err := f.keyring.key(""); err == nil || errors.Is(err, errNoKey) {
		return fmt.Sprintf("in %s, sealed with a key in the keyring of the system", f.dir)
	} else {
		return fmt.Sprintf("in %s, which only you can read (no keyring: %v)", f.dir, err)
	}
}

// stamp returns the time of the last change of the directory. Two changes in one tick of its clock have
// the same, so a recent one is always another value.
func (f *files) Stamp() int64 {
	info, err := os.Stat(f.dir)
	switch {
	case err != nil:
		return 0
	case time.Since(info.ModTime()) < Pause:
		return -time.Now().UnixNano()
	}
	return info.ModTime().UnixNano()
}

func (f *files) open(r *record) (*Login, error) {
	l := &r.Login
	switch {
	case r.Plain != nil:
		l.Secrets = *r.Plain
	case r.Sealed != nil:
		sealing, err := f.keyring.key(r.KeyID)
		if errors.Is(err, errNoKey) {
			return nil, nil // the keyring was emptied: the login is lost
		}
		if err != nil {
			return nil, fmt.Errorf("open the login of %s: %w", l.Server, err)
		}
		text, err := sealing.open(r.Sealed, l.bound())
		if err != nil || json.Unmarshal(text, &l.Secrets) != nil {
			return nil, nil
		}
	}
	return l, nil
}

func (f *files) read(key Key) ([]*record, error) {
	names, err := f.names(key)
	var all []*record
	for _, name := range names {
		r, failed := readRecord(filepath.Join(f.dir, name))
		if failed != nil {
			return nil, failed
		}
		if r != nil {
			all = append(all, r)
		}
	}
	slices.SortStableFunc(all, newestFirst)
	return all, err
}

// names returns the names of the files of a key.
func (f *files) names(key Key) (names []string, err error) {
	info, err := os.Lstat(f.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = checkPrivate(f.dir, info)
	}
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(f.dir)
	for _, e := range entries {
		if key.isFile(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// readRecord reads a file. It returns nil if it is absent or not a record.
func readRecord(path string) (*record, error) {
	text, err := regular.ReadNoFollow(context.Background(), path, maxRecord, func(info fs.FileInfo) error { return checkPrivate(path, info) })
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var r record
	if json.Unmarshal(text, &r) != nil || r.Version != recordVersion {
		return nil, nil
	}
	return &r, nil
}

// maxRecord is the largest size of a login's file, in bytes.
const maxRecord = 4 << 20

func (f *files) Save(key Key, l *Login) error {
	r := recordOf(l)
	if err := f.makeDir(); err != nil {
		return err
	}
	if sealing, err := f.sealing(); err == nil {
		text, err := json.Marshal(l.Secrets)
		if err != nil {
			return err
		}
		r.Plain, r.KeyID, r.Sealed = nil, sealing.id, sealing.seal(text, l.bound())
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	// A replaced refresh token is invalid, so a power loss must not restore the old one.
	if err := atomicfile.Replace(filepath.Join(f.dir, key.file(l.Issuer)), append(text, '\n'), 0o600); err != nil {
		return err
	}
	return f.moveOld(key)
}

// moveOld moves a login from before issuers had separate files to such a file, unless
// there is a newer one.
func (f *files) moveOld(key Key) error {
	old := filepath.Join(f.dir, key.file(""))
	r, err := readRecord(old)
	if r == nil || err != nil || r.Login.Issuer == "" {
		return err
	}
	path := filepath.Join(f.dir, key.file(r.Login.Issuer))
	if _, err := os.Lstat(path); err == nil {
		return os.Remove(old)
	}
	return atomicfile.Rename(old, path)
}

// sealing returns the key for sealing, and creates one if the keyring has none: one process
// at a time, or each would create its own.
func (f *files) sealing() (*sealing, error) {
	found, err := f.keyring.key("")
	if !errors.Is(err, errNoKey) {
		return found, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), WaitTime)
	defer cancel()
	unlock, err := lockFile(ctx, filepath.Join(f.dir, ".keyring.lock"))
	if err != nil {
		return nil, err
	}
	defer unlock()
	if found, err = f.keyring.key(""); errors.Is(err, errNoKey) {
		found, err = f.keyring.newKey()
	}
	return found, err
}

func (f *files) Delete(key Key) (was bool, err error) {
	names, err := f.names(key)
	for _, name := range names {
		switch failed := os.Remove(filepath.Join(f.dir, name)); {
		case failed == nil:
			was = true
		case !errors.Is(failed, fs.ErrNotExist):
			err = errors.Join(err, failed)
		}
	}
	return was, err
}

func (f *files) makeDir() error {
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return err
	}
	info, err := os.Lstat(f.dir)
	if err != nil {
		return err
	}
	return checkPrivate(f.dir, info)
}

func (f *files) Lock(ctx context.Context, key Key) (held context.Context, unlock func(), err error) {
	if err := f.makeDir(); err != nil {
		return nil, nil, err
	}
	unlock, err = lockFile(ctx, filepath.Join(f.dir, key.file("")+".lock"))
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("another dynmcp holds the lock on the login of %s: %w", key.Server, err)
	}
	return ctx, unlock, err
}

// lockFile locks a file, which is created if absent, before ctx ends. It polls: a blocking
// system call would keep a thread while another process holds the lock, and a stopped process
// holds it for ever.
func lockFile(ctx context.Context, path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for pause := time.Millisecond; ; pause = min(2*pause, Pause) {
		locked, err := tryLock(file)
		if locked {
			return func() { file.Close() }, nil
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			err = ctx.Err()
		}
		if err != nil {
			file.Close()
			return nil, err
		}
	}
}
