package activity

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Each run writes its own files, so that runs need no lock between them. The users of a run share
// a file; one with many lines gets a file of its own. A full or old file is followed by a new one;
// the run that begins it removes files that are too old, and, until the rest fits, the oldest of
// the user with the most. So no user's calls replace the record of the others. Libraries for log
// rotation rename the one file of one process, and keep a goroutine that never ends.

const (
	suffix   = ".jsonl"
	fullSize = 8 << 20 // bytes
	fullAge  = 24 * time.Hour
)

// files are the files that a run writes.
type files struct {
	dir   string
	run   string
	bytes int64 // of all files in dir; 0 is no limit
	age   time.Duration
	began time.Time

	number int
	shared stream
	wrote  map[string]int64   // bytes of each user in the current shared file
	own    map[string]*stream // of users with many lines
}

// A stream is a sequence of files.
type stream struct {
	owner   string // part of the names of its files; "" if it is shared
	name    string // of the current file, "" before the first
	opened  time.Time
	partial bool // the file may end within a line
}

func (f *files) prepare() error {
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return fmt.Errorf("make the directory of the activity log: %w", err)
	}
	return nil
}

// full is the size of a file that is followed by another one.
func (f *files) full() int64 {
	if f.bytes == 0 {
		return fullSize
	}
	return min(fullSize, max(f.bytes/8, 4096))
}

// streamOf returns the stream for the next line of a user.
func (f *files) streamOf(user string) *stream {
	if own := f.own[user]; own != nil && time.Since(own.opened) < fullAge {
		return own
	}
	delete(f.own, user)
	if f.wrote[user] < f.full()/8 {
		return &f.shared
	}
	sum := sha256.Sum256([]byte(user))
	own := &stream{owner: hex.EncodeToString(sum[:8]), opened: time.Now()}
	f.own[user] = own
	return own
}

// write appends lines to a stream, and returns how many are completely written.
func (f *files) write(to *stream, lines []byte) (whole int, err error) {
	file, err := f.open(to)
	if err != nil {
		return 0, err
	}
	defer file.Close() // nothing is buffered
	if to.partial {    // start a new line after a truncated one
		lines, whole = append([]byte{'\n'}, lines...), -1
	}
	n, err := file.Write(lines)
	if n > 0 {
		whole, to.partial = whole+bytes.Count(lines[:n], []byte{'\n'}), lines[n-1] != '\n'
	}
	return max(whole, 0), err
}

// open opens the current file of a stream, or begins one if that is full, old or gone.
func (f *files) open(s *stream) (*os.File, error) {
	if s.name != "" && time.Since(s.opened) < fullAge {
		file, err := os.OpenFile(filepath.Join(f.dir, s.name), os.O_WRONLY|os.O_APPEND, 0)
		if err == nil {
			if info, err := file.Stat(); err == nil && info.Size() < f.full() {
				return file, nil
			}
			file.Close()
		}
	}
	if err := f.prepare(); err != nil {
		return nil, err
	}
	f.number++
	name := fmt.Sprintf("%s-%s-%04d", f.began.UTC().Format("20060102T150405"), f.run, f.number)
	if s.owner != "" {
		name += "-" + s.owner
	}
	name += suffix
	file, err := os.OpenFile(filepath.Join(f.dir, name), os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("begin a file of the activity log: %w", err)
	}
	s.name, s.opened, s.partial = name, time.Now(), false
	if s.owner == "" {
		clear(f.wrote)
		maps.DeleteFunc(f.own, func(_ string, own *stream) bool { return time.Since(own.opened) >= fullAge })
	}
	f.sweep()
	return file, nil
}

// sweep removes files that are too old, and, until the rest fits, the oldest of the owner with the
// most bytes. Current files of this run stay.
func (f *files) sweep() {
	current := map[string]bool{f.shared.name: true}
	for _, own := range f.own {
		current[own.name] = true
	}
	var sum int64
	held := map[string]int64{}         // by owner
	past := map[string][]fs.FileInfo{} // by owner, the oldest first
	for _, info := range list(f.dir) {
		owner := ownerOf(info.Name())
		switch {
		case current[info.Name()]:
		case f.age > 0 && time.Since(info.ModTime()) > f.age:
			f.remove(info)
			continue
		default:
			past[owner] = append(past[owner], info)
		}
		sum += info.Size()
		held[owner] += info.Size()
	}
	for f.bytes > 0 && sum > f.bytes && len(past) > 0 {
		most := slices.MaxFunc(slices.Collect(maps.Keys(past)), func(a, b string) int { return cmp.Compare(held[a], held[b]) })
		oldest := past[most][0]
		f.remove(oldest)
		sum -= oldest.Size()
		held[most] -= oldest.Size()
		if past[most] = past[most][1:]; len(past[most]) == 0 {
			delete(past, most)
		}
	}
}

func (f *files) remove(info fs.FileInfo) {
	_ = os.Remove(filepath.Join(f.dir, info.Name())) // another run may have done it
}

// ownerOf returns the owner in the name of a file, "" for a shared one.
func ownerOf(name string) string {
	if parts := strings.Split(strings.TrimSuffix(name, suffix), "-"); len(parts) > 3 {
		return parts[3]
	}
	return ""
}

// list returns the files of a directory, the most recently written last.
func list(dir string) (all []fs.FileInfo) {
	entries, _ := os.ReadDir(dir) // an unreadable directory is empty
	for _, entry := range entries {
		info, err := entry.Info()
		if err == nil && info.Mode().IsRegular() && strings.HasSuffix(entry.Name(), suffix) {
			all = append(all, info)
		}
	}
	slices.SortStableFunc(all, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	return all
}
