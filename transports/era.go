package transports

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"dynmcp/internal/wire"
)

// StatelessVersion is the first protocol version without a handshake: every
// request says by itself what its sender speaks and can do.
const StatelessVersion = "2026-07-28"

// Members of _meta in the stateless era (MCP 2026-07-28, "Lifecycle").
const (
	MetaVersion        = "io.modelcontextprotocol/protocolVersion"
	MetaCapabilities   = "io.modelcontextprotocol/clientCapabilities"
	MetaClientInfo     = "io.modelcontextprotocol/clientInfo"
	MetaSubscriptionID = "io.modelcontextprotocol/subscriptionId"
	MetaLogLevel       = "io.modelcontextprotocol/logLevel"
)

// EraMeta are the members of a request's _meta that mean something in the
// stateless era only.
var EraMeta = []string{MetaVersion, MetaCapabilities, MetaClientInfo, MetaLogLevel}

// codeUnsupportedVersion is the error for a version that is not known.
const codeUnsupportedVersion = -32022

// requestVersion returns the stateless version a request speaks, "" where it
// speaks none. It makes the checks on the data plane that the SDK makes on the
// control plane.
func requestVersion(r *Request) (string, *wire.Error) {
	meta := r.Meta
	version, ok := wire.Text(wire.Get(meta, MetaVersion))
	if !ok || version < StatelessVersion {
		return "", nil
	}
	if known := mcp.SupportedProtocolVersions(); !slices.Contains(known, version) {
		data, err := json.Marshal(map[string]any{"supported": known, "requested": version})
		if err != nil {
			data = nil
		}
		return "", &wire.Error{Code: codeUnsupportedVersion, Message: "unsupported protocol version", Data: data}
	}
	if !wire.IsObject(wire.Get(meta, MetaCapabilities)) {
		return "", &wire.Error{Code: wire.CodeInvalidParams, Message: fmt.Sprintf("missing or invalid _meta field %q", MetaCapabilities)}
	}
	if info := wire.Get(meta, MetaClientInfo); info != nil && !wire.IsObject(info) {
		return "", &wire.Error{Code: wire.CodeInvalidParams, Message: fmt.Sprintf("invalid _meta field %q", MetaClientInfo)}
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
