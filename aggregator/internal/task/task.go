// Package task translates tasks between hosts and upstreams.
//
// A task is a call that is answered with a handle, by whose id the host asks for the
// result later. In the handshake era the host wants a call to be one (MCP 2025-11-25,
// "Tasks"); in the stateless era the server decides, for hosts that declare the
// extension io.modelcontextprotocol/tasks (2026-07-28). They pass between a host and
// an upstream that declare the same kind, and are not made into each other.
//
// The id that a host has of a task begins with its server's name, like the name of a
// tool: nothing has to be remembered, whatever is loaded, reloaded or restarted.
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

const (
	extension   = "io.modelcontextprotocol/tasks"
	metaRelated = "io.modelcontextprotocol/related-task"
	// codeMissingCapability is the error for a request that takes a capability which
	// its sender has not declared (MCP 2026-07-28).
	codeMissingCapability = -32021
)

// Declared returns which tasks the capabilities of a peer of an era declare.
func Declared(capabilities json.RawMessage, era transports.Era) catalog.Tasks {
	switch {
	case era == transports.Stateless && wire.IsObject(wire.Get(capabilities, "extensions", extension)):
		return catalog.StatelessTasks
	case era == transports.Handshake && wire.IsObject(wire.Get(capabilities, "tasks")):
		return catalog.HandshakeTasks
	}
	return catalog.NoTasks
}

// Offered returns which tasks an upstream makes of calls.
func Offered(conn *upstream.Conn) catalog.Tasks {
	capabilities := conn.ServerInfo().Capabilities
	if conn.Era() == transports.Handshake && wire.Get(capabilities, "tasks", "requests", "tools", "call") == nil {
		return catalog.NoTasks
	}
	return Declared(capabilities, conn.Era())
}

// Advertise returns the capabilities that a host is told of with the tasks that it can
// follow and some server of a view offers, or may: one that is not known yet. A host that
// declares no tasks is told of none.
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
	if wire.Get(extensions, extension) != nil {
		extensions = wire.Delete(extensions, extension)
		capabilities = wire.Set(capabilities, "extensions", extensions)
	}
	switch {
	case follows == catalog.StatelessTasks && offered("extensions", extension):
		if !wire.IsObject(extensions) {
			extensions = []byte(`{}`)
		}
		capabilities = wire.Set(capabilities, "extensions", wire.Set(extensions, extension, []byte(`{}`)))
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

// Missing is the answer to a host that asks about tasks and has not declared the
// extension.
func Missing() *wire.Error {
	return &wire.Error{
		Code:    codeMissingCapability,
		Message: "missing required client capability " + extension,
		Data:    fmt.Appendf(nil, `{"requiredCapabilities":{"extensions":{%q:{}}}}`, extension),
	}
}

// OnlyTask is the answer to a call by its own name of a tool that runs only as a task,
// and so is not shown to the host: its server would refuse it so. It is nil for any
// other name.
func OnlyTask(views *catalog.Views, era transports.Era, name string) *wire.Error {
	for _, view := range views {
		switch t, ok := view.Direct(name); {
		case !ok || !t.OnlyTask:
		case era == transports.Stateless:
			return Missing()
		default:
			return &wire.Error{Code: wire.CodeMethodNotFound, Message: fmt.Sprintf("%s runs only as a task, which this host has not declared that it follows", name)}
		}
	}
	return nil
}

// ToHostID returns a text of an upstream with the id that hosts have of a task in the place of
// the upstream's own, which is at path.
func ToHostID(server string, text json.RawMessage, path ...string) json.RawMessage {
	at := wire.Find(text, path...)
	own, ok := wire.Text(at.In(text))
	if !ok {
		return text
	}
	return wire.Replace(text, wire.Edit{Span: at, With: wire.Quote(server + "/" + own)})
}

// ToHostRelation is ToHostID of the task that a message is about, as its _meta says.
func ToHostRelation(server string, text json.RawMessage) json.RawMessage {
	return ToHostID(server, text, "_meta", metaRelated, "taskId")
}

// ToUpstreamRelation undoes ToHostRelation in what a host answers.
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
