package aggregator

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/dynmcp/dynmcp/aggregator/extension"
	"github.com/dynmcp/dynmcp/aggregator/internal/fleet"
	"github.com/dynmcp/dynmcp/aggregator/internal/forward"
	"github.com/dynmcp/dynmcp/aggregator/internal/task"
	"github.com/dynmcp/dynmcp/aggregator/surface"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/transports"
)

// dynmcp announces the extensions of its servers, also those that it does not know, and passes requests
// for them on. The methods of an extension "vendor.example/x" begin with "x/".

// withExtensions adds the extensions of a view's servers to capabilities. Of two servers with one
// extension, the settings of the first are announced, with what only the second has. A server that is not
// known yet may have views, and the extensions of which lists are kept: a host that declares one of these is
// told so.
func (q request) withExtensions(capabilities json.RawMessage, view *catalog.View) json.RawMessage {
	all := []byte(`{}`)
	for _, server := range view.Servers() {
		for key, settings := range wire.Members(wire.Get(server.Capabilities, "extensions")) {
			id, _ := wire.Text(key)
			if id == "" || id == task.Extension {
				continue
			}
			if first := wire.Get(all, id); first != nil {
				settings = withMembers(first, settings)
			}
			all = wire.Set(all, string(bytes.Trim(key, `"`)), settings)
		}
	}
	if !view.Complete() && q.Able().ShowsViews() && wire.Get(all, catalog.AppsExtension) == nil {
		all = wire.Set(all, catalog.AppsExtension, []byte(`{}`))
	}
	for _, list := range q.agg.opts.Extensions.Lists() {
		if !view.Complete() && q.Declares(list.Extension) && wire.Get(all, list.Extension) == nil {
			all = wire.Set(all, list.Extension, list.Settings)
		}
	}
	if len(all) == len(`{}`) {
		return capabilities
	}
	return wire.Set(capabilities, "extensions", all)
}

// withMembers returns an object with the members of others that it lacks.
func withMembers(object, others json.RawMessage) json.RawMessage {
	for key, value := range wire.Members(others) {
		if name, _ := wire.Text(key); name != "" && wire.IsObject(object) && wire.Get(object, name) == nil {
			object = wire.Set(object, string(bytes.Trim(key, `"`)), value)
		}
	}
	return object
}

// extending returns the servers with an extension whose methods begin with area/, in config order.
func (s session) extending(area string) (all []*lazy.Upstream) {
	for _, server := range s.Plain().Servers() {
		for key := range wire.Members(wire.Get(server.Capabilities, "extensions")) {
			id, _ := wire.Text(key)
			if u := s.agg.fleet.Get(s.Session, server.Name); strings.HasSuffix(id, "/"+area) && fleet.IsOffered(u) && !slices.Contains(all, u) {
				all = append(all, u)
			}
		}
	}
	return all
}

// passExtension sends on a request with a method that is not MCP's, of a session with several servers:
// a list to all servers that have its extension, another one to the server that its URI belongs to,
// or else to the only server that has the extension.
func (q request) passExtension() {
	r := q.r
	area, _, _ := strings.Cut(r.Method, "/")
	all := q.extending(area)
	if strings.HasPrefix(r.Method, "resources/") { // of an extension of resources: by its URI
		if uri, ok := q.member("uri"); ok {
			q.sendTo(q.resource(uri, r.Era), "uri")
		}
		return
	}
	raw, _, err := wire.GetStrict(r.Params, "uri", "_meta")
	uri, named := wire.Text(raw)
	switch to := q.resource(uri, r.Era); {
	case err != nil && r.Params != nil:
		r.Reply(nil, transports.InvalidParams("%s: %v", r.Method, err))
	case len(all) > 0 && strings.HasSuffix(r.Method, "/list") && !named:
		q.listOfAll(all)
	case named && (to.known() || len(all) > 1):
		q.sendTo(to, "uri")
	case len(all) == 0 && q.isKept(r.Method):
		q.emptyList()
	case len(all) == 1:
		q.agg.calls.Dispatch(q.Session, r, forward.Route{Upstream: all[0], Params: r.Params})
	case len(all) > 1:
		r.Reply(nil, transports.InvalidParams("%s: several servers have it, and nothing says which is meant", r.Method))
	case q.Surface().AnyMethod:
		q.passOn("")
	default:
		r.Reply(nil, unknownMethod(r.Method))
	}
}

// isKept reports whether a method is a list of an extension that the listings of servers have.
func (q request) isKept(method string) bool {
	return slices.ContainsFunc(q.agg.opts.Extensions.Lists(), func(l extension.List) bool { return l.Method == method })
}

// emptyList answers a list which no server is known to have, after those that are starting.
func (q request) emptyList() {
	area, _, _ := strings.Cut(q.r.Method, "/")
	q.answer(surface.Question{Known: func() bool { return len(q.extending(area)) > 0 }, Answer: func() {
		if all := q.extending(area); len(all) > 0 {
			q.listOfAll(all)
			return
		}
		for _, l := range q.agg.opts.Extensions.Lists() {
			if l.Method == q.r.Method {
				q.r.Reply(wire.Set([]byte(`{}`), l.Key, []byte(`[]`)), nil)
			}
		}
	}}, false)
}

// maxPages limits the pages of a list that are fetched from one server.
const maxPages = 100

// A union is a list of an extension, of several servers.
type union struct {
	request
	pages [][]json.RawMessage // by server

	mu   sync.Mutex
	open int // servers that have not answered
	errs []error
}

// listOfAll answers a list with the lists of these servers, in one page. Those that fail are left out. If
// there are several, URIs have the server in them.
func (q request) listOfAll(all []*lazy.Upstream) {
	if cursor := wire.Get(q.r.Params, "cursor"); cursor != nil {
		q.r.Reply(nil, transports.InvalidParams("%s: unknown cursor %s", q.r.Method, cursor))
		return
	}
	list := &union{request: q, pages: make([][]json.RawMessage, len(all)), open: len(all), errs: make([]error, len(all))}
	for i, u := range all {
		if page := q.keptPage(u); page != nil {
			list.pages[i] = append(list.pages[i], q.agg.fleet.Names.Show(q.Session, u.Server.Name, page, len(all) > 1))
			list.finish()
			continue
		}
		list.fetch(i, u, bytes.Clone(object(q.r.Params)))
	}
}

// keptPage returns the list of a server that does not run as it was kept with its listing, nil if it has
// to be requested: a list starts no server.
func (q request) keptPage(u *lazy.Upstream) json.RawMessage {
	own := q.agg.fleet.ExistingFor(q.Session, u)
	if !q.isKept(q.r.Method) || own != nil && own.Conn() != nil {
		return nil
	}
	for _, l := range q.agg.opts.Extensions.Lists() {
		if entries := q.Plain().More(u.Server.Name, l.Method); l.Method == q.r.Method && entries != nil {
			return wire.Set([]byte(`{}`), l.Key, wire.Array(entries))
		}
	}
	return nil
}

// fetch requests a page, and those after it.
func (list *union) fetch(i int, u *lazy.Upstream, params json.RawMessage) {
	r := list.r.Inner(list.r.Method, params, func(page json.RawMessage, err error) {
		cursor, _ := wire.Text(wire.Get(page, "nextCursor"))
		switch {
		case err != nil:
			list.errs[i] = err
			list.agg.log.Warn("a list is left out", "method", list.r.Method, "upstream", u.Server.Name, "err", err)
		case len(list.pages[i]) == maxPages:
			list.errs[i] = fmt.Errorf("%s: more than %d pages", u.Server.Name, maxPages)
		default:
			list.pages[i] = append(list.pages[i], bytes.Clone(page))
			if cursor != "" {
				list.agg.work.Answer(list.r, func() { list.fetch(i, u, wire.Set(params, "cursor", wire.Quote(cursor))) })
				return
			}
		}
		list.finish()
	})
	list.agg.calls.Dispatch(list.Session, r, forward.Route{Upstream: u, Params: params, Scoped: len(list.pages) > 1})
}

// finish answers the request when all servers have answered.
func (list *union) finish() {
	list.mu.Lock()
	list.open--
	over := list.open == 0
	list.mu.Unlock()
	if !over {
		return
	}
	result := joined(slices.Concat(list.pages...))
	if result == nil {
		list.r.Reply(nil, cmp.Or(list.errs...))
		return
	}
	list.r.Reply(result, nil)
}

// joined returns the first of some results, whose arrays have the elements of all; nil if there are none.
func joined(results []json.RawMessage) (all json.RawMessage) {
	for i, result := range results {
		if i == 0 {
			all = wire.Delete(object(result), "nextCursor")
			continue
		}
		for key, value := range wire.Members(object(result)) {
			if len(value) == 0 || value[0] != '[' {
				continue
			}
			name, _ := wire.Text(key)
			both := slices.AppendSeq(slices.Collect(wire.Elements(wire.Get(all, name))), wire.Elements(value))
			all = wire.Set(all, name, wire.Array(both))
		}
	}
	return all
}
