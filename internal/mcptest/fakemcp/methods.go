package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// versions are the protocol versions of the initialize era, newest last.
var versions = []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"}

// dispatch answers one request correctly.
func (c *call) dispatch() (json.RawMessage, error) {
	if capability := capabilityOf(c.Method); capability != "" && !c.peer.fake.serves(capability) {
		return nil, noSuchMethod(c.Method)
	}
	if err := c.admit(); err != nil {
		return nil, err
	}
	switch c.Method {
	case "server/discover":
		return c.discover()
	case "subscriptions/listen":
		return c.listen()
	case "initialize":
		return c.initialize()
	case "ping":
		return json.RawMessage(`{}`), nil
	case "tools/list":
		return c.list("tools")
	case "resources/list":
		return c.list("resources")
	case "resources/templates/list":
		return c.list("resourceTemplates")
	case "prompts/list":
		return c.list("prompts")
	case "tools/call":
		return c.callTool()
	case "resources/read":
		return c.readResource()
	case "resources/subscribe":
		return c.watch(true)
	case "resources/unsubscribe":
		return c.watch(false)
	case "prompts/get":
		return c.getPrompt()
	case "completion/complete":
		return c.complete()
	case "tasks/get", "tasks/update", "tasks/cancel":
		if c.peer.fake.cfg.tasks {
			return c.aboutTask()
		}
	case "logging/setLevel":
		return json.RawMessage(`{` + grease + `}`), nil
	}
	return nil, noSuchMethod(c.Method)
}

// serves reports whether a capability's methods are answered.
func (f *fake) serves(capability string) bool {
	return !f.cfg.no[capability] && !f.cfg.refuse[capability]
}

func capabilityOf(method string) string {
	kind, _, _ := strings.Cut(method, "/")
	switch kind {
	case "tools", "resources", "prompts", "logging":
		return kind
	case "completion":
		return "completions"
	}
	return ""
}

func (c *call) initialize() (json.RawMessage, error) {
	var params struct {
		ProtocolVersion string
		Capabilities    json.RawMessage
	}
	if err := decode(c.Params, &params); err != nil {
		return nil, err
	}
	c.peer.setReady(params.Capabilities)
	return c.peer.fake.welcome(params.ProtocolVersion), nil
}

// welcome returns the result of initialize for the requested version.
func (f *fake) welcome(asked string) json.RawMessage {
	version := asked
	switch {
	case f.cfg.protocol != "":
		version = f.cfg.protocol
	case !slices.Contains(versions, asked):
		version = versions[len(versions)-1]
	}
	return fmt.Appendf(nil, `{%s,"serverInfo":%s,%s"capabilities":%s,"protocolVersion":%s}`,
		grease, f.serverInfo(), f.instructions(), f.capabilities(), quote(version))
}

func (f *fake) serverInfo() []byte {
	return fmt.Appendf(nil, `{"version":"1.0.0","name":%s,"title":"Fake",%s}`, quote(f.cfg.name), grease)
}

func (f *fake) instructions() string {
	if f.cfg.instructions == "" {
		return ""
	}
	return fmt.Sprintf(`"instructions":%s,`, quote(f.cfg.instructions))
}

func (f *fake) capabilities() string {
	all := []string{`"experimental":{"x-grease":{"f":1.0}}`}
	for _, c := range []struct{ name, value string }{
		{"tools", `{"listChanged":true}`},
		{"resources", `{"subscribe":true,"listChanged":true}`},
		{"prompts", `{"listChanged":true}`},
		{"logging", `{}`},
		{"completions", `{}`},
	} {
		if !f.cfg.no[c.name] {
			all = append(all, fmt.Sprintf("%q:%s", c.name, c.value))
		}
	}
	if f.cfg.tasks {
		all = append(all, fmt.Sprintf(`"extensions":{%q:{}}`, extensionTasks))
	}
	return "{" + strings.Join(all, ",") + "}"
}

// event returns the call's line in the ledger: the method, and the name or URI in its params. Lists
// and calls, which are counted most, are shorter.
func (c *call) event() string {
	p := c.params // params that cannot be decoded are left out
	var arguments struct{ Nonce string }
	if bytes.Contains(p.Arguments, []byte(`"nonce"`)) {
		_ = json.Unmarshal(p.Arguments, &arguments)
	}
	kind, isList := strings.CutSuffix(c.Method, "/list")
	switch {
	case c.Method == "tools/call":
		return "call " + p.Name + " " + arguments.Nonce
	case isList:
		return "list " + kind
	}
	return c.Method + " " + p.Name + p.URI + p.Level + p.ProtocolVersion
}
