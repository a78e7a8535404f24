package transports

import (
	"encoding/json"

	"github.com/dynmcp/dynmcp/internal/wire"
)

// An Era is one of the two ways in which MCP peers introduce themselves.
type Era int

const (
	// Handshake is the era of the versions up to 2025-11-25: a session begins
	// with initialize.
	Handshake Era = iota
	// Stateless is the era from StatelessVersion on: every request carries the version
	// and the capabilities of its sender.
	Stateless
)

// StatelessVersion is the first protocol version of the stateless era.
const StatelessVersion = "2026-07-28"

// CodeUnsupportedVersion is the error for a protocol version that the receiver does not
// support. Its data lists the supported ones, as "supported" (MCP 2026-07-28, "Versioning").
const CodeUnsupportedVersion = -32022

// Members of _meta in the stateless era (MCP 2026-07-28, "Lifecycle").
const (
	MetaVersion        = "io.modelcontextprotocol/protocolVersion"
	MetaCapabilities   = "io.modelcontextprotocol/clientCapabilities"
	MetaClientInfo     = "io.modelcontextprotocol/clientInfo"
	MetaSubscriptionID = "io.modelcontextprotocol/subscriptionId"
	MetaLogLevel       = "io.modelcontextprotocol/logLevel"
)

// EraMeta lists the members of a request's _meta that exist only in the stateless era.
var EraMeta = []string{MetaVersion, MetaCapabilities, MetaClientInfo, MetaLogLevel}

// NameMembers maps methods to the member of their params that the header Mcp-Name repeats (MCP
// 2026-07-28, "Transports"; for tasks SEP-2663).
var NameMembers = map[string]string{
	"tools/call": "name", "prompts/get": "name", "resources/read": "uri",
	"tasks/get": "taskId", "tasks/update": "taskId", "tasks/cancel": "taskId",
}

// SetMeta returns params with a member of _meta set to value, raw JSON. It creates params and
// _meta if they are absent.
func SetMeta(params json.RawMessage, name string, value json.RawMessage) json.RawMessage {
	return WithMeta(wire.Object{Text: params}, name, value).Text
}

// WithMeta is SetMeta for a [wire.Object].
func WithMeta(params wire.Object, name string, value json.RawMessage) wire.Object {
	if len(params.Text) == 0 {
		params.Text = json.RawMessage(`{}`)
	}
	meta := params.Get("_meta")
	if meta == nil {
		meta = []byte(`{}`)
	}
	return params.Set("_meta", wire.Set(meta, name, value))
}

// DeleteMeta returns params without these members of _meta, and without an empty _meta.
func DeleteMeta(params json.RawMessage, names ...string) json.RawMessage {
	return WithoutMeta(wire.Object{Text: params}, names...).Text
}

// WithoutMeta is DeleteMeta for a [wire.Object].
func WithoutMeta(params wire.Object, names ...string) wire.Object {
	meta := params.Get("_meta")
	if meta == nil {
		return params
	}
	kept := wire.Delete(meta, names...)
	switch {
	case len(kept) == len(meta):
		return params
	case string(kept) == "{}":
		return params.Delete("_meta")
	}
	return params.Set("_meta", kept)
}
