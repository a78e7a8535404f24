package ask

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/dynmcp/dynmcp/internal/wire"
)

// A RootSet is the roots of a session's host, as far as known. The zero value is ready to
// use.
type RootSet struct {
	mu      sync.Mutex
	result  json.RawMessage // the host's answer, nil while unknown
	owner   string          // of the upstreams for these roots, "" while unknown
	last    string          // owner before that
	changes int             // announced by the host
	asking  chan struct{}   // closed when the host has answered or failed to; nil while no request is pending
}

// maxRoots limits the roots of one host, in bytes.
const maxRoots = 64 << 10

// Known returns the roots and the owner of the upstreams for them, "" while they are unknown.
func (r *RootSet) Known() (owner string, result json.RawMessage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.owner, r.result
}

// Set makes result the roots of a user's host.
func (r *RootSet) Set(user string, result json.RawMessage) error {
	_, err := r.SetIf(r.Changes(), user, result)
	return err
}

// Changes returns how many changes the host has announced.
func (r *RootSet) Changes() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changes
}

// SetIf is Set if the host has announced no change since there were so many. It returns the
// owner of the upstreams for these roots in any case.
func (r *RootSet) SetIf(changes int, user string, result json.RawMessage) (owner string, err error) {
	if owner, err = rootsOwner(user, result); err != nil {
		return "", err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.changes == changes {
		r.result, r.owner = bytes.Clone(result), owner
	}
	return owner, nil
}

// rootsOwner returns the owner of the upstreams for the roots of a user's host.
func rootsOwner(user string, result json.RawMessage) (owner string, err error) {
	list := wire.Get(result, "roots")
	if len(list) == 0 || list[0] != '[' {
		return "", errors.New("the host's answer has no list of roots")
	}
	if len(result) > maxRoots {
		return "", fmt.Errorf("the host's roots: %d bytes are more than %d", len(result), maxRoots)
	}
	uris := map[string]bool{}
	for root := range wire.Elements(list) {
		uris[string(wire.Get(root, "uri"))] = true
	}
	h := sha256.New()
	fmt.Fprintf(h, "%q %q", user, slices.Sorted(maps.Keys(uris)))
	return fmt.Sprintf("roots %x", h.Sum(nil)[:8]), nil
}

// Forget makes the roots unknown, so that the host is asked again.
func (r *RootSet) Forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.owner != "" {
		r.last = r.owner
	}
	r.result, r.owner = nil, ""
	r.changes++
}

// Dropped returns, once, the owner of the upstreams for the previous roots, or if the host has left,
// for the present ones; "" if there are none.
func (r *RootSet) Dropped(left bool) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.last
	if left && r.owner != "" {
		last = r.owner
	}
	r.last = ""
	return last
}

// Learn asks the host for its roots, unless they are known or a request is pending.
func (r *RootSet) Learn(ctx context.Context, user string, ask func(context.Context) (json.RawMessage, error)) error {
	for {
		r.mu.Lock()
		asking, changes := r.asking, r.changes
		if r.result != nil {
			r.mu.Unlock()
			return nil
		}
		if asking == nil {
			r.asking = make(chan struct{})
		}
		r.mu.Unlock()
		if asking != nil {
			select {
			case <-asking:
			case <-ctx.Done():
				return ctx.Err()
			}
			continue
		}
		result, err := ask(ctx)
		if err == nil {
			_, err = r.SetIf(changes, user, result)
		}
		r.mu.Lock()
		close(r.asking)
		r.asking = nil
		r.mu.Unlock()
		if err != nil {
			return err
		}
	}
}
