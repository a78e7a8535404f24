// Package configs stores the config document that the replicas of a service share. Each push
// replaces it and counts as a new version. There is no history: a config is a file, and its
// history is kept with the file. The document is sealed with the cluster's key, because
// configs contain secrets.
package configs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/dynmcp/dynmcp/internal/records"
	"github.com/dynmcp/dynmcp/internal/seal"
)

// Errors of a Store.
var (
	ErrNone = errors.New("there is no config in the cluster yet")
	// ErrChanged means that another version was pushed meanwhile. Nothing was changed.
	ErrChanged = errors.New("somebody else has pushed a config meanwhile")
	// ErrKey means that the document was sealed with a key that we do not have, or was
	// changed without one.
	ErrKey = errors.New("the config in the cluster was not sealed with this cluster key")
)

// A Version is a config document as it was pushed.
type Version struct {
	Number int       `json:"version"` // counts from 1
	Name   string    `json:"name"`    // of the file; it selects JSON or YAML
	Text   string    `json:"text"`
	By     string    `json:"by"` // the user who pushed it, not verified
	At     time.Time `json:"at"`

	Broken bool `json:"-"` // the record is broken, and this is its copy
}

// A ConfigStore has the config document of a cluster.
type ConfigStore struct {
	bucket records.Bucket
	keys   *seal.Keys
}

// New returns the document in a bucket of its own.
func New(bucket records.Bucket, keys *seal.Keys) *ConfigStore { return &ConfigStore{bucket, keys} }

// current is the key of the current version, and copies the prefix of the key of its copy, which
// is read if the record of the current version is broken.
const (
	current = "current"
	copies  = "version/"
)

func copyOf(number int) string { return fmt.Sprintf("%s%08d", copies, number) }

// Current returns the version that replicas serve, or ErrNone.
func (s *ConfigStore) Current(ctx context.Context) (Version, error) {
	v, _, err := s.current(ctx)
	return v, err
}

func (s *ConfigStore) current(ctx context.Context) (Version, uint64, error) {
	entry, err := s.bucket.Get(ctx, current)
	if errors.Is(err, records.ErrNotFound) {
		return Version{}, 0, ErrNone
	}
	if err != nil {
		return Version{}, 0, err
	}
	v, err := s.open(entry)
	if err != nil {
		if kept, ok := s.copy(ctx); ok {
			return kept, entry.Revision, nil
		}
	}
	return v, entry.Revision, err
}

// copy returns the newest copy. If it cannot be opened either, the key is wrong.
func (s *ConfigStore) copy(ctx context.Context) (Version, bool) {
	list, err := records.List(ctx, s.bucket, copies)
	if err != nil || len(list) == 0 {
		return Version{}, false
	}
	v, err := s.open(list[slices.Max(slices.Collect(maps.Keys(list)))])
	v.Broken = true
	return v, err == nil
}

// AnyBase makes Push ignore the current version.
const AnyBase = -1

// Push makes a document the current version and returns it with its number and time, which the
// store sets. A document that is already current is sealed again and keeps its number;
// changed is then false. If the current version is not base, 0 for none, the error is
// ErrChanged.
func (s *ConfigStore) Push(ctx context.Context, v Version, base int) (pushed Version, changed bool, err error) {
	now, revision, err := s.current(ctx)
	if err != nil && !errors.Is(err, ErrNone) {
		return Version{}, false, err
	}
	if base != AnyBase && base != now.Number {
		return Version{}, false, fmt.Errorf("version %d is current, not %d: %w", now.Number, base, ErrChanged)
	}
	if changed = revision == 0 || now.Broken || now.Name != v.Name || now.Text != v.Text; changed {
		v.Number, v.At = now.Number+1, time.Now().UTC().Truncate(time.Second)
	} else {
		v = now
	}
	sealed, err := s.seal(current, v)
	if err != nil {
		return Version{}, false, err
	}
	if revision == 0 {
		_, err = s.bucket.Create(ctx, current, sealed)
	} else {
		_, err = s.bucket.Update(ctx, current, sealed, revision)
	}
	if errors.Is(err, records.ErrConflict) {
		return Version{}, false, ErrChanged
	}
	if err != nil {
		return Version{}, false, err
	}
	// It is current from here on, even if it has no copy.
	if sealed, err = s.seal(copyOf(v.Number), v); err == nil {
		_, err = s.bucket.Put(ctx, copyOf(v.Number), sealed)
	}
	if err == nil && changed {
		_ = s.bucket.Delete(ctx, copyOf(now.Number), 0)
	}
	return v, changed, nil
}

// Watch calls changed with the current version, once there is one, and with each that
// replaces it, until ctx ends. It calls failed for a record that cannot be opened, or is
// older than a previous one. If the first record cannot be opened, the copy is used. Both are
// called from one goroutine.
func (s *ConfigStore) Watch(ctx context.Context, changed func(Version), failed func(error)) error {
	last := 0
	return s.bucket.Watch(ctx, current, func(entry records.Record) {
		if entry.Key != current || entry.Value == nil {
			return
		}
		v, err := s.open(entry)
		switch {
		case err != nil:
			if kept, ok := s.copy(ctx); ok && last == 0 {
				last = kept.Number
				changed(kept)
			}
			failed(fmt.Errorf("the record %s: %w", entry.Key, err))
		case v.Number < last:
			failed(fmt.Errorf("version %d came after version %d, as if the cluster's state was restored from a backup: it takes effect at the next start", v.Number, last))
		case v.Number > last:
			last = v.Number
			changed(v)
		}
	}, nil)
}

// seal seals a version for one key: without the cluster's key no record can be copied to
// another key.
func (s *ConfigStore) seal(key string, v Version) ([]byte, error) {
	plain, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return s.keys.Seal("config "+key, plain), nil
}

// Check returns why these keys do not open a record as a version, nil if they do.
func Check(keys *seal.Keys, entry records.Record) error {
	_, err := New(nil, keys).open(entry)
	return err
}

func (s *ConfigStore) open(entry records.Record) (v Version, err error) {
	plain, err := s.keys.Open("config "+entry.Key, entry.Value)
	if err != nil {
		return Version{}, ErrKey
	}
	if err := json.Unmarshal(plain, &v); err != nil {
		return Version{}, fmt.Errorf("the config in the cluster: %w", err)
	}
	return v, nil
}
