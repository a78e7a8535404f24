// Package store keeps listings between runs, a file for each server, so that a server is
// known without being started. Replicas of one service share a record for each.
//
// A file is replaced in one step, by the process that has listed the server last, and is
// read whole: readers see one listing or another, never a part. A file that is damaged or
// not ours is an error for its server, and for no other.
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
	"strings"
	"time"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/records"
	"github.com/dynmcp/dynmcp/schema"
)

// Listings are a directory of listings, or a bucket of the state that the replicas of one
// service share, see [Shared].
type Listings struct{ backend }

// A backend stores texts.
type backend interface {
	// where names the place of a server's listing.
	where(schema.Server) string
	// read returns the text, or fs.ErrNotExist. The caller calls used if it uses the text.
	read(schema.Server) (text []byte, used func(), err error)
	write(schema.Server, []byte) error
	// writeFailure, readFailure and clearFailure are for the reason why the last start failed.
	writeFailure(server schema.Server, why string) error
	readFailure(schema.Server) (why string, at time.Time)
	clearFailure(schema.Server)
	// Check returns why nothing can be stored, nil if it can. It creates the directory.
	Check() error
}

// New returns the store in a directory, which the first Keep creates.
func New(dir string) *Listings { return &Listings{&directory{path: dir}} }

// Of returns the store that a config names, otherwise that in dir. It is nil, which stores
// nothing, if that is "" or the config disables the store. In single-wrap mode nothing is
// stored, because the server is started at once and waited for.
func Of(cfg *schema.Config, dir string) *Listings {
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

// largest is the largest file that is written or read, in bytes: four messages of the largest
// size that servers may send by default.
const largest = 64 << 20

// Key returns the key of a server's listing: a hash of the name and of what is started or
// reached, without secrets. Of variables and headers only the names count. So a new password
// does not change the key; two accounts at one server are two entries of a config.
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
		return "it is written again when the server starts, or now by dynmcp test --store"
	case errors.Is(err, errNewer):
		return "update this dynmcp, or remove the file if the newer one is not used any more"
	case errors.Is(err, errForeign):
		return "remove it, or make it yours alone (chown, chmod go-w)"
	}
	return "make it readable and writable for you, or name another directory in catalog.dir of the config"
}

// Load returns the stored listing of a server, nil without an error if there is none.
func (s *Listings) Load(server schema.Server) (*catalog.Stored, error) {
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

// Keep stores a server's listing in place of the one before. A list that failed keeps its
// entries. A listing that a newer dynmcp has written stays, and is an error.
func (s *Listings) Keep(server schema.Server, l *catalog.Listing) error {
	if s == nil {
		return nil
	}
	s.clearFailure(server)
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
	case errors.Is(err, records.ErrUnavailable):
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

// A Failure is how the last start of a server failed, of a server that was not listed since.
type Failure struct {
	Why    string // one line; "" if it did not fail
	At     time.Time
	Waited time.Duration // that a session waited for the start, if the start had not ended then
}

// KeepFailure stores how the last start of a server failed, until its next listing is kept. A bucket
// stores none: replicas show it while they run.
func (s *Listings) KeepFailure(server schema.Server, f Failure) error {
	if s == nil {
		return nil
	}
	text, _, _ := strings.Cut(f.Why, "\n")
	if f.Waited > 0 {
		text += "\n" + f.Waited.String()
	}
	return s.writeFailure(server, text)
}

// Failure returns how the last start of a server failed.
func (s *Listings) Failure(server schema.Server) Failure {
	if s == nil {
		return Failure{}
	}
	text, at := s.readFailure(server)
	why, waited, _ := strings.Cut(text, "\n")
	f := Failure{Why: why, At: at}
	f.Waited, _ = time.ParseDuration(waited) // 0 if there is none
	return f
}

// A listing that was not used for so long is removed; a bucket does so by itself. Its age is
// the time since the last modification, which a use renews after some days.
const (
	unused  = 90 * 24 * time.Hour
	renewed = 7 * 24 * time.Hour
)

// withoutGaps returns a listing in which the lists that failed have the entries of before.
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
