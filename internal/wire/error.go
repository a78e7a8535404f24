package wire

import (
	"encoding/json"
	"strconv"
)

// Codes of JSON-RPC 2.0, section 5.1.
const (
	CodeParse          = -32700
	CodeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603
)

// An Error is a JSON-RPC error object. Raw holds the bytes of an error that a peer sent,
// which are forwarded unchanged; it is nil in our own errors.
type Error struct {
	Code    int64           `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
	Raw     json.RawMessage `json:"-"`
}

func (e *Error) Error() string { return e.Message }

// JSON returns the error object as it goes on the wire.
func (e *Error) JSON() json.RawMessage {
	if e.Raw != nil {
		return e.Raw
	}
	out := strconv.AppendInt([]byte(`{"code":`), e.Code, 10)
	out = append(append(out, `,"message":`...), Quote(e.Message)...)
	if e.Data != nil {
		out = append(append(out, `,"data":`...), e.Data...)
	}
	return append(out, '}')
}

// ParseError reads a peer's error object and keeps its bytes. Hosts read only error
// objects of JSON-RPC, so any other value becomes the data of one.
func ParseError(raw json.RawMessage) *Error {
	message, isText := Text(Get(raw, "message"))
	code, isNumber := number(Get(raw, "code"))
	if isText && isNumber {
		return &Error{Code: code, Message: message, Data: Get(raw, "data"), Raw: raw}
	}
	if !isText {
		message, isText = Text(raw) // "error": "it broke"
	}
	if !isText || message == "" {
		message = "the answer is an error without a message"
	}
	if !isNumber {
		code = CodeInternal
	}
	return &Error{Code: code, Message: message, Data: raw}
}

// number returns the value of a JSON number, truncated to an integer.
func number(raw []byte) (int64, bool) {
	if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	return int64(f), err == nil
}
