// Package ask handles the requests that upstreams make to hosts while calls are in flight: which
// host can answer, the roots, calls that wait for the next request of their host, the states in
// such requests, and offered logins. It knows neither sessions nor calls.
package ask

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
)

// serverRequests are the requests that upstreams may make to hosts, with the capability of a
// host that can answer them.
var serverRequests = map[string]string{
	"sampling/createMessage": "sampling",
	"elicitation/create":     "elicitation",
	"roots/list":             "roots",

	// For tasks that the host made of an upstream's requests (MCP 2025-11-25).
	"tasks/get":    "tasks",
	"tasks/result": "tasks",
	"tasks/list":   "tasks",
	"tasks/cancel": "tasks",
}

// Capability returns the capability of hosts that can answer a server request, "" for an unknown
// method.
func Capability(method string) string { return serverRequests[method] }

// Unsupported is the answer to a server request that the only host of a run cannot answer: that
// of the host itself. Servers recognize what is not supported by its code.
func Unsupported(format string, args ...any) func() (json.RawMessage, error) {
	err := &wire.Error{Code: wire.CodeMethodNotFound, Message: fmt.Sprintf(format, args...)}
	return func() (json.RawMessage, error) { return nil, err }
}

// NoHost is the answer to a server request that is sent to no host. Its code is dynmcp's own: a
// server may forward the error, and -32601 would then look like the failure of the host's own
// call.
func NoHost(format string, args ...any) func() (json.RawMessage, error) {
	err := &wire.Error{Code: transports.CodeNoHost, Message: fmt.Sprintf(format, args...)}
	return func() (json.RawMessage, error) { return nil, err }
}

// Lacks returns the capability that a host did not declare but needs to answer a server request,
// "" if it declared all. An unknown method needs none.
func Lacks(capabilities json.RawMessage, method string, params json.RawMessage) string {
	capability := serverRequests[method]
	declared := wire.Get(capabilities, capability)
	part := ""
	switch byURL := wire.EqualString(wire.Get(params, "mode"), "url"); {
	case capability == "":
		return ""
	case declared == nil:
		return "the host does not support " + capability
	case capability == "elicitation" && byURL:
		part = "url"
	case capability == "elicitation" && wire.Get(declared, "url") != nil:
		part = "form" // the default of a host that declares neither
	case capability == "sampling" && (wire.Get(params, "tools") != nil || wire.Get(params, "toolChoice") != nil):
		part = "tools"
	}
	if part != "" && wire.Get(declared, part) == nil {
		return fmt.Sprintf("the host does not support %s.%s", capability, part)
	}
	return ""
}

// Able returns the capabilities of a host that mean something to upstreams of the other era: those
// through which they can make requests to it, and its extensions except one. It returns nil if there are
// none.
func Able(capabilities json.RawMessage, except string) (able json.RawMessage) {
	for _, capability := range []string{"roots", "sampling", "elicitation", "extensions"} {
		declared := wire.Get(capabilities, capability)
		if capability == "extensions" {
			declared = wire.Delete(declared, except)
		}
		if len(declared) > 0 {
			if able == nil {
				able = json.RawMessage(`{}`)
			}
			able = wire.Set(able, capability, declared)
		}
	}
	return able
}

// MayNeedInput reports whether the result of a method may ask for input.
func MayNeedInput(method string) bool {
	return method == "tools/call" || method == "prompts/get" || method == "resources/read"
}

// NeedsInput reports whether a result asks for input.
func NeedsInput(outline *wire.Outline, result json.RawMessage) bool {
	return wire.EqualString(outline.Get(result, "resultType"), "input_required")
}

// A Question is a request of an upstream of the handshake era.
type Question struct {
	Method string
	Params json.RawMessage

	answered chan answer // has room for one
	gate     *Gate       // opened by the answer; nil if only its call waits for it
}

type answer struct {
	result json.RawMessage
	err    error
}

// NewQuestion returns an unanswered question.
func NewQuestion(method string, params json.RawMessage) *Question {
	return &Question{Method: method, Params: transports.DeleteMeta(params, "progressToken"), answered: make(chan answer, 1)}
}

// Answer answers the question, unless it was answered.
func (q *Question) Answer(result json.RawMessage, err error) {
	if q.gate != nil {
		q.gate.mu.Lock()
		q.gate.answered = true
		q.gate.mu.Unlock()
	}
	select {
	case q.answered <- answer{result, err}:
	default:
	}
}

// Wait returns the answer.
func (q *Question) Wait(ctx context.Context) (json.RawMessage, error) {
	select {
	case a := <-q.answered:
		return a.result, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Taken returns the answer if there is one.
func (q *Question) Taken() (result json.RawMessage, ok bool) {
	select {
	case a := <-q.answered:
		return a.result, true
	default:
		return nil, false
	}
}

// FailUnanswered answers the open questions of a call that has ended. A question for the roots
// stays open, if nobody else waits for it: it is sent to the host of the next call.
func FailUnanswered(questions []*Question, awaited bool) {
	for _, q := range questions {
		if q.gate == nil || awaited {
			q.Answer(nil, &wire.Error{Code: transports.CodeNoHost, Message: "the host did not answer"})
		}
	}
}
