package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"dynmcp/catalog"
	"dynmcp/cluster/kv"
	"dynmcp/schema"
)

// In a bucket a listing is a record, with the text of the file that it would be.

func (s *Store) loadShared(server schema.Server) (*catalog.Stored, error) {
	e, err := s.bucket.Get(context.Background(), Key(server))
	if errors.Is(err, kv.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	stored, err := decode(e.Value)
	if err != nil {
		return nil, fmt.Errorf("the record of %s: %w", server.Name, err)
	}
	s.note(e.Key, e.Revision)
	s.renew(e)
	return stored, nil
}

// renew notes that a record is used, unless it has been noted lately.
func (s *Store) renew(e kv.Entry) {
	if time.Since(e.Written) < renewed {
		return
	}
	// If it cannot be, another replica has, or it is written anew one day.
	if revision, err := s.bucket.Update(context.Background(), e.Key, e.Value, e.Revision); err == nil {
		s.note(e.Key, revision)
	}
}

// note notes what is known here, and reports whether it was not.
func (s *Store) note(key string, revision uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	newer := revision > s.seen[key]
	s.seen[key] = max(revision, s.seen[key])
	return newer
}

func (s *Store) keepShared(server schema.Server, l *catalog.Listing) error {
	ctx := context.Background()
	e, err := s.bucket.Get(ctx, Key(server))
	switch {
	case err == nil:
		before, err := decode(e.Value)
		if errors.Is(err, errNewer) {
			return fmt.Errorf("the record of %s: %w", server.Name, err)
		}
		if before != nil {
			l = withoutGaps(l, before)
		}
	case !errors.Is(err, kv.ErrNotFound):
		return err
	}
	text, err := encode(server.Name, l)
	switch {
	case err != nil:
		return err
	case bytes.Equal(text, e.Value):
		s.renew(e)
		return nil
	case len(text) > largest:
		return fmt.Errorf("the listing of %s is larger than %d MB", server.Name, largest>>20)
	}
	revision, err := s.bucket.Put(ctx, Key(server), text)
	if err == nil {
		s.note(Key(server), revision)
	}
	return err
}

// Watch calls listed with what is in the bucket, and then with each listing that another
// replica keeps, but for what was read or kept by this Store, until ctx ends or, with an
// error, the watch does. What cannot be read is left out. A store that is no bucket has
// nothing to tell.
func (s *Store) Watch(ctx context.Context, listed func(key string, stored *catalog.Stored)) error {
	if s == nil || s.bucket == nil {
		return nil
	}
	return s.bucket.Watch(ctx, "", func(e kv.Entry) {
		if stored, err := decode(e.Value); err == nil && s.note(e.Key, e.Revision) {
			listed(e.Key, stored)
		}
	}, nil)
}
