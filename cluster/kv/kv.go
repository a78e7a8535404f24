// Package kv is the state that replicas share: records by name, each with a revision,
// and the order in which all changes of a bucket were made.
//
// There are two stores: [Memory], of one process, and that of package natskv. One set
// of tests, kvtest, says what both do.
package kv

import (
	"context"
	"errors"
	"io"
)

// Errors of buckets.
var (
	// ErrNotFound says that there is no such record.
	ErrNotFound = errors.New("there is no such record")
	// ErrConflict says that the record is not at the revision that was named, or that
	// there is one already: nothing was changed.
	ErrConflict = errors.New("somebody else has changed the record")
	// ErrUnavailable says that the store cannot be reached now. Whether a change that
	// was asked for has been made is not known then.
	ErrUnavailable = errors.New("the cluster's state cannot be reached")
)

// An Entry is a record at one revision.
type Entry struct {
	Key      string
	Value    []byte // nil in a Change says that the record was deleted
	Revision uint64 // of the bucket: a later change of any record has a higher one
}

// A Store is a set of buckets. Its methods and those of its buckets may be called from
// many goroutines.
type Store interface {
	// Bucket returns the bucket of a name, which is made if there is none.
	Bucket(ctx context.Context, name string) (Bucket, error)
	// Connected reports whether the store can be reached, as far as is known.
	Connected() bool
	// Changed is called, from one goroutine, when Connected has changed. It must not
	// block. It is set before the first bucket is asked for.
	OnConnected(func(connected bool))
	io.Closer
}

// A Bucket is a set of records in one order. Keys are letters, digits and the
// characters - _ . / =; values are up to 64 MB.
type Bucket interface {
	// Get returns a record as its last change left it, not an earlier state, or
	// ErrNotFound.
	Get(ctx context.Context, key string) (Entry, error)
	// Create makes a record that is not there, or returns ErrConflict.
	Create(ctx context.Context, key string, value []byte) (revision uint64, err error)
	// Update changes a record that is at a revision, or returns ErrConflict.
	Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error)
	// Put changes or makes a record, whatever its revision.
	Put(ctx context.Context, key string, value []byte) (uint64, error)
	// Delete deletes a record that is at a revision, or returns ErrConflict. Revision 0
	// is any.
	Delete(ctx context.Context, key string, revision uint64) error
	// Watch calls changed for every record whose key begins with prefix, then ready,
	// once, then changed for every change, from one goroutine and in the order of their
	// revisions, which is that of the bucket: after it was called for one, nothing
	// earlier comes. Of several changes of a record while the store could not be reached
	// only the last may come. It returns when ctx ends, or with an error that says why it
	// cannot go on; a store that cannot be reached for a time is none.
	Watch(ctx context.Context, prefix string, changed func(Entry), ready func()) error
}
