package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// The protocol of 2026-07-28: there is no handshake, every request names its version, results have a
// resultType, notifications come on subscriptions/listen, and questions of the server are results
// that ask for input.

const (
	newVersion = "2026-07-28"
	metaPrefix = "io.modelcontextprotocol/"
)

// meta is the _meta of a request of the new era.
type meta struct {
	Version      string          `json:"io.modelcontextprotocol/protocolVersion"`
	Capabilities json.RawMessage `json:"io.modelcontextprotocol/clientCapabilities"`
	LogLevel     string          `json:"io.modelcontextprotocol/logLevel"`
}

func (m message) meta() meta {
	var params struct {
		Meta meta `json:"_meta"`
	}
	_ = json.Unmarshal(m.Params, &params)
	return params.Meta
}

// modern reports whether the call follows the new protocol.
func (c *call) modern() bool { return c.about.Version >= newVersion }

// admit returns an error for a request that the era or the state of the session does not allow.
func (c *call) admit() error {
	era := c.peer.fake.cfg.era
	switch {
	case c.modern() && era == "old" || !c.modern() && era == "new":
		return c.wrongEra()
	case c.modern() && c.about.Version != newVersion:
		return unsupported(c.about.Version, []string{newVersion})
	case c.modern() && c.about.Capabilities == nil:
		return failure(-32602, "missing _meta field %q", metaPrefix+"clientCapabilities")
	case c.modern() && slices.Contains(removed, c.Method):
		return noSuchMethod(c.Method)
	case !c.modern() && !c.peer.initialized() && c.Method != "initialize" && c.Method != "ping" && c.Method != "server/discover":
		return failure(-32600, "%s before initialize", c.Method)
	}
	return nil
}

// wrongEra returns the error for a client of the other era.
func (c *call) wrongEra() error {
	switch {
	case c.modern():
		return noSuchMethod(c.Method)
	case c.Method == "initialize":
		return unsupported("", []string{newVersion})
	}
	return failure(-32602, "missing _meta field %q", metaPrefix+"protocolVersion")
}

func unsupported(asked string, supported []string) *rpcError {
	data, _ := json.Marshal(map[string]any{"requested": asked, "supported": supported}) // strings always marshal
	return &rpcError{json.RawMessage("-32022"), "Unsupported protocol version", data}
}

// removed are the methods that the new protocol removed.
var removed = []string{"initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"}

func (c *call) discover() (json.RawMessage, error) {
	if !c.modern() {
		return nil, noSuchMethod(c.Method)
	}
	f := c.peer.fake
	supported := []string{newVersion}
	if f.cfg.era == "both" {
		supported = append(supported, versions...)
	}
	list, err := json.Marshal(supported)
	return fmt.Appendf(nil, `{%s,%s"capabilities":%s,"supportedVersions":%s,"_meta":{"%sserverInfo":%s}}`,
		grease, f.instructions(), f.capabilities(), list, metaPrefix, f.serverInfo()), err
}

// modernize adds the members that results of the new protocol must have.
func (c *call) modernize(result json.RawMessage) json.RawMessage {
	if !c.modern() || c.Method == "tools/call" && c.toolName() == "raw" {
		return result
	}
	if bytes.HasPrefix(result, []byte(`{"resultType"`)) {
		return result
	}
	more := `"resultType":"complete"`
	if strings.HasSuffix(c.Method, "/list") || c.Method == "resources/read" || c.Method == "server/discover" {
		more += `,"ttlMs":0,"cacheScope":"private"`
	}
	rest := string(result[1:])
	if rest != "}" {
		more += ","
	}
	return json.RawMessage("{" + more + rest)
}

// input asks the client in a result, and returns its answer on the retry.
func (c *call) input(method string, params json.RawMessage) (json.RawMessage, error) {
	const state = "opaque <state> é"
	var retry struct {
		Responses json.RawMessage `json:"inputResponses"`
		State     string          `json:"requestState"`
	}
	if err := decode(c.Params, &retry); err != nil {
		return nil, err
	}
	switch {
	case retry.Responses != nil && retry.State == state:
		return textResult(string(retry.Responses), fmt.Sprintf(`,"structuredContent":%s`, retry.Responses)), nil
	case retry.Responses != nil:
		return nil, failure(-32602, "unknown requestState %q", retry.State)
	}
	if params != nil {
		params = fmt.Appendf(nil, `,"params":%s`, params)
	}
	return fmt.Appendf(nil, `{"resultType":"input_required",%s,"requestState":%s,"inputRequests":{"ask é":{"method":%s%s}}}`,
		grease, quote(state), quote(method), params), nil
}
