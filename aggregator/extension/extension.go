// Package extension says what a module can add to what hosts see of an extension of MCP. A Part of a
// module that implements one of the interfaces here is asked by the aggregator. It knows hosts only
// through [Host], and the servers only through the catalogue.
package extension

import (
	"context"
	"encoding/json"
	"net"
	"slices"

	"github.com/dynmcp/dynmcp/catalog"
)

// A Host is the host of a request, with the session in which it was made.
type Host interface {
	// Declares reports whether the host has declared an extension.
	Declares(id string) bool
	// View returns the catalogue for the host.
	View() *catalog.View
	// IsSingleServer reports whether the session is about one server, whose names are unchanged.
	IsSingleServer() bool
	// ListsDirectly reports whether the tools of servers are listed under names of their own.
	ListsDirectly() bool
	// OnThisMachine reports whether the user of the host runs dynmcp on the same machine.
	OnThisMachine() bool
	// Companion connects another host of the same user, which sees what this one sees.
	Companion() net.Conn
	// Seal returns a text that says plain to Open, in the same session only. If each request of the
	// host is a session, it is the user's.
	Seal(purpose, plain string) string
	// Open returns what was sealed for a purpose; ok is false if a text was not, or in another session.
	Open(purpose, sealed string) (plain string, ok bool)
}

// Hosts are the hosts that read one list.
type Hosts struct {
	Able         catalog.Abilities
	Direct       bool // the tools of servers are listed under names of their own
	SingleServer bool // see Host
	Longest      int  // name of a tool
}

// A Tool is an entry of tools/list.
type Tool struct {
	Definition json.RawMessage
	Of         *catalog.Tool // the upstream's tool behind it; may be nil
}

// A Lister adds tools to the list of some hosts.
type Lister interface {
	// Tools returns the tools that are added for hosts. It depends on the arguments and the config alone.
	Tools(Hosts, *catalog.View) []Tool
}

// A Caller has tools that call those of servers.
type Caller interface {
	// Call returns what a call of the host means. It returns nil if the tool is not the Caller's.
	Call(h Host, tool string, arguments json.RawMessage) *Call
}

// A Call is a call of a server's tool.
type Call struct {
	Server, Tool string          // the server's own name of the tool
	Input        json.RawMessage // its arguments; nil for those of the host's call, which is passed on
	Surface      string          // how it is called, for people
	ByView       bool            // a view of the server calls, no model
	Refusal      error           // why the call is refused; nil if it is not
}

// An Answer is the answer of a server to a request of a host.
type Answer struct {
	Method, Server string
	Tool           *catalog.Tool   // that was called; may be nil
	Surface        string          // of the call
	Arguments      json.RawMessage // of the call, if a Keeper keeps them
}

// A Shower changes what hosts are shown of results.
type Shower interface {
	// Show returns the result for the host, which may be part of a line of the server.
	Show(h Host, a Answer, result json.RawMessage) json.RawMessage
}

// A Keeper is a Shower that needs the arguments of some calls.
type Keeper interface {
	Shower
	// Keeps reports whether the Answer to a call of a tool has its arguments.
	Keeps(h Host, t *catalog.Tool, surface string) bool
}

// A Publisher has resources of its own.
type Publisher interface {
	// Resource returns the resource of a URI, nil if it is not the Publisher's.
	Resource(h Host, uri string) Resource
}

// A Resource is one that a host reads.
type Resource interface {
	// Read returns the result of the read. It may make requests as the host.
	Read(context.Context, Requester) (json.RawMessage, error)
}

// A Requester makes requests as a host.
type Requester interface {
	Request(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)
}

// A Finder finds more than tools, for hosts that search with a tool of dynmcp.
type Finder interface {
	// Found returns a text for what a search finds among what a server has, or all with ""; "" for nothing.
	Found(h Host, queries []string, server string) string
	// Shows returns the URI of the resource that the host asks for by this name.
	Shows(h Host, name string) (uri string, ok bool)
}

// A Follower keeps lists of an extension in the listings of servers.
type Follower interface {
	// Lists returns the lists that are fetched of servers which have their extension.
	Lists() []List
}

// A List is a list of an extension.
type List struct {
	Extension string          // its id
	Settings  json.RawMessage // that are announced to hosts which declare it while a server is not known
	Method    string          // that returns the list
	Key       string          // of its entries in a result
}

// A Set is the parts of modules that add something. The zero value adds nothing.
type Set struct {
	listers    []Lister
	callers    []Caller
	showers    []Shower
	keepers    []Keeper
	publishers []Publisher
	finders    []Finder
	lists      []List
}

// Of returns the set of what some parts add.
func Of[P any](parts []P) (s Set) {
	for _, p := range parts {
		if p, ok := any(p).(Lister); ok {
			s.listers = append(s.listers, p)
		}
		if p, ok := any(p).(Caller); ok {
			s.callers = append(s.callers, p)
		}
		if p, ok := any(p).(Shower); ok {
			s.showers = append(s.showers, p)
		}
		if p, ok := any(p).(Keeper); ok {
			s.keepers = append(s.keepers, p)
		}
		if p, ok := any(p).(Publisher); ok {
			s.publishers = append(s.publishers, p)
		}
		if p, ok := any(p).(Finder); ok {
			s.finders = append(s.finders, p)
		}
		if p, ok := any(p).(Follower); ok {
			s.lists = append(s.lists, p.Lists()...)
		}
	}
	return s
}

// Tools returns the tools that all parts add.
func (s *Set) Tools(h Hosts, v *catalog.View) (all []Tool) {
	for _, p := range s.listers {
		all = append(all, p.Tools(h, v)...)
	}
	return all
}

// Call returns what a call means to the first part that knows the tool, nil if none does.
func (s *Set) Call(h Host, tool string, arguments json.RawMessage) *Call {
	for _, p := range s.callers {
		if c := p.Call(h, tool, arguments); c != nil {
			return c
		}
	}
	return nil
}

// Show returns a result as all parts show it.
func (s *Set) Show(h Host, a Answer, result json.RawMessage) json.RawMessage {
	for _, p := range s.showers {
		result = p.Show(h, a, result)
	}
	return result
}

// Keeps reports whether a part keeps the arguments of a call.
func (s *Set) Keeps(h Host, t *catalog.Tool, surface string) bool {
	return slices.ContainsFunc(s.keepers, func(p Keeper) bool { return p.Keeps(h, t, surface) })
}

// Resource returns the resource of the first part that has one of this URI, nil if none has.
func (s *Set) Resource(h Host, uri string) Resource {
	for _, p := range s.publishers {
		if r := p.Resource(h, uri); r != nil {
			return r
		}
	}
	return nil
}

// Found returns what all parts find, a text each.
func (s *Set) Found(h Host, queries []string, server string) (texts []string) {
	for _, p := range s.finders {
		if text := p.Found(h, queries, server); text != "" {
			texts = append(texts, text)
		}
	}
	return texts
}

// Shows returns the URI of the resource that a name means to a part.
func (s *Set) Shows(h Host, name string) (uri string, ok bool) {
	for _, p := range s.finders {
		if uri, ok := p.Shows(h, name); ok {
			return uri, true
		}
	}
	return "", false
}

// Lists returns the lists that are kept.
func (s *Set) Lists() []List { return s.lists }
