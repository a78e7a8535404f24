package wire

import "encoding/json"

// Codes of JSON-RPC 2.0, section 5.1.
const (
	CodeParse          = -32700
	CodeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603
)

// An Error is a JSON-RPC error object. One that came from a peer keeps its
// bytes in Raw and is passed on as those bytes; one of ours leaves Raw nil.
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
	out := append([]byte(`{"code":`), appendInt(e.Code)...)
	out = append(append(out, `,"message":`...), Quote(e.Message)...)
	if e.Data != nil {
		out = append(append(out, `,"data":`...), e.Data...)
	}
	return append(out, '}')
}

// ParseError reads a peer's error object. Whatever it is, the result keeps it
// whole; an object without a usable code or message gets CodeInternal or its
// own text.
func ParseError(raw json.RawMessage) *Error {
	e := &Error{Code: CodeInternal, Raw: raw}
	var code json.Number
	if json.Unmarshal(Get(raw, "code"), &code) == nil {
		if n, err := code.Int64(); err == nil {
			e.Code = n
		}
	}
	if text, ok := Text(Get(raw, "message")); ok {
		e.Message = text
	} else {
		e.Message = string(raw)
	}
	e.Data = Get(raw, "data")
	return e
}

func appendInt(n int64) []byte {
	b, _ := json.Marshal(n)
	return b
}
