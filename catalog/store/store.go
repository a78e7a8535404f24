// Package store keeps what servers listed between runs, a file for each, so that a
// server is known without being started.
//
// A file is replaced in one step, by whichever process has listed the server last, and
// is read as a whole: a process sees one listing or another, never a part. What is no
// file of ours, or not as we wrote it, is an error for whoever asks for that server and
// costs nothing else.
package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"dynmcp/catalog"
	"dynmcp/cluster/kv"
	"dynmcp/internal/atomicfile"
	"dynmcp/schema"
)

// A Store is a directory of listings. The directory is made when the first is kept.
// Replicas of one service have a bucket of their shared state instead, see [Shared].
type Store struct {
	dir    string
	pruned sync.Once
	bucket kv.Bucket // in the place of these, nil for a directory

	mu   sync.Mutex
	seen map[string]uint64 // the revision of what was read or kept here, by key
}

// New returns the store in a directory. Nothing is read or made.
func New(dir string) *Store { return &Store{dir: dir} }

// Of returns the store that a config names, or else the one in a directory; nil, which
// keeps nothing, where that is "" or the config turns keeping off. One command that is
// wrapped is started at once and waited for: nothing is kept of it.
func Of(cfg *schema.Config, dir string) *Store {
	switch named := cfg.Catalog.Dir; {
	case cfg.SingleWrap:
		return nil
	case named != nil && (*named == "" || filepath.IsAbs(*named)):
		dir = *named
	case named != nil:
		dir = filepath.Join(filepath.Dir(cfg.Path), *named)
	}
	if dir == "" {
		return nil
	}
	return New(dir)
}

// Shared returns the store of the replicas that share a bucket; nil, which keeps nothing,
// where the config turns keeping off.
func Shared(cfg *schema.Config, bucket kv.Bucket) *Store {
	if off := cfg.Catalog.Dir; cfg.SingleWrap || off != nil && *off == "" {
		return nil
	}
	return &Store{bucket: bucket.For(unused), seen: map[string]uint64{}}
}

// largest is the largest file that is kept or read, in bytes: four messages of the
// largest size that servers may send by default.
const largest = 64 << 20

// file returns where the listing of a server is.
func (s *Store) file(server schema.Server) string {
	return filepath.Join(s.dir, Key(server)+".listing")
}

// Key returns what the listing of a server is kept under. It stands for the entry: what
// is started or reached, and under which name. Of variables and headers only the names
// count, and of all else what is no secret: two accounts at one server are two entries
// of a config, and a new password is no other server.
func Key(server schema.Server) string {
	server = server.ReplaceSecrets(func(schema.SecretUse) string { return "***" })
	what, err := json.Marshal([]any{
		server.Name, server.Transport, server.Command, server.Args, server.Cwd, server.URL, sortedKeys(server.Env), sortedKeys(server.Headers),
	})
	if err != nil { // strings and lists of them
		panic(err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(what))
}

func sortedKeys(m map[string]string) []string {
	keys := []string{}
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// Check returns why nothing can be kept, nil if it can. It makes the directory.
func (s *Store) Check() error {
	if err := s.prepare(); err != nil {
		return err
	}
	file, err := os.CreateTemp(s.dir, ".check.*")
	if err != nil {
		return err
	}
	return errors.Join(file.Close(), os.Remove(file.Name()))
}

// prepare makes the directory, and refuses one in which others can put files.
func (s *Store) prepare() error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(s.dir)
	if err != nil {
		return err
	}
	if err := checkOwner(info); err != nil {
		return fmt.Errorf("%s: %w", s.dir, err)
	}
	return nil
}

// Remedy says what to do about an error of Check or Load.
func Remedy(err error) string {
	switch {
	case errors.Is(err, errCorrupt), errors.Is(err, errOlder):
		return "it is written anew when the server is started, or now by dynmcp warm"
	case errors.Is(err, errNewer):
		return "update this dynmcp, or remove the file if the newer one is not used any more"
	case errors.Is(err, errForeign):
		return "remove it, or make it yours alone (chown, chmod go-w)"
	}
	return "make it readable and writable for you, or name another directory in catalog.dir of the config"
}

// Load returns what is kept of a server, nil without an error if nothing is.
func (s *Store) Load(server schema.Server) (*catalog.Stored, error) {
	if s == nil {
		return nil, nil
	}
	if s.bucket != nil {
		return s.loadShared(server)
	}
	path := s.file(server)
	text, err := read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var stored *catalog.Stored
	if err == nil {
		stored, err = decode(text)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	touch(path)
	return stored, nil
}

// Keep keeps what a server listed, in the place of what it listed before. Of a list
// that could not be had the entries of before stay. What a newer dynmcp has written is
// left as it is.
func (s *Store) Keep(server schema.Server, l *catalog.Listing) error {
	if s == nil {
		return nil
	}
	if s.bucket != nil {
		return s.keepShared(server, l)
	}
	path := s.file(server)
	before, err := read(path)
	if err == nil {
		var stored *catalog.Stored
		if stored, err = decode(before); errors.Is(err, errNewer) {
			return fmt.Errorf("%s: %w", path, err)
		}
		if stored != nil {
			l = withoutGaps(l, stored)
		}
	}
	text, err := encode(server.Name, l)
	switch {
	case err != nil:
		return err
	case bytes.Equal(text, before):
		touch(path)
		return nil
	case len(text) > largest:
		return fmt.Errorf("the listing of %s is larger than %d MB", server.Name, largest>>20)
	}
	if err := s.prepare(); err != nil {
		return err
	}
	sweep(path)
	err = atomicfile.Replace(path, text, 0o600)
	s.pruned.Do(s.prune)
	return err
}

// A directory is that of many configs and processes: that a config does not have a server
// says nothing of its file. One that none of them has read or written for so long is
// removed. Its age is that of its last modification, which whoever uses it renews. So it
// is with the records of a bucket, which removes them by itself.
const (
	unused  = 90 * 24 * time.Hour
	renewed = 7 * 24 * time.Hour
)

// touch notes that a file is used, unless it has been noted lately.
func touch(path string) {
	now := time.Now()
	if info, err := os.Lstat(path); err == nil && now.Sub(info.ModTime()) > renewed {
		_ = os.Chtimes(path, now, now) // if it cannot be, it is written anew one day
	}
}

// isListing reports whether a file has a name that file gives.
func isListing(name string) bool {
	sum, ok := strings.CutSuffix(name, ".listing")
	return ok && len(sum) == 2*sha256.Size && strings.Trim(sum, "0123456789abcdef") == ""
}

// prune removes the files of servers that nobody uses any more.
func (s *Store) prune() {
	entries, _ := os.ReadDir(s.dir)
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || !isListing(e.Name()) || time.Since(info.ModTime()) < unused {
			continue
		}
		path := filepath.Join(s.dir, e.Name())
		sweep(path)
		_ = os.Remove(path)
	}
}

// withoutGaps returns a listing with the lists that failed as they were before.
func withoutGaps(l *catalog.Listing, before *catalog.Stored) *catalog.Listing {
	if len(l.Failed) == 0 {
		return l
	}
	whole := *l
	for method, of := range map[string]func(*catalog.Listing) *[]json.RawMessage{
		"resources/list":           func(l *catalog.Listing) *[]json.RawMessage { return &l.Resources },
		"resources/templates/list": func(l *catalog.Listing) *[]json.RawMessage { return &l.Templates },
		"prompts/list":             func(l *catalog.Listing) *[]json.RawMessage { return &l.Prompts },
	} {
		if l.Failed[method] != "" {
			*of(&whole) = *of(&before.Listing)
		}
	}
	return &whole
}

// abandoned is how old the file of a write that was cut short must be to be removed.
const abandoned = time.Hour

// sweep removes what writes of this file have left that were ended in the middle.
func sweep(path string) {
	dir, base := filepath.Split(path)
	left, _ := filepath.Glob(filepath.Join(dir, "."+base+".*"))
	for _, path := range left {
		if info, err := os.Lstat(path); err == nil && time.Since(info.ModTime()) > abandoned {
			_ = os.Remove(path)
		}
	}
}

// read returns a file of ours.
func read(path string) ([]byte, error) {
	named, err := os.Lstat(path) // a pipe must not be opened
	switch {
	case err != nil:
		return nil, err
	case !named.Mode().IsRegular():
		return nil, errors.New("it is not a file")
	case named.Size() > largest:
		return nil, fmt.Errorf("it is larger than %d MB", largest>>20)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if err := checkOwner(info); err != nil {
		return nil, err
	}
	text := make([]byte, info.Size())
	if _, err := io.ReadFull(file, text); err != nil {
		return nil, err
	}
	return text, nil
}
