package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// A Message is one JSON-RPC 2.0 message. Its fields are slices of the bytes it was read
// from; an absent member is nil.
type Message struct {
	Raw    []byte          // the whole object
	ID     []byte          // raw value
	Method string          // decoded
	Params json.RawMessage // raw value
	Result json.RawMessage
	Error  json.RawMessage

	Outline *Outline // set by a Reader, and by ParseOutlined for a large message; valid as long as the message
}

// Clone returns a copy of the message.
func (m Message) Clone() Message {
	raw := bytes.Clone(m.Raw)
	raw = raw[:len(raw):len(raw)]
	clone := func(part []byte) []byte {
		if part == nil {
			return nil
		}
		// All are slices of one array, and their capacities end where it ends.
		at := cap(m.Raw) - cap(part)
		return raw[at : at+len(part) : len(raw)]
	}
	return Message{Raw: raw, ID: clone(m.ID), Method: m.Method, Params: clone(m.Params), Result: clone(m.Result), Error: clone(m.Error)}
}

// IsRequest reports whether the message expects an answer.
func (m *Message) IsRequest() bool { return m.Method != "" && m.ID != nil }

// IsNotification reports whether the message expects no answer.
func (m *Message) IsNotification() bool { return m.Method != "" && m.ID == nil }

// ErrEnvelope means that a text is JSON but not a JSON-RPC 2.0 message.
var ErrEnvelope = errors.New("not a JSON-RPC 2.0 message")

// Parse checks all of b, one JSON value with space around it allowed, and finds
// the members of the envelope. Its errors wrap ErrEnvelope, ErrUnexpectedEnd or
// ErrTooDeep, or are a *SyntaxError. With ErrEnvelope the message holds the members that
// were found, so that an error can be sent under its id.
func Parse(b []byte) (Message, error) { return ParseWithin(b, maxDepth) }

// ParseOutlined is Parse for a message whose members are looked up later: a large message gets
// an Outline.
func ParseOutlined(b []byte) (Message, error) {
	if len(b) < outlined {
		return Parse(b)
	}
	o := &Outline{text: b}
	m, err := parse(b, maxDepth, o)
	m.Outline = o
	return m, err
}

// ParseWithin is Parse for a message that nests at most depth levels.
func ParseWithin(b []byte, depth int) (Message, error) { return parse(b, depth, nil) }

func parse(b []byte, depth int, o *Outline) (Message, error) {
	start := space(b, 0)
	m, end, err := envelope(b, start, depth, o)
	if err != nil && !errors.Is(err, ErrEnvelope) {
		return Message{}, err
	}
	if rest := space(b, end); rest != len(b) {
		return Message{}, syntax(b, rest, "more text after the value")
	}
	return m, err
}

// envelope reads the message at b[i], of at most depth levels, and returns the offset
// after it. It returns the offset with ErrEnvelope too, because the value is JSON then. The
// members of params and result are noted in o if it is not nil.
func envelope(b []byte, i, depth int, o *Outline) (m Message, end int, err error) {
	if i >= len(b) || b[i] != '{' {
		if end, err = Skip(b, i); err == nil {
			err = fmt.Errorf("%w: want an object, got %s", ErrEnvelope, TypeName(b[i:end]))
		}
		return m, end, err
	}
	var version, method, twice []byte
	depth = maxDepth - depth + 1
	end, err = eachMember(b, i, depth, func(key []byte, i int) (end int, err error) {
		slot := m.slot(key, &version, &method)
		switch {
		case o == nil:
			end, err = skip(b, i, depth)
		case slot == (*[]byte)(&m.Params):
			end, err = o.skip(b, i, depth, nestedKeys)
		case slot == (*[]byte)(&m.Result):
			end, err = o.skip(b, i, depth, nil)
		default:
			end, err = skip(b, i, depth)
		}
		switch {
		case err != nil || slot == nil:
		case *slot != nil:
			twice = key
		default:
			*slot = b[i:end]
		}
		return end, err
	})
	if err != nil {
		return Message{}, end, err
	}
	m.Raw = b[i:end]
	return m, end, m.check(version, method, twice)
}

// slot returns the field for a member of the envelope, nil for other members.
func (m *Message) slot(key []byte, version, method *[]byte) *[]byte {
	if bytes.IndexByte(key, '\\') >= 0 {
		text, _ := Text(key)
		key = Quote(text)
	}
	switch string(key) {
	case `"jsonrpc"`:
		return version
	case `"id"`:
		return &m.ID
	case `"method"`:
		return method
	case `"params"`:
		return (*[]byte)(&m.Params)
	case `"result"`:
		return (*[]byte)(&m.Result)
	case `"error"`:
		return (*[]byte)(&m.Error)
	}
	return nil
}

// check decodes the method and returns an error if the envelope is invalid.
func (m *Message) check(version, method, twice []byte) error {
	var ok bool
	switch {
	case twice != nil:
		return fmt.Errorf("%w: member %s is there twice", ErrEnvelope, twice)
	case string(version) != `"2.0"`:
		return fmt.Errorf(`%w: "jsonrpc" must be "2.0"`, ErrEnvelope)
	case method == nil && m.Result == nil && m.Error == nil:
		return fmt.Errorf("%w: neither method, result nor error", ErrEnvelope)
	case method == nil:
		return nil
	}
	if m.Method, ok = methodName(method); !ok || m.Method == "" {
		return fmt.Errorf("%w: the method must be a non-empty string", ErrEnvelope)
	}
	return nil
}

// methodName decodes a method. The most frequent ones cost no allocation.
func methodName(raw []byte) (string, bool) {
	switch string(raw) {
	case `"tools/call"`:
		return "tools/call", true
	case `"notifications/progress"`:
		return "notifications/progress", true
	case `"notifications/message"`:
		return "notifications/message", true
	case `"resources/read"`:
		return "resources/read", true
	}
	return Text(raw)
}

// ValidID reports whether id can be the id of a request: a string or an integer
// (MCP basic protocol, "Requests"), not null, a fraction or an object.
func ValidID(id []byte) bool {
	if len(id) == 0 {
		return false
	}
	if id[0] == '"' {
		return true
	}
	return (id[0] == '-' || '0' <= id[0] && id[0] <= '9') && !bytes.ContainsAny(id, ".eE")
}

// The fixed parts of messages, for Writer.Send. A message is sent in pieces, so that
// forwarded text is copied only once, into the queue.
var (
	requestHead  = []byte(`{"jsonrpc":"2.0","id":`)
	methodHead   = []byte(`,"method":`)
	paramsHead   = []byte(`,"params":`)
	resultHead   = []byte(`,"result":`)
	errorHead    = []byte(`,"error":`)
	noticeHead   = []byte(`{"jsonrpc":"2.0","method":`)
	messageClose = []byte(`}`)
)

// appendRequest appends a request up to its params, or all of it if there are none.
// The params and messageClose come next.
func appendRequest(dst []byte, id int64, method string, params bool) []byte {
	dst = strconv.AppendInt(append(dst, requestHead...), id, 10)
	dst = AppendQuote(append(dst, methodHead...), method)
	if params {
		return append(dst, paramsHead...)
	}
	return append(dst, messageClose...)
}

// Request returns the pieces of a request. Its params are given in pieces and may be
// left out.
func Request(id int64, method string, params ...[]byte) [][]byte {
	parts := append(make([][]byte, 0, 2+len(params)), appendRequest(nil, id, method, hasParams(params)))
	if hasParams(params) {
		parts = append(append(parts, params...), messageClose)
	}
	return parts
}

// Notification returns the pieces of a notification. method is in quotes; params
// may be left out.
func Notification(method []byte, params ...[]byte) [][]byte {
	parts := append(make([][]byte, 0, 8), noticeHead, method)
	if hasParams(params) {
		parts = append(append(parts, paramsHead), params...)
	}
	return append(parts, messageClose)
}

func hasParams(pieces [][]byte) bool { return len(pieces) > 0 && len(pieces[0]) > 0 }

// Result returns the pieces of a successful response.
func Result(id, result []byte) [][]byte {
	return [][]byte{requestHead, id, resultHead, result, messageClose}
}

// ResultPieces is the number of pieces of a successful response whose result has two.
const ResultPieces = 6

// AppendResult appends the pieces of a successful response to parts.
func AppendResult(parts [][]byte, id []byte, result ...[]byte) [][]byte {
	parts = append(parts, requestHead, id, resultHead)
	return append(append(parts, result...), messageClose)
}

// Failure returns the pieces of an error response; a nil id is null.
func Failure(id []byte, err *Error) [][]byte {
	if id == nil {
		id = []byte("null")
	}
	return [][]byte{requestHead, id, errorHead, err.JSON(), messageClose}
}
