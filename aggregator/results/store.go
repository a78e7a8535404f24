package results

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// Limits of the store. Exceeding one drops the oldest results.
const (
	storedFor    = time.Hour
	maxUserBytes = 256 << 20 // of one user's results
	MaxOfUser    = 64        // of one user's results
	maxBytes     = 1 << 30   // of all users: results of the user with the most bytes are dropped
	maxResults   = 512       // of all users, since each needs a descriptor: the same by number
)

var errClosed = errors.New("dynmcp is shutting down")

// PartialResults keeps results that their host got only in part, so that it can read on. Each is in
// a file that no other user of the machine can read, and that disappears with the process. A user's
// results are visible only to that user's sessions. The zero PartialResults is empty.
type PartialResults struct {
	mu     sync.Mutex
	all    []*storedResult // the oldest first
	closed bool
}

type storedResult struct {
	handle string
	user   string
	limit  int // of the tool's results, in characters
	size   int64
	file   *os.File
	expiry *time.Timer
}

// Add stores a result and returns the handle for Get. The handle ends in the name of this replica,
// unless that is "", so that other replicas know where it is. The rest of the handle cannot be
// guessed.
func (s *PartialResults) Add(user, replica string, limit int, result json.RawMessage) (handle string, err error) {
	if len(result) > maxUserBytes {
		return "", fmt.Errorf("it is larger than %d MB", maxUserBytes>>20)
	}
	handle = strings.ToLower(rand.Text()[:12])
	file, err := os.CreateTemp("", "dynmcp-result-") // 0600
	if err != nil {
		return "", err
	}
	// If an open file can be removed, nothing is left even after SIGKILL. Elsewhere remove does it.
	_ = os.Remove(file.Name())
	if _, err := file.Write(result); err != nil {
		discard(file)
		return "", err
	}
	if replica != "" {
		handle += "-" + replica
	}
	r := &storedResult{handle: handle, user: user, limit: limit, size: int64(len(result)), file: file}
	r.expiry = time.AfterFunc(storedFor, func() { s.expire(r) })

	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		r.remove()
		return "", errClosed
	}
	s.all = append(s.all, r)
	dropped := s.trimLocked(user)
	s.mu.Unlock()
	for _, old := range dropped {
		old.remove()
	}
	return handle, nil
}

// trimLocked removes the results that exceed a limit: those of a user with more than its own share,
// otherwise those of the user with the most.
func (s *PartialResults) trimLocked(user string) (dropped []*storedResult) {
	for {
		count, size, total := map[string]int64{}, map[string]int64{}, int64(0)
		for _, r := range s.all {
			count[r.user]++
			size[r.user] += r.size
			total += r.size
		}
		switch {
		case count[user] > MaxOfUser || size[user] > maxUserBytes:
		case len(s.all) > maxResults:
			user = withMost(count)
		case total > maxBytes:
			user = withMost(size)
		default:
			return dropped
		}
		oldest := slices.IndexFunc(s.all, func(r *storedResult) bool { return r.user == user })
		dropped = append(dropped, s.all[oldest])
		s.all = slices.Delete(s.all, oldest, oldest+1)
	}
}

func withMost(of map[string]int64) (user string) {
	most := int64(-1)
	for u, n := range of {
		if n > most {
			user, most = u, n
		}
	}
	return user
}

// Get reads a result of a user and returns it with the limit of its tool, in characters;
// ok is false if absent or removed.
func (s *PartialResults) Get(user, handle string) (result json.RawMessage, limit int, ok bool) {
	s.mu.Lock()
	i := slices.IndexFunc(s.all, func(r *storedResult) bool { return r.handle == handle && r.user == user })
	if i < 0 {
		s.mu.Unlock()
		return nil, 0, false
	}
	r := s.all[i]
	s.mu.Unlock()
	result = make([]byte, r.size)
	_, err := r.file.ReadAt(result, 0) // fails if it was dropped meanwhile
	return result, r.limit, err == nil
}

func (s *PartialResults) expire(r *storedResult) {
	s.mu.Lock()
	i := slices.Index(s.all, r)
	if i >= 0 {
		s.all = slices.Delete(s.all, i, i+1)
	}
	s.mu.Unlock()
	if i >= 0 {
		r.remove()
	}
}

func (r *storedResult) remove() {
	r.expiry.Stop()
	discard(r.file)
}

func discard(file *os.File) {
	file.Close()
	_ = os.Remove(file.Name())
}

// Close removes everything.
func (s *PartialResults) Close() {
	s.mu.Lock()
	all := s.all
	s.all, s.closed = nil, true
	s.mu.Unlock()
	for _, r := range all {
		r.remove()
	}
}
