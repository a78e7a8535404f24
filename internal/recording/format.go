// Package recording writes the messages that pass a tap to files, and reads them.
//
// A recording is JSON, a value on each line: a Header, and a Line for each message. It may
// continue in files whose names end in .2 to .4, each with a header of its own.
// docs/recording.md describes the format.
package recording

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/dynmcp/dynmcp/internal/regular"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// Format is the version of the format. Readers ignore unknown members: it stays the same after a
// change that they may ignore.
const Format = 1

// A Header is the first line of a file.
type Header struct {
	Format int       `json:"dynmcp_recording"`
	Dynmcp string    `json:"dynmcp"` // version that wrote it
	Began  time.Time `json:"began"`
	Single bool      `json:"single,omitempty"` // the run had one server, as which it appeared
	Expose []string  `json:"expose,omitempty"` // the surfaces that --expose named
	Part   int       `json:"part,omitempty"`   // the number of the file, from 2 on
}

// A Line is a message, or the number of messages lost before the next one.
type Line struct {
	MS      float64         `json:"ms"`               // since Header.Began
	Dir     string          `json:"dir,omitempty"`    // "in" to dynmcp, "out" from it
	Host    string          `json:"host,omitempty"`   // the session of a host
	Server  string          `json:"server,omitempty"` // an upstream, or the only one of the host's session
	Conn    int64           `json:"conn,omitempty"`   // the number of the connection to an upstream
	Lost    int64           `json:"lost,omitempty"`
	Message json.RawMessage `json:"message,omitempty"` // as it was sent, except for secrets
	Text    string          `json:"text,omitempty"`    // the same if it is not JSON
}

// Append appends a line to a text. encoding/json would change the escapes and the spaces of a
// message.
func (l Line) Append(to []byte) []byte {
	message := l.Message
	if l.Message = nil; message != nil && !json.Valid(message) {
		l.Text, message = string(message), nil
	}
	head, _ := json.Marshal(l) // such a struct has an encoding
	to = append(to, head[:len(head)-1]...)
	if message != nil {
		to = append(append(to, `,"message":`...), bytes.ReplaceAll(message, []byte{'\n'}, []byte{' '})...)
	}
	return append(to, "}\n"...)
}

// Messages returns the messages of a line: several if it is a batch.
func (l *Line) Messages() iter.Seq[wire.Message] {
	return func(yield func(wire.Message) bool) {
		if len(l.Message) == 0 || l.Message[0] != '[' {
			if m, err := wire.Parse(l.Message); err == nil {
				yield(m)
			}
			return
		}
		for element := range wire.Elements(l.Message) {
			if m, err := wire.Parse(element); err == nil && !yield(m) {
				return
			}
		}
	}
}

// maxRead limits the size of each file.
const maxRead = 1 << 30

// Read reads a recording from its files.
func Read(ctx context.Context, path string) (Header, []Line, error) {
	first, all, err := readFile(ctx, path)
	for part := 2; part <= keptParts; part++ {
		header, more, failed := readFile(ctx, partOf(path, part))
		if header.Format > 0 && header.Began.Equal(first.Began) { // otherwise it belongs to another recording, or is absent
			all, err = append(all, more...), cmp.Or(err, failed)
		}
	}
	return first, all, err
}

func readFile(ctx context.Context, path string) (Header, []Line, error) {
	text, err := regular.Read(ctx, path, maxRead)
	if err != nil {
		return Header{}, nil, err
	}
	r, err := NewReader(bytes.NewReader(text))
	if err != nil {
		return Header{}, nil, fmt.Errorf("%s: %w", path, err)
	}
	var all []Line
	for {
		switch line, err := r.Next(); {
		case err == io.EOF:
			return r.Header, all, nil
		case err != nil:
			return r.Header, all, fmt.Errorf("%s: %w", path, err)
		default:
			all = append(all, line)
		}
	}
}

// A Reader reads one file of a recording, which may still be growing.
type Reader struct {
	Header Header
	lines  *bufio.Reader
	number int
}

// NewReader reads the header.
func NewReader(r io.Reader) (*Reader, error) {
	reader := &Reader{lines: bufio.NewReader(r)}
	err := reader.read(&reader.Header)
	switch {
	case err != nil && err != io.EOF:
		return nil, fmt.Errorf("this is no recording: %w", err)
	case reader.Header.Format == 0:
		return nil, errors.New("this is no recording: the first line has no dynmcp_recording")
	case reader.Header.Format > Format:
		return nil, fmt.Errorf("the recording has format %d of a newer dynmcp, this one knows format %d", reader.Header.Format, Format)
	}
	return reader, nil
}

// Next returns the next line. A truncated one, such as the last line of a run that was killed,
// is ignored.
func (r *Reader) Next() (line Line, err error) {
	err = r.read(&line)
	return line, err
}

func (r *Reader) read(value any) error {
	text, err := r.lines.ReadBytes('\n')
	if err != nil {
		return err
	}
	r.number++
	if err := json.Unmarshal(text, value); err != nil {
		return fmt.Errorf("line %d: %w", r.number, err)
	}
	return nil
}
