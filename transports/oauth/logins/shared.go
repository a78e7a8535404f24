package logins

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/dynmcp/dynmcp/internal/records"
	"github.com/dynmcp/dynmcp/internal/seal"
)

// NewShared returns the store of the replicas that share a bucket. Logins are sealed with the
// cluster's keys: the bucket reveals only their number. A login that cannot be opened is
// treated as absent, and its record is logged.
//
// hold is how long a replica may have a lock, [LockTime] but for a test on a slow machine.
func NewShared(bucket records.Bucket, keys *seal.Keys, hold time.Duration, log *slog.Logger) *Store {
	return &Store{&shared{bucket, keys, log, hold}}
}

// Shared returns the bucket that replicas share, and the keys that seal its records; nil for files.
func (s *Store) Shared() (records.Bucket, *seal.Keys) {
	if in, ok := s.backend.(*shared); ok {
		return in.bucket, in.keys
	}
	return nil, nil
}

// Check returns why a record of a bucket is neither a login that these keys open nor a lock.
func Check(keys *seal.Keys, e records.Record) error {
	if strings.HasPrefix(e.Key, "lock/") {
		return checkLock(e.Value)
	}
	_, err := openRecords(keys, e)
	return err
}

func openRecords(keys *seal.Keys, e records.Record) (all []*record, err error) {
	text, err := keys.Open("login "+e.Key, e.Value)
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	return all, err
}

// shared stores the logins of a key, at all issuers, in one record, and its lock in another.
type shared struct {
	bucket records.Bucket
	keys   *seal.Keys
	log    *slog.Logger
	hold   time.Duration
}

func (s *shared) Place() string { return "in the state of the cluster, sealed with its key" }

func (s *shared) Stamp() int64 { return 0 }

func (s *shared) record(kind string, key Key) string {
	sum := sha256.Sum256(key.digested())
	return fmt.Sprintf("%s/%x", kind, sum)
}

func (s *shared) read(key Key) ([]*record, error) {
	all, _, err := s.get(context.Background(), key)
	return all, err
}

// get returns the records of a key and their revision, 0 if absent. A record that our keys do
// not open is treated as absent.
func (s *shared) get(ctx context.Context, key Key) (all []*record, revision uint64, err error) {
	name := s.record("login", key)
	e, err := s.bucket.Get(ctx, name)
	if errors.Is(err, records.ErrNotFound) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("the login of %s: %w", key.Server, err)
	}
	if all, err = openRecords(s.keys, e); err != nil {
		s.log.Warn("the record of a login is broken: log in again", "upstream", key.Server, "key", name, "err", err)
		return nil, e.Revision, nil
	}
	return all, e.Revision, nil
}

func (s *shared) open(r *record) (*Login, error) {
	r.Login.Secrets = *r.Plain
	return &r.Login, nil
}

// saveTime is how long Save tries to store a new or refreshed login. The previous token may
// already be invalid, so nobody else may use it.
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
			slices.SortStableFunc(all, newestFirst)
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
		if !errors.Is(err, records.ErrConflict) && !errors.Is(err, records.ErrUnavailable) {
			return err
		}
		select {
		case <-time.After(Pause):
		case <-ctx.Done():
			return err
		}
	}
}

func (s *shared) Delete(key Key) (was bool, err error) {
	ctx := context.Background()
	name := s.record("login", key)
	e, err := s.bucket.Get(ctx, name)
	if errors.Is(err, records.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, s.bucket.Delete(ctx, name, e.Revision)
}

// A lock is a record that only one replica can create and that expires by itself. The
// compare-and-set of the login alone is not enough: two replicas would both send the refresh
// token before either stores the answer, and a server that accepts a token once would end the
// login. So a replica creates the record before it sends the token. The others cannot create
// it, wait, and read the stored login.
//
// The holder stops LockTime after its request for the record, which is longer than a refresh
// may take; NATS removes the record lockMargin later than that after it was written. So clocks
// are never compared, and a holder that is cut off stops before the next one begins.
const (
	LockTime   = 12 * time.Second
	lockMargin = 3 * time.Second
)

// Lock returns a context that ends with the time of the lock.
func (s *shared) Lock(ctx context.Context, key Key) (held context.Context, unlock func(), err error) {
	name := s.record("lock", key)
	for {
		sent := time.Now()
		revision, err := s.bucket.WithTTL(s.hold+lockMargin).Create(ctx, name, []byte(rand.Text()))
		if err == nil {
			held, end := context.WithDeadline(ctx, sent.Add(s.hold))
			return held, func() {
				end()
				// If the deletion fails, the lock expires.
				_ = s.bucket.Delete(context.Background(), name, revision)
			}, nil
		}
		if errors.Is(err, records.ErrConflict) {
			s.removeBroken(ctx, name)
		} else if !errors.Is(err, records.ErrUnavailable) {
			return nil, nil, err
		}
		select {
		case <-time.After(Pause):
		case <-ctx.Done():
			if !errors.Is(err, records.ErrConflict) {
				return nil, nil, fmt.Errorf("the lock on the login of %s: %w", key.Server, err)
			}
			return nil, nil, fmt.Errorf("another replica holds the lock on the login of %s: %w", key.Server, ctx.Err())
		}
	}
}

// removeBroken removes a broken record in place of a lock, which might not expire.
func (s *shared) removeBroken(ctx context.Context, name string) {
	if e, err := s.bucket.Get(ctx, name); err == nil && checkLock(e.Value) != nil {
		_ = s.bucket.Delete(ctx, name, e.Revision) // or the next attempt does
	}
}

// checkLock returns why a value is not a lock.
func checkLock(value []byte) error {
	if len(value) != len(rand.Text()) || strings.Trim(string(value), "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") != "" {
		return errors.New("not written by a replica")
	}
	return nil
}
