// Package ask holds what upstreams ask of hosts while calls are in flight: questions and who
// can answer them, the roots, calls that wait for the next request of their host, the states
// that such a request brings back, and offered logins. It knows neither sessions nor calls.
package ask

import (
	"encoding/json"
	"fmt"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
)

// serverRequests are the requests that upstreams may make of hosts, with the
// capability of a host that can answer them.
var serverRequests = map[string]string{
	"sampling/createMessage": "sampling",
	"elicitation/create":     "elicitation",
	"roots/list":             "roots",

	// About tasks that the host has made of an upstream's requests (MCP 2025-11-25).
	"tasks/get":    "tasks",
	"tasks/result": "tasks",
	"tasks/list":   "tasks",
	"tasks/cancel": "tasks",
}

// Capability returns the capability of hosts that can answer a server request, "" for a
// method that is not known.
func Capability(method string) string { return serverRequests[method] }

// Refused is the answer to a server request that no host gets. Its code is our
// own: servers that pass on what they are told take -32601, which would be right
// for a method that a host does not have, for the failure of what the host called.
func Refused(format string, args ...any) func() (json.RawMessage, error) {
	err := &wire.Error{Code: transports.CodeNoHost, Message: fmt.Sprintf(format, args...)}
	return func() (json.RawMessage, error) { return nil, err }
}

// Lacks says what a host with these capabilities did not declare of what it takes
// to answer a server request, "" if it declared all. A method that is not known
// takes nothing.
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

// Able returns those of a host's capabilities by which upstreams of the other era can ask
// it something, nil if there are none.
func Able(capabilities json.RawMessage) (able json.RawMessage) {
	for _, capability := range []string{"roots", "sampling", "elicitation"} {
		if declared := wire.Get(capabilities, capability); declared != nil {
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
