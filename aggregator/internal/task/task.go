// Package task translates tasks between hosts and upstreams.
//
// A task is a call that is answered with an id, by which the host requests the result
// later. In the handshake era the host requests a task (MCP 2025-11-25, "Tasks"); in the
// stateless era the server decides, for hosts that declare the extension
// io.modelcontextprotocol/tasks (2026-07-28). A task passes between a host and an upstream
// that declare the same kind. One kind is not converted to the other.
//
// The host's id of a task begins with the name of its server, like the name of a tool, so
// that nothing has to be remembered across reloads and restarts.
package task

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// Extension is the id of the extension of the stateless era.
const Extension = "io.modelcontextprotocol/tasks"

const (
	metaRelated = "io.modelcontextprotocol/related-task"
	// codeMissingCapability is the error for a request that needs a capability which
	// its sender has not declared (MCP 2026-07-28).
	codeMissingCapability = -32021
)

// Declared returns the kind of tasks in the capabilities of a peer of an era.
func Declared(capabilities json.RawMessage, era transports.Era) catalog.Tasks {
	switch {
	case era == transports.Stateless && wire.IsObject(wire.Get(capabilities, "extensions", Extension)):
		return catalog.StatelessTasks
	case era == transports.Handshake && wire.IsObject(wire.Get(capabilities, "tasks")):
		return catalog.HandshakeTasks
	}
	return catalog.NoTasks
}

// Offered returns the kind of tasks that an upstream makes of calls.
func Offered(conn *upstream.Conn) catalog.Tasks {
	capabilities := conn.ServerInfo().Capabilities
	if conn.Era() == transports.Handshake && wire.Get(capabilities, "tasks", "requests", "tools", "call") == nil {
		return catalog.NoTasks
	}
	return Declared(capabilities, conn.Era())
}

// Advertise returns the capabilities for a host, with the kind of tasks that it can use if a
// server of a view offers it, or is not known yet.
func Advertise(capabilities json.RawMessage, follows catalog.Tasks, view *catalog.View) json.RawMessage {
	offered := func(capability ...string) bool {
		for _, server := range view.Servers() {
			if !server.Loaded && !server.Stored || server.Tasks == follows && wire.Get(server.Capabilities, capability...) != nil {
				return true
			}
		}
		return false
	}
	capabilities = wire.Delete(capabilities, "tasks")
	extensions := wire.Get(capabilities, "extensions")
	if wire.Get(extensions, Extension) != nil {
		extensions = wire.Delete(extensions, Extension)
		capabilities = wire.Set(capabilities, "extensions", extensions)
	}
	switch {
	case follows == catalog.StatelessTasks && offered("extensions", Extension):
		if !wire.IsObject(extensions) {
			extensions = []byte(`{}`)
		}
		capabilities = wire.Set(capabilities, "extensions", wire.Set(extensions, Extension, []byte(`{}`)))
	case follows == catalog.HandshakeTasks && offered("tasks"):
		capabilities = wire.Set(capabilities, "tasks", handshakeTasks(offered))
	}
	return capabilities
}

// handshakeTasks returns the capability of the handshake era.
func handshakeTasks(offered func(...string) bool) json.RawMessage {
	tasks := json.RawMessage(`{"requests":{"tools":{"call":{}}}}`)
	for _, name := range []string{"list", "cancel"} {
		if offered("tasks", name) {
			tasks = wire.Set(tasks, name, []byte(`{}`))
		}
	}
	return tasks
}

// Missing returns the error for a request about tasks of a host that has not declared the
// extension.
func Missing() *wire.Error {
	return &wire.Error{
		Code:    codeMissingCapability,
		Message: "missing required client capability " + Extension,
		Data:    fmt.Appendf(nil, `{"requiredCapabilities":{"extensions":{%q:{}}}}`, Extension),
	}
}

// OnlyTask returns the error for a call, by its own name, of a tool that runs only as a task
// and is not shown to the host. Its server would refuse the call with the same error. OnlyTask
// returns nil for any other name.
func OnlyTask(views *catalog.Views, era transports.Era, name string) *wire.Error {
	for _, view := range views {
		switch t, ok := view.Direct(name); {
		case !ok || !t.OnlyTask:
		case era == transports.Stateless:
			return Missing()
		default:
			return transports.OutcomeError(wire.CodeMethodNotFound, fmt.Sprintf("%s runs only as a task, and this host has not declared tasks", name), transports.NotSent)
		}
	}
	return nil
}

// ToHostID replaces the upstream's id of a task, which is at path in text, with the host's.
func ToHostID(server string, text json.RawMessage, path ...string) json.RawMessage {
	at := wire.Find(text, path...)
	own, ok := wire.Text(at.In(text))
	if !ok {
		return text
	}
	return wire.Replace(text, wire.Edit{Span: at, With: wire.Quote(server + "/" + own)})
}

// ToHostRelation is ToHostID for the task that a message refers to in its _meta.
func ToHostRelation(server string, text json.RawMessage) json.RawMessage {
	return ToHostID(server, text, "_meta", metaRelated, "taskId")
}

// ToUpstreamRelation reverses ToHostRelation in a host's answer.
func ToUpstreamRelation(server string, text json.RawMessage) json.RawMessage {
	at := wire.Find(text, "_meta", metaRelated, "taskId")
	id, _ := wire.Text(at.In(text))
	if named, own, _ := strings.Cut(id, "/"); named == server {
		return wire.Replace(text, wire.Edit{Span: at, With: wire.Quote(own)})
	}
	return text
}

// About returns the params of a request about a task, by the server's own id.
func About(id string) json.RawMessage {
	return append(append([]byte(`{"taskId":`), wire.Quote(id)...), '}')
}
