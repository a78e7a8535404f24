package results

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Bounds of what is kept. What exceeds one drops the oldest results.
const (
	keptFor      = time.Hour
	maxUserBytes = 256 << 20 // of one user's results
	MaxOfUser    = 64        // of one user's results
	maxBytes     = 1 << 30   // of all: results of the user with the most bytes are dropped
	maxResults   = 512       // of all, each of which has a descriptor: the same by number
)

var errClosed = errors.New("dynmcp is shutting down")

// A Store keeps results that reached their host only in part, so that it can read on. Each
// is in a file that nobody else can read and that is gone with the process, however that
// ends. What a user's calls returned is for that user's sessions. The zero Store is empty.
type Store struct {
	mu       sync.Mutex
	dir      string // made with the first result; "" before
	byHandle map[string]*kept
	users    map[string]*userResults
	size     int64 // of all
	closed   bool
}

// userResults are the results of one user, the oldest first.
type userResults struct {
	results []*kept
	size    int64
}

type kept struct {
	handle string
	user   string
	limit  int // of the tool's results, in characters
	size   int64
	file   *os.File
	expiry *time.Timer
}

// Add keeps a result and returns the handle under which Get finds it. The handle ends in
// the name of this replica, unless that is "", so that others know where to ask. Nobody can
// guess the rest.
func (s *Store) Add(user, replica string, limit int, result json.RawMessage) (handle string, err error) {
	if len(result) > maxUserBytes {
		return "", fmt.Errorf("it is larger than %d MB", maxUserBytes>>20)
	}
	dir, err := s.directory()
	if err != nil {
		return "", err
	}
	handle = strings.ToLower(rand.Text()[:12])
	file, err := os.OpenFile(filepath.Join(dir, handle), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	// Where a file may go while it is open, nothing is left even after SIGKILL.
	// Elsewhere remove does it.
	_ = os.Remove(file.Name())
	if _, err := file.Write(result); err != nil {
		(&kept{file: file}).remove()
		return "", err
	}
	if replica != "" {
		handle += "-" + replica
	}
	r := &kept{handle: handle, user: user, limit: limit, size: int64(len(result)), file: file}
	r.expiry = time.AfterFunc(keptFor, func() { s.expire(r) })

	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		r.remove()
		return "", errClosed
	}
	s.addLocked(r)
	dropped := s.trimLocked(user)
	s.mu.Unlock()
	for _, old := range dropped {
		old.remove()
	}
	return handle, nil
}

// trimLocked takes out the results that exceed a bound.
func (s *Store) trimLocked(user string) (dropped []*kept) {
	drop := func(user string) {
		oldest := s.users[user].results[0]
		s.takeOutLocked(oldest)
		dropped = append(dropped, oldest)
	}
	for own := s.users[user]; len(own.results) > MaxOfUser || own.size > maxUserBytes; {
		drop(user)
	}
	for len(s.byHandle) > maxResults || s.size > maxBytes {
		drop(s.largestLocked(len(s.byHandle) > maxResults))
	}
	return dropped
}

// largestLocked returns the user with the most results, or the most bytes.
func (s *Store) largestLocked(count bool) (largest string) {
	most := int64(-1)
	for user, own := range s.users {
		has := own.size
		if count {
			has = int64(len(own.results))
		}
		if has > most {
			largest, most = user, has
		}
	}
	return largest
}

func (s *Store) addLocked(r *kept) {
	s.byHandle[r.handle] = r
	s.size += r.size
	own := s.users[r.user]
	if own == nil {
		own = &userResults{}
		s.users[r.user] = own
	}
	own.results = append(own.results, r)
	own.size += r.size
}

func (s *Store) takeOutLocked(r *kept) {
	delete(s.byHandle, r.handle)
	s.size -= r.size
	own := s.users[r.user]
	own.size -= r.size
	at := slices.Index(own.results, r)
	if own.results = slices.Delete(own.results, at, at+1); len(own.results) == 0 {
		delete(s.users, r.user)
	}
}

// directory returns where results are kept.
func (s *Store) directory() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return "", errClosed
	case s.dir != "":
		return s.dir, nil
	}
	dir, err := os.MkdirTemp("", "dynmcp-results-") // 0700
	if err != nil {
		return "", err
	}
	s.dir, s.byHandle, s.users = dir, map[string]*kept{}, map[string]*userResults{}
	return dir, nil
}

// Get reads a result of a user and returns it with the limit of its tool, in characters;
// ok is false if there is none, or none any more.
func (s *Store) Get(user, handle string) (result json.RawMessage, limit int, ok bool) {
	s.mu.Lock()
	r := s.byHandle[handle]
	s.mu.Unlock()
	if r == nil || r.user != user {
		return nil, 0, false
	}
	result = make([]byte, r.size)
	_, err := r.file.ReadAt(result, 0) // fails if it was dropped meanwhile
	return result, r.limit, err == nil
}

func (s *Store) expire(r *kept) {
	s.mu.Lock()
	ours := s.byHandle[r.handle] == r
	if ours {
		s.takeOutLocked(r)
	}
	s.mu.Unlock()
	if ours {
		r.remove()
	}
}

func (r *kept) remove() {
	if r.expiry != nil {
		r.expiry.Stop()
	}
	r.file.Close()
	_ = os.Remove(r.file.Name())
}

// Close removes everything.
func (s *Store) Close() {
	s.mu.Lock()
	all, dir := s.byHandle, s.dir
	s.byHandle, s.users, s.dir, s.closed = nil, nil, "", true
	s.mu.Unlock()
	for _, r := range all {
		r.remove()
	}
	if dir != "" {
		_ = os.Remove(dir)
	}
}
