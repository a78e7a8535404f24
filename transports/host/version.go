package host

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"dynmcp/internal/wire"
	"dynmcp/transports"
)

// codeUnsupportedVersion is the error for a version that is not known.
const codeUnsupportedVersion = -32022

// requestVersion returns the stateless version a request speaks, "" where it
// speaks none. It makes the checks on the data plane that the SDK makes on the
// control plane.
func requestVersion(r *Request) (string, *wire.Error) {
	meta := r.Meta
	version, ok := wire.Text(wire.Get(meta, transports.MetaVersion))
	if !ok || version < transports.StatelessVersion {
		return "", nil
	}
	if known := mcp.SupportedProtocolVersions(); !slices.Contains(known, version) {
		data, err := json.Marshal(map[string]any{"supported": known, "requested": version})
		if err != nil {
			data = nil
		}
		return "", &wire.Error{Code: codeUnsupportedVersion, Message: "unsupported protocol version", Data: data}
	}
	if !wire.IsObject(wire.Get(meta, transports.MetaCapabilities)) {
		return "", &wire.Error{Code: wire.CodeInvalidParams, Message: fmt.Sprintf("missing or invalid _meta field %q", transports.MetaCapabilities)}
	}
	if info := wire.Get(meta, transports.MetaClientInfo); info != nil && !wire.IsObject(info) {
		return "", &wire.Error{Code: wire.CodeInvalidParams, Message: fmt.Sprintf("invalid _meta field %q", transports.MetaClientInfo)}
	}
	return version, nil
}

// modernResult adds what the stateless era requires of a result and this one
// does not say.
func modernResult(method string, result json.RawMessage) json.RawMessage {
	if !wire.IsObject(result) {
		return result
	}
	add := func(name, value string) {
		if wire.Get(result, name) == nil {
			result = wire.Set(result, name, []byte(value))
		}
	}
	add("resultType", `"complete"`)
	if cacheable(method) {
		add("ttlMs", `0`)
		add("cacheScope", `"private"`)
	}
	return result
}

func cacheable(method string) bool {
	switch method {
	case "server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read":
		return true
	}
	return false
}
