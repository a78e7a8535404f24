package mcptest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Notify sends a notification. See Raw for params.
func (c *Conn) Notify(method string, params any) {
	c.t.Helper()
	c.Send(envelope("", method, params))
}

// Call sends a request and waits for the answer.
func (c *Conn) Call(method string, params any) Message {
	c.t.Helper()
	return c.Go(method, params).Wait()
}

// CallRaw is Call with the given bytes as the id.
func (c *Conn) CallRaw(id, method string, params any) Message {
	c.t.Helper()
	return c.GoRaw(id, method, params).Wait()
}

// Tool calls a tool. Without arguments (nil) the request has none.
func (c *Conn) Tool(name string, arguments any) Message {
	c.t.Helper()
	return c.Call("tools/call", ToolParams(name, arguments))
}

// ToolParams returns the params of a tool call, with further members, each as `"name":value`.
func ToolParams(name string, arguments any, more ...string) json.RawMessage {
	members := []string{`"name":` + string(encode(name))}
	if arguments != nil {
		members = append(members, `"arguments":`+string(Raw(arguments)))
	}
	return json.RawMessage("{" + strings.Join(append(members, more...), ",") + "}")
}

// Initialize performs the handshake and returns the answer. Nil means no capabilities.
func (c *Conn) Initialize(version string, capabilities any) Message {
	c.t.Helper()
	m := c.Call("initialize", initializeParams(version, capabilities))
	if m.Error != nil {
		c.t.Fatalf("initialize: %s\n%s", m.Error, c.report())
	}
	c.Notify("notifications/initialized", nil)
	return m
}

func initializeParams(version string, capabilities any) string {
	if capabilities == nil {
		capabilities = `{}`
	}
	return fmt.Sprintf(`{"protocolVersion":%q,"capabilities":%s,"clientInfo":{"name":"mcptest","version":"1"}}`, version, Raw(capabilities))
}

// ModernMeta returns the _meta member of a request of protocol 2026-07-28, for ToolParams or params.
// Nil means no capabilities.
func ModernMeta(capabilities any, more ...string) string {
	if capabilities == nil {
		capabilities = `{}`
	}
	const prefix = "io.modelcontextprotocol/"
	members := append([]string{
		`"` + prefix + `protocolVersion":"2026-07-28"`,
		`"` + prefix + `clientInfo":{"name":"mcptest","version":"1"}`,
		`"` + prefix + `clientCapabilities":` + string(Raw(capabilities)),
	}, more...)
	return `"_meta":{` + strings.Join(members, ",") + `}`
}

// A Pending is a request that was sent.
type Pending struct {
	ID   json.RawMessage
	conn *Conn
	from int // lines received before it was sent
}

// Go sends a request and does not wait.
func (c *Conn) Go(method string, params any) *Pending {
	c.t.Helper()
	c.mu.Lock()
	c.nextID++
	id := strconv.Itoa(c.nextID)
	c.mu.Unlock()
	return c.GoRaw(id, method, params)
}

// GoRaw is Go with the given bytes as the id.
func (c *Conn) GoRaw(id, method string, params any) *Pending {
	c.t.Helper()
	p := &Pending{json.RawMessage(id), c, len(c.Messages())}
	c.Send(envelope(id, method, params))
	return p
}

// Wait waits for the answer.
func (p *Pending) Wait() Message {
	p.conn.t.Helper()
	return p.conn.wait(p.from, "an answer to request "+string(p.ID), p.answeredBy)
}

// Done reports whether the answer has arrived.
func (p *Pending) Done() bool {
	came, _ := p.conn.after(p.from)
	return slices.ContainsFunc(came, p.answeredBy)
}

// Cancel sends a cancellation of the request.
func (p *Pending) Cancel(reason string) {
	p.conn.t.Helper()
	p.conn.Notify("notifications/cancelled", fmt.Sprintf(`{"requestId":%s,"reason":%s}`, p.ID, encode(reason)))
}

func (p *Pending) answeredBy(m Message) bool {
	return m.IsAnswer() && string(m.ID) == string(p.ID)
}

func envelope(id, method string, params any) string {
	if id != "" {
		id = `,"id":` + id
	}
	member := ""
	if params != nil {
		member = `,"params":`
	}
	return `{"jsonrpc":"2.0"` + id + `,"method":` + string(encode(method)) + member + string(Raw(params)) + "}"
}
