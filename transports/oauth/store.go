package oauth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/lockedfile"

	"dynmcp/internal/atomicfile"
	"dynmcp/schema"
)

// A Key says what a login is for: an entry of the config, its address, and the
// client that it names. Another address or client is another login. Who issues the
// tokens is for the server to say, so logins at several issuers may have one key: each
// has its own file, and the last one made counts.
type Key struct {
	Server   string // the name of the entry
	Resource string // its url
	Client   string // client_id of its auth, empty if a client is registered for us
}

// KeyOf returns the key of the login at a server.
func KeyOf(s schema.Server) Key {
	key := Key{Server: s.Name, Resource: s.URL}
	if s.Auth != nil {
		key.Client = s.Auth.ClientID
	}
	return key
}

// file is the name of the file that a login at an issuer is kept in. It says nothing of
// the address, which may hold a secret. Before issuers had files of their own it was
// that for "".
func (k Key) file(issuer string) string {
	if issuer == "" {
		return k.prefix() + ".json"
	}
	sum := sha256.Sum256([]byte(issuer))
	return k.prefix() + "-" + hex.EncodeToString(sum[:8]) + ".json"
}

func (k Key) prefix() string {
	sum := sha256.Sum256([]byte(strings.Join([]string{k.Server, k.Resource, k.Client}, "\n")))
	return k.Server + "-" + hex.EncodeToString(sum[:12])
}

// isFile reports whether a name is one that file returns.
func (k Key) isFile(name string) bool {
	issuer, ok := strings.CutPrefix(name, k.prefix())
	return ok && (issuer == ".json" || len(issuer) == len("-0123456789abcdef.json") && strings.HasPrefix(issuer, "-") && strings.HasSuffix(issuer, ".json"))
}

// A Store keeps logins, one file each, which several processes may use at once.
// The secrets in it are sealed with a key from the keyring of the system; where
// there is none the files hold them as they are, readable by their owner only.
// Replicas of one service have one in their shared state instead, see [NewShared].
type Store struct {
	dir     string
	keyring keyring
	shared  *shared // in the place of these, nil for files
}

// NewStore returns the store in a directory, which is made when it is needed.
func NewStore(dir string) *Store { return &Store{dir: dir} }

// Place says where logins that are made now are kept.
func (s *Store) Place() string {
	if s.shared != nil {
		return "in the state of the cluster, sealed with its key"
	}
	if _, err := s.keyring.key(""); err == nil || errors.Is(err, errNoKey) {
		return fmt.Sprintf("in %s, sealed with a key in the keyring of the system", s.dir)
	} else {
		return fmt.Sprintf("in %s, which only you can read (no keyring: %v)", s.dir, err)
	}
}

// A record is the text of a login's file. Of the secrets it has one form.
type record struct {
	Version int      `json:"version"`
	Login   Login    `json:"login"`
	Plain   *Secrets `json:"secrets,omitempty"`
	KeyID   string   `json:"key,omitempty"`    // of the key that sealed
	Sealed  []byte   `json:"sealed,omitempty"` // Secrets as JSON, bound to the rest of the login
}

const recordVersion = 1

// Peek returns a login without its secrets and without the keyring, nil if there
// is none.
func (s *Store) Peek(key Key) (*Login, error) {
	if s.shared != nil {
		l, err := s.Load(key)
		if l != nil {
			l.Secrets = Secrets{}
		}
		return l, err
	}
	all, err := s.read(key)
	if len(all) == 0 {
		return nil, err
	}
	return &all[0].Login, nil
}

// Load returns a login, nil if there is none. One of another version, or that
// cannot be read, is none.
func (s *Store) Load(key Key) (*Login, error) {
	if s.shared != nil {
		all, _, err := s.shared.read(context.Background(), key)
		if len(all) == 0 {
			return nil, err
		}
		return all[0], err
	}
	all, err := s.read(key)
	if len(all) == 0 {
		return nil, err
	}
	return s.open(all[0])
}

// LoadAll returns the logins at all issuers, the last one made first.
func (s *Store) LoadAll(key Key) ([]*Login, error) {
	if s.shared != nil {
		all, _, err := s.shared.read(context.Background(), key)
		return all, err
	}
	all, err := s.read(key)
	var logins []*Login
	for _, r := range all {
		l, failed := s.open(r)
		if l != nil {
			logins = append(logins, l)
		}
		err = errors.Join(err, failed)
	}
	return logins, err
}

// open returns the login of a record with its secrets, nil if they are lost.
func (s *Store) open(r *record) (*Login, error) {
	l := &r.Login
	switch {
	case r.Plain != nil:
		l.Secrets = *r.Plain
	case r.Sealed != nil:
		sealing, err := s.keyring.key(r.KeyID)
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

// read returns the records of a key, the last one made first.
func (s *Store) read(key Key) ([]*record, error) {
	names, err := s.files(key)
	var all []*record
	for _, name := range names {
		r, failed := readRecord(filepath.Join(s.dir, name))
		if failed != nil {
			return nil, failed
		}
		if r != nil {
			all = append(all, r)
		}
	}
	slices.SortStableFunc(all, func(a, b *record) int { return b.Login.Issued.Compare(a.Login.Issued) })
	return all, err
}

// files returns the names of the files of a key.
func (s *Store) files(key Key) (names []string, err error) {
	info, err := os.Lstat(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = checkPrivate(s.dir, info)
	}
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(s.dir)
	for _, e := range entries {
		if key.isFile(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// readRecord reads a file, nil if there is none or it is no record.
func readRecord(path string) (*record, error) {
	file, err := openNoFollow(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err == nil {
		err = checkPrivate(path, info)
	}
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(file, maxRecord))
	if err != nil {
		return nil, err
	}
	var r record
	if json.Unmarshal(text, &r) != nil || r.Version != recordVersion {
		return nil, nil
	}
	return &r, nil
}

// maxRecord is how long the file of a login may be, in bytes.
const maxRecord = 4 << 20

// Save keeps a login in place of the one before. Whoever reads meanwhile gets one
// of both.
func (s *Store) Save(key Key, l *Login) error {
	if s.shared != nil {
		return s.shared.save(key, l)
	}
	r := record{Version: recordVersion, Login: *l}
	r.Login.HasToken, r.Login.Renews = l.AccessToken != "", l.RefreshToken != ""
	if err := s.makeDir(); err != nil {
		return err
	}
	sealing, err := s.sealing()
	if err == nil {
		text, err := json.Marshal(l.Secrets)
		if err != nil {
			return err
		}
		r.KeyID, r.Sealed = sealing.id, sealing.seal(text, l.bound())
	} else {
		r.Plain = &l.Secrets
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	// A refresh token that was replaced is worth nothing any more, so no power loss may
	// bring the old one back.
	if err := atomicfile.Replace(filepath.Join(s.dir, key.file(l.Issuer)), append(text, '\n'), 0o600); err != nil {
		return err
	}
	return s.moveOld(key)
}

// moveOld gives a login that was kept before issuers had files of their own such a
// file, unless there is a newer one.
func (s *Store) moveOld(key Key) error {
	old := filepath.Join(s.dir, key.file(""))
	r, err := readRecord(old)
	if r == nil || err != nil || r.Login.Issuer == "" {
		return err
	}
	path := filepath.Join(s.dir, key.file(r.Login.Issuer))
	if _, err := os.Lstat(path); err == nil {
		return os.Remove(old)
	}
	return os.Rename(old, path)
}

// sealing returns the key that seals, and makes one if the keyring has none: one
// process at a time, or each would make its own.
func (s *Store) sealing() (*sealing, error) {
	found, err := s.keyring.key("")
	if !errors.Is(err, errNoKey) {
		return found, err
	}
	unlock, err := lockedfile.MutexAt(filepath.Join(s.dir, ".keyring.lock")).Lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	if found, err = s.keyring.key(""); errors.Is(err, errNoKey) {
		found, err = s.keyring.newKey()
	}
	return found, err
}

// Delete forgets a login, at all issuers, and reports whether there was one.
func (s *Store) Delete(key Key) (was bool, err error) {
	if s.shared != nil {
		return s.shared.delete(key)
	}
	names, err := s.files(key)
	for _, name := range names {
		switch failed := os.Remove(filepath.Join(s.dir, name)); {
		case failed == nil:
			was = true
		case !errors.Is(failed, fs.ErrNotExist):
			err = errors.Join(err, failed)
		}
	}
	return was, err
}

func (s *Store) makeDir() error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	info, err := os.Lstat(s.dir)
	if err != nil {
		return err
	}
	return checkPrivate(s.dir, info)
}

// Lock keeps other processes, and other callers in this one, from changing a login
// until unlock is called. The system holds the lock, so a process that is killed
// leaves none. Among replicas another may take it after some seconds from one that is
// cut off: held, which is within ctx, ends before that.
func (s *Store) Lock(ctx context.Context, key Key) (held context.Context, unlock func(), err error) {
	if s.shared != nil {
		return s.shared.lock(ctx, key)
	}
	if err := s.makeDir(); err != nil {
		return nil, nil, err
	}
	type locked struct {
		unlock func()
		err    error
	}
	done := make(chan locked, 1)
	go func() { // the system's lock has no deadline
		unlock, err := lockedfile.MutexAt(filepath.Join(s.dir, key.file("")+".lock")).Lock()
		done <- locked{unlock, err}
	}()
	select {
	case l := <-done:
		return ctx, l.unlock, l.err
	case <-ctx.Done():
		go func() {
			if l := <-done; l.err == nil {
				l.unlock()
			}
		}()
		return nil, nil, fmt.Errorf("another dynmcp holds the lock on the login of %s: %w", key.Server, ctx.Err())
	}
}

// Update changes a login under its lock; change gets what is kept now, nil if
// there is none, and reports whether to keep what it made of it.
func (s *Store) Update(ctx context.Context, key Key, change func(*Login) bool) error {
	_, unlock, err := s.Lock(ctx, key)
	if err != nil {
		return err
	}
	defer unlock()
	l, err := s.Load(key)
	if err != nil || !change(l) || l == nil {
		return err
	}
	return s.Save(key, l)
}
