package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// grease is in every result, entry and notification: unknown members, with numbers and escapes that
// float64 or another encoder would change. A proxy must pass these bytes unchanged.
const grease = `"x-grease":{"n":9007199254740993,"f":1.0,"e":1e2},"x-ünï":"\u65e5本 <&> \ud83c\udf89"`

// message is a JSON-RPC message in parts, each as the received bytes.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// rpcError is an error answer. Code and Data are raw, because an int or a map would change the bytes
// that a test asks for.
type rpcError struct {
	Code    json.RawMessage
	Message string
	Data    json.RawMessage
}

func (e *rpcError) Error() string { return fmt.Sprintf("%s (%s)", e.Message, e.Code) }

func failure(code int, format string, args ...any) *rpcError {
	return &rpcError{Code: fmt.Appendf(nil, "%d", code), Message: fmt.Sprintf(format, args...)}
}

func noSuchMethod(method string) *rpcError {
	return failure(-32601, "Method not found: %s", method)
}

// quote encodes s as JSON and leaves <, > and & as they are.
func quote(s string) []byte {
	var b bytes.Buffer
	b.Grow(len(s) + 16)
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic(err) // a string always encodes
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// answer puts the id last, so that a reader that routes by id must skip the result first. It copies
// large parts once; fmt would several times.
func answer(id, result json.RawMessage) []byte {
	return slices.Concat([]byte(`{"result":`), result, []byte(`,"jsonrpc":"2.0","id":`), id, []byte(`}`))
}

func errorAnswer(id json.RawMessage, e *rpcError) []byte {
	data := ""
	if e.Data != nil {
		data = fmt.Sprintf(`"data":%s,`, e.Data)
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{%s"message":%s,"code":%s}}`, id, data, quote(e.Message), e.Code)
}

// notification returns a notification. params are without their braces; grease is added.
func notification(method, params string) []byte {
	if params != "" {
		params = "," + params
	}
	return fmt.Appendf(nil, `{"params":{%s%s},"method":%s,"jsonrpc":"2.0"}`, grease, params, quote(method))
}

func textContent(text string) []byte {
	return slices.Concat([]byte(`{"text":`), quote(text), []byte(`,"type":"text","annotations":{"audience":["user"],"priority":1.0},`+grease+`}`))
}

// textResult returns a tool result of one text. more has further members, each with a leading comma.
func textResult(text, more string) json.RawMessage {
	return slices.Concat([]byte(`{`+grease+`,"_meta":{"example.org/é":[1.0,1e2]}`), []byte(more), []byte(`,"content":[`), textContent(text), []byte(`]}`))
}

// decode decodes a request's params or arguments. Missing ones leave the value unchanged.
func decode(raw json.RawMessage, into any) error {
	if raw == nil {
		return nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return failure(-32602, "Invalid params: %v", err)
	}
	return nil
}
