package transports

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// errTooLarge says that a body or an event is over max_message_bytes.
var errTooLarge = errors.New("larger than max_message_bytes")

// An event is one of a text/event-stream (WHATWG HTML, "Server-sent events").
type event struct {
	name string
	id   string
	data []byte
}

// readEvents calls each for every event of r that has data, in order, until r
// ends. Lines it does not know, comments among them, are
// skipped. An event of more than max bytes is an error.
func readEvents(r io.Reader, max int, each func(event)) error {
	lines := bufio.NewReaderSize(r, 32<<10)
	var e event
	for {
		line, err := readLine(lines, max+len("data: "))
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if len(line) == 0 {
			if e.data != nil {
				each(e)
			}
			e = event{}
			continue
		}
		if e.field(line); len(e.data) > max {
			return fmt.Errorf("an event of more than %d bytes is %w", max, errTooLarge)
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
	case "data":
		if e.data != nil {
			e.data = append(e.data, '\n')
		}
		e.data = append(e.data, value...)
		if e.data == nil {
			e.data = []byte{}
		}
	}
}

// readLine returns a line without its end, "\n" or "\r\n", as bytes that are
// valid until the next call.
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
	if err != nil {
		return nil, err
	}
	return bytes.TrimRight(line, "\r\n"), nil
}
