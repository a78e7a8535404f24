package wire

import (
	"bytes"
	"slices"
)

// kept is how many bytes of either end of a line that is not a message are kept.
const kept = 4 << 10

// A Fault is a line that is not a message. The stream continues after it.
type Fault struct {
	Line   []byte // the line, or its first 4 KiB
	End    []byte // the line, or its last 4 KiB
	TooBig bool   // longer than the Reader's limit
	Cut    bool   // the stream ended inside it
	Err    error
}

func (f *Fault) Error() string { return f.Err.Error() }
func (f *Fault) Unwrap() error { return f.Err }

// NewFault returns the Fault for a line.
func NewFault(line []byte, err error) *Fault {
	return &Fault{Line: bytes.Clone(head(line)), End: bytes.Clone(tail(line)), Err: err}
}

func head(line []byte) []byte { return line[:min(len(line), kept)] }
func tail(line []byte) []byte { return line[max(0, len(line)-kept):] }

// Asks returns the id of the request that the line was meant to be, as raw JSON, so
// that it can be refused; nil if it was not a request or the id cannot be found.
func (f *Fault) Asks() []byte {
	if g := f.guess(); g.call && len(g.ids) > 0 {
		return g.ids[len(g.ids)-1]
	}
	return nil
}

// Answers returns the ids of the requests that the line was meant to answer, as raw
// JSON, so that they can be failed. It returns nil if the line was not a response or has no
// readable id. The last of several ids comes first, because most readers take that one. A
// log line in JSON is not a response, even if it has an "id".
func (f *Fault) Answers() [][]byte {
	g := f.guess()
	if !g.rpc || g.call {
		return nil
	}
	slices.Reverse(g.ids)
	return g.ids
}

// A guess is what the two ends of a line reveal about its envelope.
type guess struct {
	ids  [][]byte
	call bool // it has a method or params
	rpc  bool // it has "jsonrpc", a result or an error
}

func (f *Fault) guess() guess {
	var g guess
	g.read(f.Line)
	g.read(lastMembers(f.End))
	return g
}

// read notes the members of an object that may be truncated, and the name of the member
// that is cut. The text begins with a brace or a comma.
func (g *guess) read(text []byte) {
	i := space(text, 0)
	for i < len(text) && (text[i] == '{' || text[i] == ',') {
		key, value, end, err := member(text, space(text, i+1), 1)
		g.note(key, value)
		if err != nil {
			return
		}
		i = space(text, end)
	}
}

func (g *guess) note(key, value []byte) {
	switch string(key) {
	case `"id"`:
		if value != nil {
			g.ids = append(g.ids, value)
		}
	case `"method"`, `"params"`:
		g.call = true
	case `"jsonrpc"`, `"result"`, `"error"`:
		g.rpc = true
	}
}

// lastMembers returns the complete members at the end of a line, beginning with a
// comma: most servers write the id last. It scans backwards from the line's last brace. The
// text between two commas of that level, outside strings and nested values, is a member,
// unless the member before it is incomplete.
func lastMembers(end []byte) []byte {
	stop := len(bytes.TrimRight(end, " \t\r\n")) - 1 // the end of the member, at first of the object
	if stop < 0 || end[stop] != '}' {
		return nil
	}
	var members []byte
	nested := 0
	for i := stop - 1; i >= 0; i-- {
		switch c := end[i]; {
		case c == '"':
			i = stringStart(end, i)
		case c == '}' || c == ']':
			nested++
		case c == '{' || c == '[':
			nested--
		case c == ',' && nested == 0:
			scanned(stop - i)
			if _, _, after, err := member(end, space(end, i+1), 1); err != nil || space(end, after) != stop {
				return members
			}
			members, stop = end[i:], i
		}
	}
	return members
}

// stringStart returns the offset of the quote that opens the string which ends at
// text[i]: the nearest one before it without a backslash. It returns -1 without one.
func stringStart(text []byte, i int) int {
	for {
		if i = bytes.LastIndexByte(text[:i], '"'); i <= 0 || text[i-1] != '\\' {
			return i
		}
	}
}
