// Package approval is between the core and a module that compares the tools of servers with those that
// were approved: it says what the catalogue, the judge and a run ask, and what they are answered.
package approval

import (
	"context"
	"log/slog"
	"maps"
	"reflect"

	"github.com/dynmcp/dynmcp/internal/definition"
	"github.com/dynmcp/dynmcp/schema"
)

// What happens to tools that are not approved.
const (
	Off   = "off"   // nothing: none of the server needs approval
	Warn  = "warn"  // they are reported
	Block = "block" // they are hidden from hosts and not called
)

// Keys are keys of an entry, the section of a module, that say whether the tools of its server need approval.
type Keys interface {
	// Approval returns Off, Warn or Block.
	Approval() string
}

// Needed returns what the keys of a server say, Off if it has none.
func Needed(s schema.Server) string {
	for _, keys := range s.Keys {
		if k, ok := keys.(Keys); ok {
			return k.Approval()
		}
	}
	return Off
}

// Without returns the server with keys that say nothing of that.
func Without(s schema.Server) schema.Server {
	s.Keys = maps.Clone(s.Keys)
	maps.DeleteFunc(s.Keys, func(_ reflect.Type, keys any) bool { _, ok := keys.(Keys); return ok })
	return s
}

// A Source has what was approved.
type Source interface {
	// Guards returns the guards of a config, nil if none of its servers needs one.
	Guards(cfg *schema.Config, log *slog.Logger) Guards
	// File returns the file with what was approved for a config: when it changes, Guards are to be
	// reread.
	File(config string) string
}

// Guards are the guards of the servers of one config.
type Guards interface {
	// Guard returns the guard of a server, nil if it needs none.
	Guard(server string) Guard
	// Reread reads again what was approved, and reports whether that has changed.
	Reread() (changed bool)
	// Listed is told all tools that a server lists to everybody, and reports whether what was approved
	// has changed by that.
	Listed(ctx context.Context, server schema.Server, tools []definition.Tool) (changed bool)
}

// A Guard compares one server with what was approved of it. It is immutable.
type Guard interface {
	// Blocks reports whether tools that are not approved are hidden from hosts and not called.
	Blocks() bool
	// Approves reports whether a tool may be called without a warning.
	Approves(definition.Tool) bool
	// Judge judges the tools that the server lists. shown reports by index which of them are shown to
	// hosts if they are approved.
	Judge(tools []definition.Tool, shown func(i int) bool) Judgement
	// NotApproved is the failure of a call of a tool that is not approved or, with the URI of its page, of
	// the read of one that is not as it was listed or approved.
	NotApproved(tool, page string) error
}

// A Judgement is about the tools of a server.
type Judgement struct {
	Unapproved map[string]Verdict // those that are not approved, by name
	Warnings   []string           // for an operator
	Note       string             // behind the name of the server, for a model
}

// A Verdict says why a tool is not approved.
type Verdict struct {
	Now    string // the digest of the listed tool
	Why    string // the rest of a sentence that begins with the tool
	Remedy string // what to do, as a sentence without its full stop
}

// Of returns the guard of a server, nil if guards are nil, too.
func Of(guards Guards, server string) Guard {
	if guards == nil {
		return nil
	}
	return guards.Guard(server)
}

// Blocks is Blocks of a guard that may be nil.
func Blocks(g Guard) bool { return g != nil && g.Blocks() }
