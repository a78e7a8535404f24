package host

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
)

// Limits of what a host says of itself that is kept while it is connected: of its capabilities, and
// of everything else.
const (
	maxDeclared = 64 << 10
	maxInfo     = 1 << 10
)

// introductionOf returns what a request says of its host, nil if nothing.
func introductionOf(r *Request) (info, capabilities, version json.RawMessage) {
	switch {
	case r.Era == transports.Stateless:
		return wire.Get(r.Meta, transports.MetaClientInfo), wire.Get(r.Meta, transports.MetaCapabilities), nil
	case r.Method == "initialize":
		return wire.Get(r.Params, "clientInfo"), wire.Get(r.Params, "capabilities"), wire.Get(r.Params, "protocolVersion")
	}
	return nil, nil, nil
}

// introductionProblem returns the error for a host that declares too much, nil otherwise.
func introductionProblem(r *Request) *wire.Error {
	_, capabilities, version := introductionOf(r)
	for _, part := range []struct {
		name      string
		has, most int
	}{{"capabilities", len(capabilities), maxDeclared}, {"protocolVersion", len(version), maxInfo}} {
		if part.has > part.most {
			return transports.InvalidParams("the host's %s: %d bytes are more than %d", part.name, part.has, part.most)
		}
	}
	return nil
}

// withoutLooks returns the params of a request for the SDK, whose session keeps them: without icons,
// long names and other members that nobody reads there.
func withoutLooks(r *Request) json.RawMessage {
	someone := json.RawMessage(`{"name":"host","version":"1"}`)
	switch info, capabilities, version := introductionOf(r); {
	case r.Era == transports.Stateless && len(info) > maxInfo:
		return transports.SetMeta(r.Params, transports.MetaClientInfo, someone)
	case r.Era != transports.Stateless && r.Method == "initialize" && len(r.Params)-len(capabilities) > maxInfo:
		kept := wire.Set([]byte(`{}`), "clientInfo", someone)
		if capabilities != nil {
			kept = wire.Set(kept, "capabilities", capabilities)
		}
		if version != nil {
			kept = wire.Set(kept, "protocolVersion", version)
		}
		return kept
	}
	return r.Params
}

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
		return transports.Stateless, transports.InvalidParams("missing or invalid _meta field %q", transports.MetaCapabilities)
	}
	if info := wire.Get(meta, transports.MetaClientInfo); info != nil && !wire.IsObject(info) {
		return transports.Stateless, transports.InvalidParams("invalid _meta field %q", transports.MetaClientInfo)
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
