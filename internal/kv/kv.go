// Package kv is the state that replicas share: records by name, each with a revision,
// and the order in which all changes of a bucket were made.
//
// There are two stores: [Memory], of one process, and that of package natskv. One set
// of tests, kvtest, says what both do.
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
	// there is one already: this call changed nothing. (One before it, whose answer was
	// lost, may have.)
	ErrConflict = errors.New("somebody else has changed the record")
	// ErrUnavailable says that the store cannot be reached now. Whether a change that
	// was asked for has been made is not known then.
	ErrUnavailable = errors.New("the cluster's state cannot be reached")
)

// An Entry is a record at one revision.
type Entry struct {
	Key      string
	Value    []byte    // nil in a Change says that the record was deleted
	Revision uint64    // of the bucket: a later change of any record has a higher one
	Written  time.Time // when it was changed, by the clock of whoever keeps it
}

// A Store is a set of buckets. Its methods and those of its buckets may be called from
// many goroutines.
type Store interface {
	// Bucket returns the bucket of a name, which is made if there is none.
	Bucket(ctx context.Context, name string) (Bucket, error)
	// Connected reports whether the store can be reached, as far as is known.
	Connected() bool
	// OnConnected sets what is called, from one goroutine, when Connected has changed. It
	// must not block. It is set before the first bucket is asked for.
	OnConnected(func(connected bool))
	// Close ends the watches. What is asked for later is ErrUnavailable.
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
	// Create makes a record that is not there, or returns ErrConflict.
	Create(ctx context.Context, key string, value []byte) (revision uint64, err error)
	// Update changes a record that is at a revision, or returns ErrConflict. One that was
	// deleted is made again by Create; what Update does at the revision of its deletion is
	// not said.
	Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error)
	// Put changes or makes a record, whatever its revision.
	Put(ctx context.Context, key string, value []byte) (uint64, error)
	// Delete deletes a record that is at a revision, or returns ErrConflict. Revision 0
	// is any, and that there is no record is no error then.
	Delete(ctx context.Context, key string, revision uint64) error
	// For returns the same bucket, in which records that are written by way of what it
	// returned are gone after a time, a second at least, if nobody has written them again
	// before. It is no change of the bucket, and who watches is not told.
	For(lasts time.Duration) Bucket
	// Watch calls changed for every record whose key begins with prefix, then ready,
	// once, then changed for every change, from one goroutine and in the order of their
	// revisions, which is that of the bucket: after it was called for one, nothing
	// earlier comes. Before ready comes at least what was there when Watch was called;
	// deletions may be among it. Of several changes of a record only the last may come.
	// Values are the caller's; ready may be nil. It returns when ctx ends, with its error, or with another
	// that says why it cannot go on: whoever calls it again begins with nothing. That a
	// store cannot be reached for a time is no reason.
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
