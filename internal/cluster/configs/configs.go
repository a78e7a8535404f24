// Package configs is the config document that the replicas of a service share. It has
// versions: each that was pushed, and each that was gone back to, is another one. What
// is kept is sealed with the cluster's key, since configs hold secrets.
package configs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dynmcp/dynmcp/internal/kv"
	"github.com/dynmcp/dynmcp/internal/seal"
)

// Kept is how many versions are kept, the current one too.
const Kept = 50

// Errors of a Store.
var (
	ErrNone    = errors.New("there is no config in the cluster yet")
	ErrVersion = errors.New("is not there")
	// ErrChanged says that somebody else pushed a version meanwhile. Nothing was changed.
	ErrChanged = errors.New("somebody else has pushed a config meanwhile")
	// ErrKey says that a version was sealed with a key that we do not have, or was changed
	// by somebody who has none.
	ErrKey = errors.New("the config in the cluster was not sealed with this cluster key")
)

// A Version is a config document as it was pushed.
type Version struct {
	Number     int       `json:"version"` // counts from 1
	Name       string    `json:"name"`    // of the file, which decides between JSON and YAML
	Text       string    `json:"text"`
	By         string    `json:"by"` // who pushed it, as they say themselves
	At         time.Time `json:"at"`
	Comment    string    `json:"comment,omitempty"`
	RolledBack int       `json:"rolled_back_to,omitempty"` // the version whose text this is again, 0 for none

	Broken bool `json:"-"` // the record of the current version is, and this is its copy
}

// A Store is the versions of a cluster.
type Store struct {
	bucket kv.Bucket
	keys   *seal.Keys
}

// New returns the versions that are in a bucket of their own.
func New(bucket kv.Bucket, keys *seal.Keys) *Store { return &Store{bucket, keys} }

// The current version is one record, so that who watches it gets it whole and in one
// step. A copy of each is kept beside it, for the history.
const current = "current"

func copyOf(number int) string { return fmt.Sprintf("version/%08d", number) }

// Current returns the version that replicas serve, or ErrNone.
func (s *Store) Current(ctx context.Context) (Version, error) {
	v, _, err := s.current(ctx)
	return v, err
}

func (s *Store) current(ctx context.Context) (Version, uint64, error) {
	entry, err := s.bucket.Get(ctx, current)
	if errors.Is(err, kv.ErrNotFound) {
		return Version{}, 0, ErrNone
	}
	if err != nil {
		return Version{}, 0, err
	}
	v, err := s.open(entry)
	if err != nil {
		if kept, ok := s.newestCopy(ctx); ok {
			return kept, entry.Revision, nil
		}
	}
	return v, entry.Revision, err
}

// newestCopy returns the last version that was kept: what there is to go on with where the
// record of the current one is broken. One that cannot be opened either says that we lack
// the key.
func (s *Store) newestCopy(ctx context.Context) (Version, bool) {
	copies, err := kv.List(ctx, s.bucket, "version/")
	if err != nil || len(copies) == 0 {
		return Version{}, false
	}
	v, err := s.open(copies[slices.Max(slices.Collect(maps.Keys(copies)))])
	v.Broken = true
	return v, err == nil
}

// AnyBase is for Push where it does not matter which version is current.
const AnyBase = -1

// Push makes a document the current version, and returns it with its number. The
// number, and when it was, are the store's. With another version than base, 0 for none, it
// is ErrChanged.
func (s *Store) Push(ctx context.Context, v Version, base int) (Version, error) {
	now, revision, err := s.current(ctx)
	if err != nil && !errors.Is(err, ErrNone) {
		return Version{}, err
	}
	if base != AnyBase && base != now.Number {
		return Version{}, fmt.Errorf("version %d is current, not %d: %w", now.Number, base, ErrChanged)
	}
	if revision > 0 {
		// Who pushed it may have been killed before it made the copy.
		if err := s.keepCopy(ctx, now); err != nil {
			return Version{}, err
		}
	}
	v.Number, v.At = now.Number+1, time.Now().UTC().Truncate(time.Second)
	sealed, err := s.seal(current, v)
	if err != nil {
		return Version{}, err
	}
	if revision == 0 {
		_, err = s.bucket.Create(ctx, current, sealed)
	} else {
		_, err = s.bucket.Update(ctx, current, sealed, revision)
	}
	if errors.Is(err, kv.ErrConflict) {
		return Version{}, ErrChanged
	}
	if err != nil {
		return Version{}, err
	}
	// It is current from here on, whatever becomes of the copy, which the next push makes
	// up for.
	if s.keepCopy(ctx, v) == nil && v.Number > Kept {
		_ = s.bucket.Delete(ctx, copyOf(v.Number-Kept), 0) // at most one is left too many
	}
	return v, nil
}

// Rollback makes the text of an earlier version current again, as another version.
func (s *Store) Rollback(ctx context.Context, number int, by, comment string) (Version, error) {
	old, err := s.Version(ctx, number)
	if err != nil {
		return Version{}, err
	}
	return s.Push(ctx, Version{Name: old.Name, Text: old.Text, By: by, Comment: comment, RolledBack: number}, AnyBase)
}

// Version returns a version, or ErrVersion where it was never there or is not kept any more.
func (s *Store) Version(ctx context.Context, number int) (Version, error) {
	entry, err := s.bucket.Get(ctx, copyOf(number))
	if err == nil {
		return s.open(entry)
	}
	if !errors.Is(err, kv.ErrNotFound) {
		return Version{}, err
	}
	now, err := s.Current(ctx)
	if err != nil && !errors.Is(err, ErrNone) {
		return Version{}, err
	}
	if now.Number != number || number == 0 {
		return Version{}, fmt.Errorf("version %d %w", number, ErrVersion)
	}
	return now, nil
}

// History returns the versions that are kept, the newest first, or ErrNone. One that
// cannot be opened has no text and no name.
func (s *Store) History(ctx context.Context) ([]Version, error) {
	now, err := s.Current(ctx)
	if err != nil {
		return nil, err
	}
	copies, err := kv.List(ctx, s.bucket, "version/")
	if err != nil {
		return nil, err
	}
	all := []Version{now}
	for key, entry := range copies {
		if key == copyOf(now.Number) {
			continue
		}
		v, err := s.open(entry)
		if err != nil {
			v = Version{Comment: err.Error()}
			_, _ = fmt.Sscanf(key, "version/%d", &v.Number)
		}
		all = append(all, v)
	}
	slices.SortFunc(all, func(a, b Version) int { return b.Number - a.Number })
	return all, nil
}

// Watch calls changed with the current version, once there is one, and with each that
// takes its place, until ctx ends. What cannot be opened, or is older than one that came
// before, is told to failed; where the first cannot be opened its copy takes its place.
// Both are called from one goroutine.
func (s *Store) Watch(ctx context.Context, changed func(Version), failed func(error)) error {
	last := 0
	return s.bucket.Watch(ctx, current, func(entry kv.Entry) {
		if entry.Key != current || entry.Value == nil {
			return
		}
		v, err := s.open(entry)
		switch {
		case err != nil:
			if kept, ok := s.newestCopy(ctx); ok && last == 0 {
				last = kept.Number
				changed(kept)
			}
			failed(fmt.Errorf("the record %s: %w", entry.Key, err))
		case v.Number < last:
			failed(fmt.Errorf("version %d came after version %d, as if the cluster's state was of another day: it is taken at the next start", v.Number, last))
		case v.Number > last:
			last = v.Number
			changed(v)
		}
	}, func() {})
}

func (s *Store) keepCopy(ctx context.Context, v Version) error {
	sealed, err := s.seal(copyOf(v.Number), v)
	if err != nil {
		return err
	}
	if _, err = s.bucket.Create(ctx, copyOf(v.Number), sealed); errors.Is(err, kv.ErrConflict) {
		return nil // it is there
	}
	return err
}

// What is sealed under one key does not open under another: no version can be put in the
// place of another one by who has no key.
func (s *Store) seal(key string, v Version) ([]byte, error) {
	plain, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return s.keys.Seal("config "+key, plain), nil
}

// Check returns why a record is no version that these keys open, nil if it is one.
func Check(keys *seal.Keys, entry kv.Entry) error {
	_, err := New(nil, keys).open(entry)
	return err
}

func (s *Store) open(entry kv.Entry) (v Version, err error) {
	plain, err := s.keys.Open("config "+entry.Key, entry.Value)
	if err != nil {
		return Version{}, ErrKey
	}
	if err := json.Unmarshal(plain, &v); err != nil {
		return Version{}, fmt.Errorf("the config in the cluster: %w", err)
	}
	if entry.Key != current && entry.Key != copyOf(v.Number) {
		return Version{}, errors.New("the config in the cluster: a version has the number of another one: " + strings.TrimPrefix(entry.Key, "version/"))
	}
	return v, nil
}
