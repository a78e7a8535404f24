package store

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/kv"
	"github.com/dynmcp/dynmcp/schema"
)

// A bucket has a record for each listing, with the text of the file that it would be.
type bucket struct {
	kv.Bucket

	mu   sync.Mutex
	seen map[string]uint64 // the revision of what was read or kept here, by key
}

// Shared returns the store of the replicas that share a bucket; nil, which keeps nothing,
// where the config turns keeping off.
func Shared(cfg *schema.Config, shared kv.Bucket) *Store {
	if off := cfg.Catalog.Dir; cfg.SingleWrap || off != nil && *off == "" {
		return nil
	}
	return &Store{&bucket{Bucket: shared.WithTTL(unused), seen: map[string]uint64{}}}
}

func (b *bucket) where(server schema.Server) string { return "the record of " + server.Name }

func (b *bucket) Check() error { return nil }

func (b *bucket) read(server schema.Server) ([]byte, func(), error) {
	e, err := b.Get(context.Background(), Key(server))
	if errors.Is(err, kv.ErrNotFound) {
		err = fs.ErrNotExist
	}
	return e.Value, func() {
		b.note(e.Key, e.Revision)
		if time.Since(e.Written) < renewed {
			return
		}
		// If it cannot be, another replica has, or it is written again one day.
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

// note notes what is known here, and reports whether it was not.
func (b *bucket) note(key string, revision uint64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	newer := revision > b.seen[key]
	b.seen[key] = max(revision, b.seen[key])
	return newer
}

// Watch calls listed with what is in the bucket, and then with each listing that another
// replica keeps, but for what was read or kept by this Store, until ctx ends or, with an
// error, the watch does. It is told as well of what cannot be read, with the error. A store
// that is no bucket has nothing to tell.
func (s *Store) Watch(ctx context.Context, listed func(key string, stored *catalog.Stored, err error)) error {
	if s == nil {
		return nil
	}
	b, ok := s.backend.(*bucket)
	if !ok {
		return nil
	}
	return b.Watch(ctx, "", func(e kv.Entry) {
		if e.Value == nil || !b.note(e.Key, e.Revision) {
			return
		}
		stored, err := decode(e.Value)
		listed(e.Key, stored, err)
	}, nil)
}

// Check returns why a record of a bucket is no listing. One that a newer dynmcp has written,
// or an older one, is.
func Check(e kv.Entry) error {
	_, err := decode(e.Value)
	if errors.Is(err, errNewer) || errors.Is(err, errOlder) {
		return nil
	}
	return err
}
