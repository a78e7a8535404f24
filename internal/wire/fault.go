package wire

// kept is how much of a line that is no message is kept at either end.
const kept = 4 << 10

// A Fault is a line that is no message. The stream goes on behind it.
type Fault struct {
	Line   []byte // the line, or its first 4 KiB
	End    []byte // the line, or its last 4 KiB
	TooBig bool   // longer than the Reader's limit
	Cut    bool   // the stream ended inside it
	Err    error
}

func (f *Fault) Error() string { return f.Err.Error() }
func (f *Fault) Unwrap() error { return f.Err }

// NewFault returns the fault of a line that is at hand.
func NewFault(line []byte, err error) *Fault {
	return &Fault{Line: head(line), End: tail(line), Err: err}
}

func head(line []byte) []byte { return line[:min(len(line), kept)] }
func tail(line []byte) []byte { return line[max(0, len(line)-kept):] }

// Asks returns the id of the request that the line was to be, as raw JSON, so
// that it can be refused; nil where it was none or cannot be made out.
func (f *Fault) Asks() []byte {
	if g := f.guess(); g.call {
		return g.id
	}
	return nil
}

// Answers returns the id of the request that the line was to answer, as raw
// JSON, so that it can be failed; nil where it was no answer or cannot be made
// out. A log line in JSON, which may well have an "id", is no answer.
func (f *Fault) Answers() []byte {
	if g := f.guess(); g.rpc && !g.call {
		return g.id
	}
	return nil
}

// A guess is what the two ends of a line say of its envelope.
type guess struct {
	id   []byte
	call bool // it has a method, or params
	rpc  bool // it says "jsonrpc", or has a result or an error
}

func (f *Fault) guess() guess {
	var g guess
	g.read(f.Line)
	g.read(lastMembers(f.End))
	return g
}

// read takes note of the members of an object that may break off, and of the
// name of the one that does. A comma begins as a brace does.
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

// lastMembers returns the members of an envelope that are whole in the end of
// its line, beginning with a comma: most servers write the id last. What does
// not close with the line's last brace belongs to an object further inside.
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
