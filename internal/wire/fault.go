package wire

// kept is how much of either end of a line is kept that is not a message.
const kept = 4 << 10

// A Fault is a line that is not a message. The stream goes on behind it.
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
	return &Fault{Line: head(line), End: tail(line), Err: err}
}

func head(line []byte) []byte { return line[:min(len(line), kept)] }
func tail(line []byte) []byte { return line[max(0, len(line)-kept):] }

// Asks returns the id of the request that the line was meant to be, as raw JSON, so
// that it can be refused; nil if it was not a request or the id cannot be found.
func (f *Fault) Asks() []byte {
	if g := f.guess(); g.call {
		return g.id
	}
	return nil
}

// Answers returns the id of the request that the line was meant to answer, as raw
// JSON, so that it can be failed; nil if it was not a response or the id cannot be
// found. A log line in JSON, which may well have an "id", is not a response.
func (f *Fault) Answers() []byte {
	if g := f.guess(); g.rpc && !g.call {
		return g.id
	}
	return nil
}

// A guess is what the two ends of a line tell about its envelope.
type guess struct {
	id   []byte
	call bool // it has a method or params
	rpc  bool // it has "jsonrpc", a result or an error
}

func (f *Fault) guess() guess {
	var g guess
	g.read(f.Line)
	g.read(lastMembers(f.End))
	return g
}

// read notes the members of an object that may break off, and the name of the one
// at which it does. The text begins with a brace or a comma.
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
			g.id = value
		}
	case `"method"`, `"params"`:
		g.call = true
	case `"jsonrpc"`, `"result"`, `"error"`:
		g.rpc = true
	}
}

// lastMembers returns the members of an envelope that are whole at the end of its
// line, beginning with a comma: most servers write the id last. Members that do
// not end with the line's last brace belong to a nested object.
func lastMembers(end []byte) []byte {
	for i := range end {
		if end[i] != ',' {
			continue
		}
		if stop, err := eachMember(end, i, 1, nil); err == nil && space(end, stop) == len(end) {
			return end[i:]
		}
	}
	return nil
}
