// Package kv defines stores of the records that replicas share.
//
// There are two: that of package natskv, and that of package memkv for tests. Both pass the
// tests of kvtest.
package kv

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/dynmcp/dynmcp/internal/records"
)

// A Store is a set of buckets. Its methods and those of its buckets may be called from
// many goroutines.
type Store interface {
	// Bucket returns the bucket of a name, and creates it if absent.
	Bucket(ctx context.Context, name string) (records.Bucket, error)
	// Connected reports whether the store can be reached, as far as known.
	Connected() bool
	// OnConnected sets the function that is called, from one goroutine, when Connected has
	// changed. It must not block. It is set before the first call of Bucket.
	OnConnected(func(connected bool))
	// Close ends the watches. Later calls return records.ErrUnavailable.
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
