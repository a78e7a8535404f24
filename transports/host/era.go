package host

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
)

// requestEra returns the era that the _meta of a request declares. It makes the
// checks on the data plane that the SDK makes on the control plane.
func requestEra(meta json.RawMessage) (transports.Era, *wire.Error) {
	version, ok := wire.Text(wire.Get(meta, transports.MetaVersion))
	if !ok || version < transports.StatelessVersion {
		return transports.Handshake, nil
	}
	if known := mcp.SupportedProtocolVersions(); !slices.Contains(known, version) {
		data, _ := json.Marshal(map[string]any{"supported": known, "requested": version}) // texts always marshal
		return transports.Stateless, &wire.Error{Code: transports.CodeUnsupportedVersion, Message: "unsupported protocol version", Data: data}
	}
	if !wire.IsObject(wire.Get(meta, transports.MetaCapabilities)) {
		return transports.Stateless, transports.OutcomeError(wire.CodeInvalidParams, fmt.Sprintf("missing or invalid _meta field %q", transports.MetaCapabilities), transports.NotSent)
	}
	if info := wire.Get(meta, transports.MetaClientInfo); info != nil && !wire.IsObject(info) {
		return transports.Stateless, transports.OutcomeError(wire.CodeInvalidParams, fmt.Sprintf("invalid _meta field %q", transports.MetaClientInfo), transports.NotSent)
	}
	return transports.Stateless, nil
}

// statelessResult adds the members that the stateless era requires and the result lacks.
// It returns two pieces, to avoid a copy of a large result. outline may be nil.
func statelessResult(method string, result json.RawMessage, outline *wire.Outline) (first, rest []byte) {
	end := bytes.LastIndexByte(result, '}')
	if end < 0 || !wire.IsObject(result) {
		return result, nil
	}
	comma, complete, ttl, scope := "", true, cacheable(method), cacheable(method)
	for key := range outline.Spans(result) {
		comma = ","
		switch name := key.In(result); {
		case wire.EqualString(name, "resultType"):
			complete = false
		case wire.EqualString(name, "ttlMs"):
			ttl = false
		case wire.EqualString(name, "cacheScope"):
			scope = false
		}
	}
	add := func(missing bool, member string) {
		if missing {
			rest = append(append(rest, comma...), member...)
			comma = ","
		}
	}
	add(complete, `"resultType":"complete"`)
	add(ttl, `"ttlMs":0`)
	add(scope, `"cacheScope":"private"`)
	return result[:end], append(rest, result[end:]...)
}

func cacheable(method string) bool {
	switch method {
	case "server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read":
		return true
	}
	return false
}
