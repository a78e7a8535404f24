package oauth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dynmcp/dynmcp/cluster/kv"
	"github.com/dynmcp/dynmcp/internal/seal"
)

// NewShared returns the store of the replicas that share a bucket. Logins are sealed with
// their keys: who reads the bucket learns nothing but how many there are.
func NewShared(bucket kv.Bucket, keys *seal.Keys) *Store {
	return &Store{&shared{bucket, keys, lockValid, lockFree}}
}

// shared keeps the logins of a key, at all issuers, in one record, and its lock in another.
type shared struct {
	bucket      kv.Bucket
	keys        *seal.Keys
	valid, free time.Duration // of a lock
}

func (s *shared) Place() string { return "in the state of the cluster, sealed with its key" }

func (s *shared) record(kind string, key Key) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{key.Server, key.Resource, key.Client}, "\n")))
	return fmt.Sprintf("%s/%x", kind, sum)
}

func (s *shared) read(key Key) ([]*record, error) {
	all, _, err := s.get(context.Background(), key)
	return all, err
}

// get returns the records of a key, and the revision of what has them, 0 if there is
// none. What no key of ours opens, or nobody can read, is none.
func (s *shared) get(ctx context.Context, key Key) (all []*record, revision uint64, err error) {
	name := s.record("login", key)
	e, err := s.bucket.Get(ctx, name)
	if errors.Is(err, kv.ErrNotFound) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("the login of %s: %w", key.Server, err)
	}
	text, err := s.keys.Open("login "+name, e.Value)
	if err != nil || json.Unmarshal(text, &all) != nil {
		return nil, e.Revision, nil
	}
	return all, e.Revision, nil
}

func (s *shared) open(r *record) (*Login, error) {
	r.Login.Secrets = *r.Plain
	return &r.Login, nil
}

// saveTime is how long a login that was just made or refreshed is tried to be kept. The
// token before it is worth nothing any more, so nobody else is to use that.
const saveTime = 20 * time.Second

func (s *shared) Save(key Key, l *Login) error {
	ctx, cancel := context.WithTimeout(context.Background(), saveTime)
	defer cancel()
	name := s.record("login", key)
	for {
		all, revision, err := s.get(ctx, key)
		if err == nil {
			all = slices.DeleteFunc(all, func(r *record) bool { return r.Login.Issuer == l.Issuer })
			all = append(all, recordOf(l))
			slices.SortStableFunc(all, lastFirst)
			var text []byte
			if text, err = json.Marshal(all); err != nil {
				return err
			}
			if sealed := s.keys.Seal("login "+name, text); revision == 0 {
				_, err = s.bucket.Create(ctx, name, sealed)
			} else {
				_, err = s.bucket.Update(ctx, name, sealed, revision)
			}
		}
		if !errors.Is(err, kv.ErrConflict) && !errors.Is(err, kv.ErrUnavailable) {
			return err
		}
		select {
		case <-time.After(lockPause):
		case <-ctx.Done():
			return err
		}
	}
}

func (s *shared) Delete(key Key) (was bool, err error) {
	ctx := context.Background()
	name := s.record("login", key)
	e, err := s.bucket.Get(ctx, name)
	if errors.Is(err, kv.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, s.bucket.Delete(ctx, name, e.Revision)
}

// A lock is a record with the name of who has it, who writes it again every second. It
// is free when it has been the same for a time by the clock of whoever wants it, which is
// longer than its holder goes on without having written: so nobody's clock is compared
// with another's, and one that is cut off has stopped before somebody else begins.
const (
	lockPause = 100 * time.Millisecond
	lockBeat  = time.Second
	lockValid = 4 * time.Second // from when what was written last was sent
	lockFree  = 6 * time.Second
)

// Lock returns a context that ends when the lock is not held any more.
func (s *shared) Lock(ctx context.Context, key Key) (held context.Context, unlock func(), err error) {
	name, owner := s.record("lock", key), []byte(rand.Text())
	var seen uint64 // the revision of another's lock
	var since time.Time
	for {
		e, err := s.bucket.Get(ctx, name)
		sent := time.Now()
		var revision uint64
		switch {
		case errors.Is(err, kv.ErrNotFound):
			revision, err = s.bucket.Create(ctx, name, owner)
		case err != nil:
			seen = 0 // who has it may be cut off as we are
		case string(e.Value) == string(owner): // the answer was lost
			revision, err = s.bucket.Update(ctx, name, owner, e.Revision)
		case e.Revision != seen:
			seen, since = e.Revision, sent
		case sent.Sub(since) >= s.free:
			revision, err = s.bucket.Update(ctx, name, owner, e.Revision)
		}
		if revision != 0 && err == nil {
			held, unlock = s.hold(ctx, name, owner, revision, sent)
			return held, unlock, nil
		}
		if err != nil && !errors.Is(err, kv.ErrConflict) && !errors.Is(err, kv.ErrUnavailable) {
			return nil, nil, err
		}
		select {
		case <-time.After(lockPause):
		case <-ctx.Done():
			if err != nil {
				return nil, nil, fmt.Errorf("the lock on the login of %s: %w", key.Server, err)
			}
			return nil, nil, fmt.Errorf("another replica holds the lock on the login of %s: %w", key.Server, ctx.Err())
		}
	}
}

// hold writes a lock again and again until unlock is called or it is lost.
func (s *shared) hold(ctx context.Context, name string, owner []byte, revision uint64, sent time.Time) (held context.Context, unlock func()) {
	held, lose := context.WithCancel(ctx)
	expires := time.AfterFunc(s.valid-time.Since(sent), lose)
	over, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer lose()
		for {
			select {
			case <-time.After(lockBeat):
			case <-over.Done():
				return
			}
			sent := time.Now()
			next, err := s.bucket.Update(over, name, owner, revision)
			if errors.Is(err, kv.ErrConflict) { // an answer was lost, or it is somebody else's
				e, failed := s.bucket.Get(over, name)
				switch {
				case failed == nil && string(e.Value) == string(owner):
					revision = e.Revision
				case failed == nil, errors.Is(failed, kv.ErrNotFound):
					return
				}
			}
			if err == nil {
				revision = next
				if !expires.Stop() {
					return
				}
				expires.Reset(s.valid - time.Since(sent))
			}
		}
	}()
	return held, func() {
		stop()
		<-done
		expires.Stop()
		// If it cannot be deleted it is free by itself, after a while.
		if s.bucket.Delete(context.Background(), name, revision) != nil {
			if e, err := s.bucket.Get(context.Background(), name); err == nil && string(e.Value) == string(owner) {
				_ = s.bucket.Delete(context.Background(), name, e.Revision)
			}
		}
	}
}
