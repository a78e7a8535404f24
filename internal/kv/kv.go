// Package kv is the state that replicas share: records by name, each with a revision,
// and the order in which all changes of a bucket were made.
//
// There are two stores: that of package natskv, and that of package memkv for tests. One
// set of tests, kvtest, says what both do.
package kv

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
	// ErrNotFound says that there is no such record.
	ErrNotFound = errors.New("there is no such record")
	// ErrConflict says that the record is not at the revision that was named, or that
	// there is one already: this call changed nothing. (An earlier call whose answer was
	// lost may have.)
	ErrConflict = errors.New("somebody else has changed the record")
	// ErrUnavailable says that the store cannot be reached now. It is not known whether a
	// change was made.
	ErrUnavailable = errors.New("the cluster's state cannot be reached")
)

// An Entry is a record at one revision.
type Entry struct {
	Key      string
	Value    []byte    // nil in a Watch says that the record was deleted
	Revision uint64    // of the bucket: a later change of any record has a higher one
	Written  time.Time // when it was changed, by the clock of the store
}

// A Store is a set of buckets. Its methods and those of its buckets may be called from
// many goroutines.
type Store interface {
	// Bucket returns the bucket of a name, which is created if absent.
	Bucket(ctx context.Context, name string) (Bucket, error)
	// Connected reports whether the store can be reached, as far as is known.
	Connected() bool
	// OnConnected sets the function that is called, from one goroutine, when Connected has
	// changed. It must not block. It is set before the first call of Bucket.
	OnConnected(func(connected bool))
	// Close ends the watches. Later calls return ErrUnavailable.
	io.Closer
}

// MaxValue is how large a value may be, in bytes.
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

// A Bucket is a set of records in one order. Keys are up to 512 letters, digits and the
// characters - _ . / =, without dots at either end or two in succession; values are up
// to MaxValue. Errors are those above, or say what is wrong with a key or a value.
type Bucket interface {
	// Get returns a record as its last change left it, not an earlier state, or
	// ErrNotFound.
	Get(ctx context.Context, key string) (Entry, error)
	// Create creates a record that is not there, or returns ErrConflict.
	Create(ctx context.Context, key string, value []byte) (revision uint64, err error)
	// Update changes a record that is at a revision, or returns ErrConflict. A deleted
	// record is created again by Create; Update at the revision of the deletion is undefined.
	Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error)
	// Put changes or creates a record, whatever its revision.
	Put(ctx context.Context, key string, value []byte) (uint64, error)
	// Delete deletes a record that is at a revision, or returns ErrConflict. Revision 0
	// is any, and a missing record is no error then.
	Delete(ctx context.Context, key string, revision uint64) error
	// WithTTL returns the same bucket. Records that are written through the returned one
	// expire after a time to live, a second at least, unless they are written again before.
	// Their expiry is no change of the bucket and is not reported to watches.
	WithTTL(ttl time.Duration) Bucket
	// Watch calls changed for every record whose key begins with prefix, then ready,
	// once, then changed for every change, from one goroutine and in the order of their
	// revisions, which is that of the bucket: after a call for one revision there is none
	// for an earlier one. Before ready comes at least what was there when Watch was called;
	// deletions may be among it. Of several changes of a record only the last may come.
	// Values are the caller's; ready may be nil. Watch returns the error of ctx when that
	// ends, or another one if it cannot go on: another call begins with nothing. It goes on
	// after a time in which the store could not be reached.
	Watch(ctx context.Context, prefix string, changed func(Entry), ready func()) error
}

// List returns the records of a bucket whose keys begin with prefix, as they are now, by
// key. The error is that of ctx, or says why they cannot be read.
func List(ctx context.Context, b Bucket, prefix string) (map[string]Entry, error) {
	watching, enough := context.WithCancel(ctx)
	defer enough()
	list := map[string]Entry{}
	ready := false
	err := b.Watch(watching, prefix, func(e Entry) {
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
