package activity

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Each run writes its own files, so that runs need no lock between them. A full or old file is
// followed by a new one; the run that begins it removes files that are too old, and the oldest
// until the rest fits. Libraries for log rotation rename the one file of one process, and keep a
// goroutine that never ends.

const (
	suffix   = ".jsonl"
	fullSize = 8 << 20 // bytes
	fullAge  = 24 * time.Hour
)

// files are the files that a run writes.
type files struct {
	dir   string
	run   string
	bytes int64
	age   time.Duration
	began time.Time

	number  int
	file    *os.File // nil before the first line, and after a failure
	opened  time.Time
	size    int64
	partial bool // the file may end within a line
}

func (f *files) prepare() error {
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return fmt.Errorf("make the directory of the activity log: %w", err)
	}
	return nil
}

// write appends lines to the file, and returns how many are completely written.
func (f *files) write(lines []byte) (whole int, err error) {
	if err := f.ready(); err != nil {
		return 0, err
	}
	if f.partial { // start a new line after a truncated one
		lines, whole = append([]byte{'\n'}, lines...), -1
	}
	n, err := f.file.Write(lines)
	if f.size += int64(n); n > 0 {
		whole, f.partial = whole+bytes.Count(lines[:n], []byte{'\n'}), lines[n-1] != '\n'
	}
	return max(whole, 0), err
}

// ready ensures that the current file exists and is not full.
func (f *files) ready() error {
	if f.file != nil {
		info, err := f.file.Stat()
		there, gone := os.Lstat(f.file.Name())
		if err == nil && gone == nil && os.SameFile(info, there) && f.size < min(fullSize, max(f.bytes/8, 4096)) && time.Since(f.opened) < fullAge {
			return nil
		}
		f.close()
	}
	if err := f.prepare(); err != nil {
		return err
	}
	f.number++
	name := fmt.Sprintf("%s-%s-%04d%s", f.began.UTC().Format("20060102T150405"), f.run, f.number, suffix)
	file, err := os.OpenFile(filepath.Join(f.dir, name), os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		f.number--
		return fmt.Errorf("begin a file of the activity log: %w", err)
	}
	f.file, f.opened, f.size, f.partial = file, time.Now(), 0, false
	f.sweep(name)
	return nil
}

func (f *files) close() {
	if f.file != nil {
		_ = f.file.Close() // nothing is buffered
		f.file = nil
	}
}

// sweep removes files that are too old, and the oldest until the rest fits, except the current file.
func (f *files) sweep(current string) {
	all := list(f.dir)
	var sum int64
	for _, info := range slices.Backward(all) {
		sum += info.Size()
		old := f.age > 0 && time.Since(info.ModTime()) > f.age
		if info.Name() != current && (old || f.bytes > 0 && sum > f.bytes) {
			_ = os.Remove(filepath.Join(f.dir, info.Name())) // another run may have done it
		}
	}
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
