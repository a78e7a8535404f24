// Package records defines the records that the replicas of a cluster share, each with a revision, and
// with a total order of the changes of a bucket.
//
// There are two stores: that of package natskv, and that of package memkv for tests. Both pass the
// tests of kvtest.
package records

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// Errors of buckets.
var (
	// ErrNotFound means that there is no such record.
	ErrNotFound = errors.New("there is no such record")
	// ErrConflict means that the record is not at the given revision, or that it already
	// exists: this call changed nothing. (An earlier call whose answer was lost may have.)
	ErrConflict = errors.New("somebody else has changed the record")
	// ErrUnavailable means that the store cannot be reached now. The change may or may not
	// have been made.
	ErrUnavailable = errors.New("the cluster's state cannot be reached")
)

// A Record is a value at one revision.
type Record struct {
	Key      string
	Value    []byte    // nil in a Watch means that the record was deleted
	Revision uint64    // of the bucket: it increases with every change of any record
	Written  time.Time // time of the change, by the clock of the store
}

// A Store is a set of buckets. Its methods and those of its buckets may be called from
// many goroutines.
type Store interface {
	// Bucket returns the bucket of a name, and creates it if absent.
	Bucket(ctx context.Context, name string) (Bucket, error)
	// Connected reports whether the store can be reached, as far as known.
	Connected() bool
	// OnConnected sets the function that is called, from one goroutine, when Connected has
	// changed. It must not block. It is set before the first call of Bucket.
	OnConnected(func(connected bool))
	// Close ends the watches. Later calls return ErrUnavailable.
	io.Closer
}

// MaxValue is the largest size of a value, in bytes.
const MaxValue = 64 << 20

// Check returns why a record cannot have this key and value, nil if it can.
func Check(key string, value []byte) error {
	const others = "-_./="
	other := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune(others, r)
	}
	switch {
	case key == "", len(key) > 512, strings.ContainsFunc(key, other), key[0] == '.', key[len(key)-1] == '.', strings.Contains(key, ".."):
		return fmt.Errorf("%q is no key of a record", key)
	case len(value) > MaxValue:
		return fmt.Errorf("the value of %s has %d bytes, more than %d MB", key, len(value), MaxValue>>20)
	}
	return nil
}

// A Bucket is a set of records with a total order of changes. Keys are up to 512 letters, digits and
// the characters - _ . / =, without dots at either end or two in succession; values are up to
// MaxValue. Errors are those above, or report an invalid key or value.
type Bucket interface {
	// Get returns a record as of its last change, never an earlier one, or ErrNotFound.
	Get(ctx context.Context, key string) (Record, error)
	// Create creates an absent record, or returns ErrConflict.
	Create(ctx context.Context, key string, value []byte) (revision uint64, err error)
	// Update changes a record at a revision, or returns ErrConflict. A deleted record is
	// created again by Create; Update at the revision of the deletion is undefined.
	Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error)
	// Put changes or creates a record, whatever its revision.
	Put(ctx context.Context, key string, value []byte) (uint64, error)
	// Delete deletes a record at a revision, or returns ErrConflict. Revision 0 means any;
	// a missing record is then not an error.
	Delete(ctx context.Context, key string, revision uint64) error
	// WithTTL returns the same bucket. Records written through the returned one expire after a
	// time to live, a second at least, unless they are rewritten before. Expiry is not a
	// change of the bucket and is not reported to watches.
	WithTTL(ttl time.Duration) Bucket
	// Watch calls changed for every record whose key begins with prefix, then ready, once, then
	// changed for every change. It calls them from one goroutine and in the order of the
	// bucket's revisions: no call for an earlier revision follows one for a later one. Before ready
	// it reports at least the records that existed when Watch was called, and possibly
	// deletions. Of several changes of a record it may report only the last. changed may keep
	// the values; ready may be nil. Watch returns the error of ctx when ctx ends, or another
	// one if it cannot continue; a new call starts from scratch. It continues after a time in
	// which the store could not be reached.
	Watch(ctx context.Context, prefix string, changed func(Record), ready func()) error
}

// List returns the present records of a bucket whose keys begin with prefix, by key. The error is
// that of ctx, or a read error.
func List(ctx context.Context, b Bucket, prefix string) (map[string]Record, error) {
	watching, enough := context.WithCancel(ctx)
	defer enough()
	list := map[string]Record{}
	ready := false
	err := b.Watch(watching, prefix, func(e Record) {
		switch {
		case ready:
		case e.Value == nil:
			delete(list, e.Key)
		default:
			list[e.Key] = e
		}
	}, func() {
		ready = true
		enough()
	})
	if !ready {
		return nil, cmp.Or(context.Cause(ctx), err)
	}
	return list, nil
}
