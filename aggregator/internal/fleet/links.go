package fleet

import (
	"bytes"
	"encoding/json"
	"iter"

	"github.com/dynmcp/dynmcp/aggregator/internal/sessions"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/catalog/names"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/lazy"
)

// Names finds the upstreams that the names of resources and prompts belong to.
type Names struct {
	fleet *Fleet
	users sessions.UserLinks
}

func (ns *Names) of(s *sessions.Session) *names.Table {
	return ns.fleet.Views(s)[catalog.NoTasks].Names()
}

// links returns what a session keeps of results. Requests that are sessions of their own share those of
// their user.
func (ns *Names) links(s *sessions.Session) *sessions.Links {
	if s.Persistent {
		return &s.Links
	}
	return ns.users.Of(s.User)
}

// Resource returns the entry of the server that a URI belongs to for a session, and the server's own
// form of the URI. The server is that in the URI, that of the newest result with the URI, that of
// [names.Table.Resource], or the only server, if it is connected. If several servers have the URI, it
// returns their names instead. A session about one server always gets that server.
func (ns *Names) Resource(s *sessions.Session, uri string) (u *lazy.Upstream, own string, several []string) {
	f := ns.fleet
	if s.IsSingleServer() {
		return f.Single(s), uri, nil
	}
	view := f.Views(s)[catalog.NoTasks]
	if owner, scoped := view.Names().Scoped(uri); scoped {
		return f.Get(s, owner.Server), owner.Name, nil
	}
	if u := f.Get(s, ns.links(s).Server(uri)); u != nil {
		return u, uri, nil
	}
	owner, several := view.Names().Resource(uri)
	if u := f.Get(s, owner.Server); u != nil || several != nil {
		return u, uri, several
	}
	if all := view.Servers(); len(all) == 1 { // no other can be meant
		if u := f.ExistingFor(s, f.Get(s, all[0].Name)); u != nil && u.Conn() != nil && u.Conn().ServerInfo().Has("resources") {
			return f.Set.Get(all[0].Name), uri, nil
		}
	}
	return nil, uri, nil
}

// Prompt is Resource for a prompt.
func (ns *Names) Prompt(s *sessions.Session, name string) (u *lazy.Upstream, own string, several []string) {
	if s.IsSingleServer() {
		return ns.fleet.Single(s), name, nil
	}
	owner, several := ns.of(s).Prompt(name)
	return ns.fleet.Get(s, owner.Server), owner.Name, several
}

// maxLinksOfOne is how many URIs of one result are kept, so that they do not displace those of others.
const maxLinksOfOne = 256

// Show returns a result of a server for a session, and keeps its URIs: those that are also
// another server's have the server in them, if they are in links, embedded resources or contents of
// resources. With scoped all of these have it. A result without is returned as it is.
func (ns *Names) Show(s *sessions.Session, server string, result json.RawMessage, scoped bool) json.RawMessage {
	if s.IsSingleServer() || !bytes.Contains(result, uriKey) {
		return result
	}
	table, links := ns.of(s), ns.links(s)
	shown := func(uri string) string {
		if scoped {
			return names.Scoped(server, uri)
		}
		return table.Shown(server, uri, links.Server(uri))
	}
	kept, grown, others := 0, false, false
	for uri := range uris(result) {
		switch {
		case shown(uri) != uri:
			others = true
		case kept < maxLinksOfOne:
			kept++
			grown = links.Add(uri, server) || grown
		}
	}
	if grown && s.Persistent && !s.Count() { // its account may not have the memory
		links.Forget()
		s.Count()
	}
	if !others {
		return result
	}
	var edits []wire.Edit
	for at := range linksIn(result) {
		if uri, ok := wire.Text(at.In(result)); ok && shown(uri) != uri {
			edits = append(edits, wire.Edit{Span: at, With: wire.Quote(shown(uri))})
		}
	}
	if edits == nil {
		return result
	}
	return wire.Replace(result, edits...)
}

// ShowView returns the result of a server's tool with the URI of its view as a session's host can read it.
// meta is the _meta of the result.
func (ns *Names) ShowView(s *sessions.Session, server string, result, meta json.RawMessage) json.RawMessage {
	if s.IsSingleServer() || !names.MayHaveView(meta) {
		return result
	}
	return ns.of(s).ShowViews(server, result)
}

var uriKey = []byte(`"uri"`)

// uris yields the values of members "uri". One search for bytes excludes most results, which have
// none.
func uris(result json.RawMessage) iter.Seq[string] {
	return func(yield func(string) bool) {
		for {
			at := bytes.Index(result, uriKey)
			if at < 0 {
				return
			}
			result = result[at+len(uriKey):]
			// Inside a string the quotes would be escaped, so this is the name of a member, or a
			// string without a following colon.
			after := bytes.TrimLeft(result, " \t\r\n")
			if len(after) == 0 || after[0] != ':' {
				continue
			}
			after = bytes.TrimLeft(after[1:], " \t\r\n")
			if end, err := wire.Skip(after, 0); err == nil {
				if uri, ok := wire.Text(after[:end]); ok && !yield(uri) {
					return
				}
				result = after[end:]
			}
		}
	}
}

// linksIn yields the positions of the URIs of links and resources in a result: of a tool, of a task that
// has ended, of a prompt, of a read, or of a method of an extension.
func linksIn(result json.RawMessage) iter.Seq[wire.Span] {
	return func(yield func(wire.Span) bool) {
		ok := true
		uri := func(of json.RawMessage, path ...string) {
			if at := wire.Locate(result, wire.Get(of, path...)); ok && at.Len > 0 && result[at.Off] == '"' {
				ok = yield(at)
			}
		}
		content := func(item json.RawMessage) {
			switch kind, _ := wire.Text(wire.Get(item, "type")); kind {
			case "resource_link":
				uri(item, "uri")
			case "resource":
				uri(item, "resource", "uri")
			}
		}
		for _, list := range [][]byte{wire.Get(result, "content"), wire.Get(result, "result", "content")} {
			for item := range wire.Elements(list) {
				content(item)
			}
		}
		for message := range wire.Elements(wire.Get(result, "messages")) {
			if said := wire.Get(message, "content"); wire.IsObject(said) {
				content(said)
			} else {
				for item := range wire.Elements(said) {
					content(item)
				}
			}
		}
		var within func(value json.RawMessage)
		within = func(value json.RawMessage) {
			for item := range wire.Elements(value) {
				within(item)
			}
			for key, member := range wire.Members(value) {
				if wire.EqualString(key, "uri") {
					uri(value, "uri")
				} else {
					within(member)
				}
			}
		}
		for key, value := range wire.Members(result) {
			switch name, _ := wire.Text(key); name {
			case "content", "result", "messages", "structuredContent", "_meta":
			case "contents":
				for item := range wire.Elements(value) {
					uri(item, "uri")
				}
			default: // of an extension
				within(value)
			}
		}
	}
}
