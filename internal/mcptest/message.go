package mcptest

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// A Message is a received JSON-RPC message, whole and in parts. Each part is the bytes that were
// sent; a missing part is nil, unlike null.
type Message struct {
	Raw    string // the line without its end
	ID     json.RawMessage
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  json.RawMessage
}

// Parse parses a message. A line that is not a JSON object is returned with Raw alone.
func Parse(line string) Message {
	var parts struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
		Result json.RawMessage `json:"result"`
		Error  json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal([]byte(line), &parts); err != nil {
		return Message{Raw: line}
	}
	return Message{line, parts.ID, parts.Method, parts.Params, parts.Result, parts.Error}
}

// IsAnswer reports whether the message answers a request.
func (m Message) IsAnswer() bool { return m.Method == "" && m.ID != nil }

// IsError reports whether the message is a JSON-RPC error or a tool result with isError.
func (m Message) IsError() bool {
	var r struct{ IsError bool }
	_ = json.Unmarshal(m.Result, &r)
	return m.Error != nil || r.IsError
}

// Text returns the text of the result's first content, or the error's message.
func (m Message) Text() string {
	var r struct {
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	}
	if m.Error != nil {
		return m.rpcError().Message
	}
	if err := json.Unmarshal(m.Result, &r); err != nil || len(r.Content) == 0 {
		return ""
	}
	return r.Content[0].Text
}

// Code returns the error's code, 0 without an error.
func (m Message) Code() int { return m.rpcError().Code }

// Data returns the bytes of the error's data.
func (m Message) Data() json.RawMessage { return m.rpcError().Data }

func (m Message) rpcError() RPCError {
	var e RPCError
	_ = json.Unmarshal(m.Error, &e)
	return e
}

// Member returns the bytes of a member of the result or, for a request or notification, of the
// params. Further names are of nested members.
func (m Message) Member(name string, deeper ...string) json.RawMessage {
	raw := m.Result
	if m.Method != "" {
		raw = m.Params
	}
	for _, n := range append([]string{name}, deeper...) {
		var members map[string]json.RawMessage
		if err := json.Unmarshal(raw, &members); err != nil {
			return nil
		}
		raw = members[n]
	}
	return raw
}

// RPCError is returned by a handler to answer a request with an error.
type RPCError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (e *RPCError) Error() string { return fmt.Sprintf("%s (%d)", e.Message, e.Code) }

// Raw returns the bytes of a value to send: strings, []byte and json.RawMessage are already JSON, nil
// is nil, any other value is encoded.
func Raw(v any) json.RawMessage {
	switch v := v.(type) {
	case nil:
		return nil
	case string:
		return json.RawMessage(v)
	case []byte:
		return v
	case json.RawMessage:
		return v
	}
	return encode(v)
}

func encode(v any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err) // the test passed a value without a JSON form
	}
	return bytes.TrimSpace(b.Bytes())
}
