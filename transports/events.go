package transports

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"dynmcp/internal/wire"
)

// errTooLarge says that a message is over max_message_bytes.
var errTooLarge = errors.New("larger than max_message_bytes")

// An event is one of a text/event-stream (WHATWG HTML, "Server-sent events").
type event struct {
	name  string
	id    string
	retry time.Duration
	data  []byte // nil where there is none
}

// readEvents calls each for every event of r, in order, until r ends. Lines it
// does not know, comments among them, are skipped. At the end an event that no
// empty line closes counts if it is whole: if its data is JSON. An event of more
// than max bytes is an error.
func readEvents(r io.Reader, max int, each func(event)) error {
	lines := bufio.NewReaderSize(r, 32<<10)
	var e event
	begun := false // of this event, a line was seen
	for first := true; ; first = false {
		line, err := readLine(lines, max+len("data: "))
		if first {
			line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
		}
		if len(line) > 0 {
			begun = true
			e.field(line)
		}
		if len(e.data) > max {
			return fmt.Errorf("an event of more than %d bytes is %w", max, errTooLarge)
		}
		switch {
		case errors.Is(err, io.EOF):
			if wire.Valid(e.data) {
				each(e)
			}
			return nil
		case err != nil:
			return err
		case begun && len(line) == 0:
			each(e)
			e, begun = event{}, false
		}
	}
}

func (e *event) field(line []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "event":
		e.name = string(value)
	case "id":
		e.id = string(value)
	case "retry":
		if ms, err := strconv.Atoi(string(value)); err == nil {
			e.retry = time.Duration(ms) * time.Millisecond
		}
	case "data":
		if e.data != nil {
			e.data = append(e.data, '\n')
		}
		e.data = append(e.data, value...)
	}
}

// readLine returns a line without its end, "\n" or "\r\n", as bytes that are
// valid until the next call. With an error it returns what came before it.
func readLine(r *bufio.Reader, max int) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if err == bufio.ErrBufferFull {
		whole := bytes.Clone(line)
		for err == bufio.ErrBufferFull {
			if len(whole) > max {
				return nil, fmt.Errorf("a line of more than %d bytes is %w", max, errTooLarge)
			}
			line, err = r.ReadSlice('\n')
			whole = append(whole, line...)
		}
		line = whole
	}
	return bytes.TrimRight(line, "\r\n"), err
}
