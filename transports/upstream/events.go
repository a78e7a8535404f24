package upstream

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
	"unicode"

	"github.com/dynmcp/dynmcp/internal/wire"
)

// errTooLarge means that a message is over max_message_bytes.
var errTooLarge = errors.New("larger than max_message_bytes")

// A streamEvent is an event of a text/event-stream (WHATWG HTML, "Server-sent events").
type streamEvent struct {
	name  string
	id    string
	retry time.Duration
	data  []byte // nil if absent
}

// readEvents calls each for every event of body, in order, until the body ends. Unknown lines
// and comments are skipped. A final event without its empty line counts if it is complete,
// that is if its data is JSON. An event of more than max bytes is an error.
func readEvents(body *answerBody, max int, each func(streamEvent)) error {
	lines := eventLines{body: body, in: bufio.NewReaderSize(body, 32<<10), max: max + len("data: ")}
	var e streamEvent
	begun := false // a line of this event was seen
	for first := true; ; first = false {
		line, err := lines.next(e.data != nil || e.name != "")
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
			body.handled()
			e, begun = streamEvent{}, false
		}
	}
}

func (e *streamEvent) field(line []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "event":
		e.name = string(value)
	case "id":
		if !bytes.ContainsFunc(value, unicode.IsControl) { // no value of the header Last-Event-ID
			e.id = string(value)
		}
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

// eventLines cuts a stream into lines, which end in "\n", "\r\n" or "\r".
type eventLines struct {
	body  *answerBody
	in    *bufio.Reader
	max   int  // bytes of a line
	wasCR bool // the last line ended in "\r", so a "\n" now belongs to it
}

// next returns a line without its end, valid until the next call. With an error it returns
// the bytes before it. Within an event, and within a line that is not a comment, the stream
// may not stall.
func (l *eventLines) next(within bool) ([]byte, error) {
	var before []byte // the earlier part of this line
	for {
		l.body.silenceAllowed = !within && (len(before) == 0 || before[0] == ':')
		if _, err := l.in.Peek(1); err != nil {
			return before, err
		}
		chunk, _ := l.in.Peek(l.in.Buffered())
		skip := l.wasCR && chunk[0] == '\n'
		if l.wasCR = false; skip {
			_, _ = l.in.Discard(1)
			continue
		}
		end, found := lineEnd(chunk)
		if found {
			l.wasCR = chunk[end] == '\r'
			_, _ = l.in.Discard(end + 1)
		} else {
			_, _ = l.in.Discard(end)
		}
		switch {
		case len(before)+end > l.max:
			return nil, fmt.Errorf("a line of more than %d bytes is %w", l.max, errTooLarge)
		case found && before == nil:
			return chunk[:end], nil
		}
		if before = append(before, chunk[:end]...); found {
			return before, nil
		}
	}
}

// lineEnd returns the end of the first line of text; false if it is incomplete.
func lineEnd(text []byte) (int, bool) {
	end := bytes.IndexByte(text, '\n')
	found := end >= 0
	if !found {
		end = len(text)
	}
	if cr := bytes.IndexByte(text[:end], '\r'); cr >= 0 {
		return cr, true
	}
	return end, found
}
