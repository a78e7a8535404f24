package recording

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/dynmcp/dynmcp/internal/event"
)

// maxWaiting limits the messages that wait to be written, in bytes.
const maxWaiting = 64 << 20

// Start records the messages that pass a tap to a writer that already has the header.
func Start(t *event.Tap, out io.Writer, began time.Time, redact func(string) string) *event.Follower {
	return t.Follow(&recorder{out, began, redact}, event.Limits{Text: maxWaiting, Waiting: maxWaiting})
}

// A recorder writes messages.
type recorder struct {
	out    io.Writer
	began  time.Time
	redact func(string) string
}

// Read implements event.Reader.
func (r *recorder) Read(all []event.Message, lost int64) error {
	var text []byte
	for _, m := range all {
		text = Line{
			MS: since(r.began, m.At), Dir: m.Direction(), Host: m.Session, Server: m.Server, Conn: m.Number, Message: []byte(r.redact(string(m.Text))),
		}.Append(text)
	}
	if lost > 0 {
		text = Line{MS: since(r.began, time.Now()), Lost: lost}.Append(text)
	}
	_, err := r.out.Write(text)
	return err
}

func since(began, at time.Time) float64 { return float64(at.Sub(began).Microseconds()) / 1000 }

// keptParts is how many files of a recording are kept: the first, with the handshakes, and the
// last ones.
const keptParts = 4

// partOf returns the name of a file in which a recording continues, from 2 to keptParts.
func partOf(path string, part int) string { return fmt.Sprintf("%s.%d", path, part) }

// A File is a recording that continues in another file when one is full.
type File struct {
	Path   string // of the first
	header Header
	most   int64 // bytes of each

	now  *os.File
	size int64
}

// Create creates the file of a new recording, which only the user may read. If the name is
// taken, a number is added to it.
func Create(path string, header Header, most int64) (*File, error) {
	if header.Format = Format; header.Began.IsZero() {
		header.Began = time.Now().UTC()
	}
	f := &File{Path: path, header: header, most: most}
	ext := filepath.Ext(path)
	for n := 2; ; n++ {
		err := f.open(f.Path)
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
		f.Path = fmt.Sprintf("%s-%d%s", strings.TrimSuffix(path, ext), n, ext)
	}
}

// Began is when the recording began.
func (f *File) Began() time.Time { return f.header.Began }

func (f *File) open(path string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	f.now, f.size = file, 0
	return json.NewEncoder(file).Encode(f.header)
}

// Write implements io.Writer for whole lines.
func (f *File) Write(lines []byte) (int, error) {
	if f.size > 0 && f.size+int64(len(lines)) > f.most {
		if err := f.next(); err != nil {
			return 0, err
		}
	}
	n, err := f.now.Write(lines)
	f.size += int64(n)
	return n, err
}

func (f *File) next() error {
	if err := f.now.Close(); err != nil {
		return err
	}
	if f.header.Part = max(f.header.Part, 1) + 1; f.header.Part > keptParts {
		for part := 2; part < keptParts; part++ {
			_ = os.Rename(partOf(f.Path, part+1), partOf(f.Path, part)) // it may be gone
		}
	}
	path := partOf(f.Path, min(f.header.Part, keptParts))
	_ = os.Remove(path) // of an earlier recording
	return f.open(path)
}

// Close closes the file, and removes an empty recording.
func (f *File) Close() error {
	if f.size == 0 && f.header.Part == 0 {
		_ = os.Remove(f.Path)
	}
	return f.now.Close()
}
