// Package store keeps what servers listed between runs, a file for each, so that a
// server is known without being started. Replicas of one service keep a record for each.
//
// A file is replaced in one step, by whichever process has listed the server last, and
// is read as a whole: a process sees one listing or another, never a part. What is no
// file of ours, or not as we wrote it, is an error for the caller that asks for that server and
// costs nothing else.
package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/kv"
	"github.com/dynmcp/dynmcp/schema"
)

// A Store is a directory of listings, or a bucket of the state that the replicas of one
// service share, see [Shared].
type Store struct{ backend }

// A backend keeps texts.
type backend interface {
	// where names what the listing of a server is kept in.
	where(schema.Server) string
	// read returns the text, or fs.ErrNotExist. used notes that it is used.
	read(schema.Server) (text []byte, used func(), err error)
	write(schema.Server, []byte) error
	// Check returns why nothing can be kept, nil if it can. It makes the directory.
	Check() error
}

// New returns the store in a directory, which is made when the first listing is kept.
func New(dir string) *Store { return &Store{&directory{path: dir}} }

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

// largest is the largest file that is kept or read, in bytes: four messages of the
// largest size that servers may send by default.
const largest = 64 << 20

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
	keys := slices.AppendSeq([]string{}, maps.Keys(m)) // nil would be another key
	slices.Sort(keys)
	return keys
}

// Remedy says what to do about an error of Check or Load.
func Remedy(err error) string {
	switch {
	case errors.Is(err, errCorrupt), errors.Is(err, errOlder):
		return "it is written again when the server starts, or now by dynmcp warm"
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
	text, used, err := s.read(server)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var stored *catalog.Stored
	if err == nil {
		stored, err = decode(text)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.where(server), err)
	}
	used()
	return stored, nil
}

// Keep keeps what a server listed, in the place of what it listed before. Of a list
// that could not be had the entries of before stay. What a newer dynmcp has written is
// left as it is.
func (s *Store) Keep(server schema.Server, l *catalog.Listing) error {
	if s == nil {
		return nil
	}
	before, used, err := s.read(server)
	switch {
	case err == nil:
		stored, err := decode(before)
		if errors.Is(err, errNewer) {
			return fmt.Errorf("%s: %w", s.where(server), err)
		}
		if stored != nil {
			l = withoutGaps(l, stored)
		}
	case errors.Is(err, kv.ErrUnavailable):
		return err
	}
	text, err := encode(server.Name, l)
	switch {
	case err != nil:
		return err
	case bytes.Equal(text, before):
		used()
		return nil
	case len(text) > largest:
		return fmt.Errorf("the listing of %s is larger than %d MB", server.Name, largest>>20)
	}
	return s.write(server, text)
}

// What none has read or written for so long is removed, from a bucket by itself. Its age is
// that of its last modification, which each use renews.
const (
	unused  = 90 * 24 * time.Hour
	renewed = 7 * 24 * time.Hour
)

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
