// Package regular reads files whose paths others choose: users, hosts, or programs that write to
// a directory. All such files are read through it. It reads only regular files of a limited
// size: opening a named pipe blocks until there is a writer, opening a device may have
// effects, and some devices never end.
//
// Every read has a deadline and ends with its context, even on network file systems that hang.
package regular

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"
)

// maxTime limits how long one file is read.
const maxTime = 30 * time.Second

// Limits of the sizes of files.
const (
	Small = 1 << 20  // files that people write: keys, certificates, credentials
	Large = 64 << 20 // files that programs write: hosts keep histories in their configs
)

// ErrDirectory is the error for a directory where a file was expected.
var ErrDirectory = errors.New("is a directory")

// Read returns the content of a regular file, or of one that a link leads to, of at most
// limit bytes.
func Read(ctx context.Context, path string, limit int64) ([]byte, error) {
	text, _, err := request{path: path, limit: limit}.read(ctx)
	return text, err
}

// ReadOrPipe is Read that also accepts a pipe which the shell passes as a descriptor, for <(…). It
// reports whether the file was a pipe, which can be read only once.
func ReadOrPipe(ctx context.Context, path string, limit int64) (text []byte, piped bool, err error) {
	descriptor := path == "/dev/stdin" || strings.HasPrefix(path, "/dev/fd/") || strings.HasPrefix(path, "/proc/self/fd/")
	return request{path: path, limit: limit, pipe: descriptor}.read(ctx)
}

// ReadWithin is Read for a file of a directory, whose path is relative to that. No link leads out of the
// directory.
func ReadWithin(ctx context.Context, dir, path string, limit int64) ([]byte, error) {
	text, _, err := request{path: path, within: dir, limit: limit}.read(ctx)
	return text, err
}

// ReadNoFollow is Read for a file that only dynmcp writes: it does not follow a final symbolic link,
// and reads nothing of a file that check refuses. A nil check accepts any file.
func ReadNoFollow(ctx context.Context, path string, limit int64, check func(fs.FileInfo) error) ([]byte, error) {
	text, _, err := request{path: path, limit: limit, noLink: true, check: check}.read(ctx)
	return text, err
}

// Head returns the first bytes of a regular file, which may have more than limit.
func Head(ctx context.Context, path string, limit int64) ([]byte, error) {
	text, _, err := request{path: path, limit: limit, head: true}.read(ctx)
	return text, err
}

// Part returns at most limit bytes of a regular file of any size, from an offset.
func Part(ctx context.Context, path string, from, limit int64) ([]byte, error) {
	text, _, err := request{path: path, from: from, limit: limit, head: true}.read(ctx)
	return text, err
}

// CertPool returns the certificates in a file (PEM).
func CertPool(path string) (*x509.CertPool, error) {
	text, err := Read(context.Background(), path, Small)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate (PEM)", path)
	}
	return pool, nil
}

// A request describes a file to read, and its requirements.
type request struct {
	path   string
	from   int64 // offset
	limit  int64
	pipe   bool // it may be a pipe
	head   bool // it may be larger
	noLink bool
	within string                  // the directory that path is relative to, and that no link leads out of; "" for none
	check  func(fs.FileInfo) error // check of the opened file; nil accepts it
}

// reads limits concurrent reads. A read that hangs cannot be interrupted: its goroutine is abandoned
// and keeps its slot, so that repeated reads of a file system that hangs do not use up the threads
// of the process.
var reads = make(chan struct{}, 64)

func (r request) read(ctx context.Context) (text []byte, piped bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	select {
	case reads <- struct{}{}:
	case <-ctx.Done():
		return nil, false, fmt.Errorf("%s: %w", r.path, ctx.Err())
	}
	done := make(chan struct{})
	var got []byte
	var pipe bool
	var failed error
	go func() {
		defer func() { <-reads }()
		defer close(done)
		got, pipe, failed = r.readNow()
	}()
	select {
	case <-done:
		return got, pipe, failed
	case <-ctx.Done():
		return nil, false, fmt.Errorf("%s: %w", r.path, ctx.Err())
	}
}

func (r request) readNow() (text []byte, piped bool, err error) {
	file, err := r.open()
	if err != nil {
		return nil, false, err
	}
	defer file.Close()
	info, err := file.Stat() // the file may have been replaced
	if err == nil {
		err = r.accept(info)
	}
	if err == nil && r.check != nil {
		err = r.check(info)
	}
	if err != nil {
		return nil, false, err
	}
	if r.from > 0 {
		if _, err = file.Seek(r.from, io.SeekStart); err != nil {
			return nil, false, err
		}
	}
	text, err = io.ReadAll(io.LimitReader(file, r.limit+1))
	switch over := int64(len(text)) > r.limit; {
	case over && r.head:
		text = text[:r.limit]
	case over && err == nil:
		err = r.tooLarge()
	}
	if err != nil {
		return nil, false, err
	}
	return text, !info.Mode().IsRegular(), nil
}

// open opens the file, if it may be read: opening another one may have effects.
func (r request) open() (*os.File, error) {
	if r.within != "" {
		return r.openWithin()
	}
	look := os.Stat
	if r.noLink {
		look = os.Lstat
	}
	named, err := look(r.path)
	if err == nil {
		err = r.accept(named)
	}
	if err != nil {
		return nil, err
	}
	return open(r.path, r.noLink)
}

// openWithin opens the file in its directory.
func (r request) openWithin() (*os.File, error) {
	dir, err := os.OpenRoot(r.within)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	named, err := dir.Stat(r.path)
	if err == nil {
		err = r.accept(named)
	}
	if err != nil {
		return nil, err
	}
	return dir.OpenFile(r.path, nonBlocking, 0)
}

// accept returns an error for a file that may not be read.
func (r request) accept(info fs.FileInfo) error {
	switch regular := info.Mode().IsRegular(); {
	case info.IsDir():
		return fmt.Errorf("%s %w", r.path, ErrDirectory)
	case !regular && !r.pipe:
		return fmt.Errorf("%s is not a regular file", r.path)
	case regular && !r.head && info.Size() > r.limit:
		return r.tooLarge()
	}
	return nil
}

func (r request) tooLarge() error {
	return fmt.Errorf("%s is larger than %d MiB", r.path, r.limit>>20)
}
