package store

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/records"
	"github.com/dynmcp/dynmcp/schema"
)

// A bucket has a record for each listing, in the format of a file.
type bucket struct {
	records.Bucket

	mu   sync.Mutex
	seen map[string]uint64 // key → newest revision read or written here
}

// Shared returns the store of the replicas that share a bucket. It is nil, which stores
// nothing, if the config disables the store.
func Shared(cfg *schema.Config, shared records.Bucket) *Listings {
	if off := cfg.Catalog.Dir; cfg.SingleWrap || off != nil && *off == "" {
		return nil
	}
	return &Listings{&bucket{Bucket: shared.WithTTL(unused), seen: map[string]uint64{}}}
}

func (b *bucket) where(server schema.Server) string { return "the record of " + server.Name }

func (b *bucket) Check() error { return nil }

func (b *bucket) read(server schema.Server) ([]byte, func(), error) {
	e, err := b.Get(context.Background(), Key(server))
	if errors.Is(err, records.ErrNotFound) {
		err = fs.ErrNotExist
	}
	return e.Value, func() {
		b.note(e.Key, e.Revision)
		if time.Since(e.Written) < renewed {
			return
		}
		// On failure another replica has renewed it, or it is written again one day.
		if revision, err := b.Update(context.Background(), e.Key, e.Value, e.Revision); err == nil {
			b.note(e.Key, revision)
		}
	}, err
}

func (b *bucket) write(server schema.Server, text []byte) error {
	key := Key(server)
	revision, err := b.Put(context.Background(), key, text)
	if err == nil {
		b.note(key, revision)
	}
	return err
}

func (b *bucket) writeFailure(schema.Server, string) error             { return nil }
func (b *bucket) readFailure(schema.Server) (why string, at time.Time) { return "", at }
func (b *bucket) clearFailure(schema.Server)                           {}

// note records a revision that is known here, and reports whether it is new.
func (b *bucket) note(key string, revision uint64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	newer := revision > b.seen[key]
	b.seen[key] = max(revision, b.seen[key])
	return newer
}

// Watch calls listed for each record of the bucket, and then for each that another replica
// writes, but not for those that this Store has read or written. A record that cannot be
// decoded is passed with its error. Watch returns when ctx ends, or with an error if the
// watch fails; at once for a store without a bucket.
func (s *Listings) Watch(ctx context.Context, listed func(key string, stored *catalog.Stored, err error)) error {
	if s == nil {
		return nil
	}
	b, ok := s.backend.(*bucket)
	if !ok {
		return nil
	}
	return b.Watch(ctx, "", func(e records.Record) {
		if e.Value == nil || !b.note(e.Key, e.Revision) {
			return
		}
		stored, err := decode(e.Value)
		listed(e.Key, stored, err)
	}, nil)
}

// Check returns an error if a record of a bucket is not a listing. Formats of newer and older
// versions are accepted.
func Check(e records.Record) error {
	_, err := decode(e.Value)
	if errors.Is(err, errNewer) || errors.Is(err, errOlder) {
		return nil
	}
	return err
}
