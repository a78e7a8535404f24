package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// A Message is one JSON-RPC 2.0 message: slices of the bytes it came in.
// An absent member is nil.
type Message struct {
	Raw    []byte          // the whole object
	ID     []byte          // raw value
	Method string          // decoded
	Params json.RawMessage // raw value
	Result json.RawMessage
	Error  json.RawMessage
}

// IsRequest reports whether the message asks for an answer.
func (m *Message) IsRequest() bool { return m.Method != "" && m.ID != nil }

// IsNotification reports whether the message wants no answer.
func (m *Message) IsNotification() bool { return m.Method != "" && m.ID == nil }

// IsResponse reports whether the message answers a request.
func (m *Message) IsResponse() bool { return m.Method == "" && (m.Result != nil || m.Error != nil) }

// ErrEnvelope says that a text is JSON but not a JSON-RPC 2.0 message.
var ErrEnvelope = errors.New("not a JSON-RPC 2.0 message")

// Parse checks all of b, one JSON value with space around it allowed, and
// finds the members of the envelope. What it cannot make sense of is an error
// that wraps ErrEnvelope, ErrUnexpectedEnd or is a *SyntaxError; the message
// then holds what was found, so that an error can be sent under its id.
func Parse(b []byte) (Message, error) {
	start := space(b, 0)
	end, err := Skip(b, start)
	if err != nil {
		return Message{}, err
	}
	if rest := space(b, end); rest != len(b) {
		return Message{}, syntax(b, rest, "more text behind the value")
	}
	return scan(b[start:end])
}

// scan reads the envelope of a value already known to be well formed.
func scan(obj []byte) (Message, error) {
	m := Message{Raw: obj}
	if obj[0] != '{' {
		return m, fmt.Errorf("%w: an object is wanted, got %s", ErrEnvelope, Kind(obj))
	}
	var version, method []byte
	var twice string
	for key, value := range Members(obj) {
		var slot *[]byte
		switch string(key) {
		case `"jsonrpc"`:
			slot = &version
		case `"id"`:
			slot = &m.ID
		case `"method"`:
			slot = &method
		case `"params"`:
			slot = (*[]byte)(&m.Params)
		case `"result"`:
			slot = (*[]byte)(&m.Result)
		case `"error"`:
			slot = (*[]byte)(&m.Error)
		default:
			continue
		}
		if *slot != nil {
			twice = string(key)
		}
		*slot = value
	}
	switch {
	case twice != "":
		return m, fmt.Errorf("%w: member %s is there twice", ErrEnvelope, twice)
	case string(version) != `"2.0"`:
		return m, fmt.Errorf(`%w: "jsonrpc" must be "2.0"`, ErrEnvelope)
	case method == nil && m.Result == nil && m.Error == nil:
		return m, fmt.Errorf("%w: neither method, result nor error", ErrEnvelope)
	case method == nil:
		return m, nil
	}
	var ok bool
	if m.Method, ok = methodName(method); !ok || m.Method == "" {
		return m, fmt.Errorf("%w: method must be a string that is not empty", ErrEnvelope)
	}
	return m, nil
}

// methodName decodes a method; the names that calls use cost no allocation.
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

// ValidID reports whether id can name a request: a string or an integer
// (MCP basic protocol, "Requests"; null, fractions and objects cannot).
func ValidID(id []byte) bool {
	if len(id) == 0 {
		return false
	}
	if id[0] == '"' {
		return true
	}
	return (id[0] == '-' || '0' <= id[0] && id[0] <= '9') && bytes.IndexAny(id, ".eE") < 0
}

// The fixed parts of messages, for Writer.Send: a message is sent as the
// pieces it is made of, so what passes through is copied once, into the
// queue.
var (
	requestHead  = []byte(`{"jsonrpc":"2.0","id":`)
	methodHead   = []byte(`,"method":`)
	paramsHead   = []byte(`,"params":`)
	resultHead   = []byte(`,"result":`)
	errorHead    = []byte(`,"error":`)
	noticeHead   = []byte(`{"jsonrpc":"2.0","method":`)
	messageClose = []byte(`}`)
)

// Request returns the pieces of a request; params may be nil.
func Request(id, method []byte, params ...[]byte) [][]byte {
	parts := append(make([][]byte, 0, 6+len(params)), requestHead, id, methodHead, method)
	return closeParams(parts, params)
}

// Notification returns the pieces of a notification; params may be nil.
func Notification(method []byte, params ...[]byte) [][]byte {
	return closeParams(append(make([][]byte, 0, 4+len(params)), noticeHead, method), params)
}

func closeParams(parts, params [][]byte) [][]byte {
	if len(params) > 0 && len(params[0]) > 0 {
		parts = append(append(parts, paramsHead), params...)
	}
	return append(parts, messageClose)
}

// Result returns the pieces of a successful answer.
func Result(id, result []byte) [][]byte {
	return [][]byte{requestHead, id, resultHead, result, messageClose}
}

// Failure returns the pieces of an answer that is an error; a nil id is null.
func Failure(id []byte, err *Error) [][]byte {
	if id == nil {
		id = []byte("null")
	}
	return [][]byte{requestHead, id, errorHead, err.JSON(), messageClose}
}
