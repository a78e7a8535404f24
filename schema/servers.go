package schema

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/dynmcp/dynmcp/internal/lazyregexp"
)

// NamePattern matches valid names of servers.
const NamePattern = `^[a-z0-9][a-z0-9-]*$`

var serverName = lazyregexp.New(NamePattern)

// The keys of an entry: all, and those that go with each kind of transport.
var (
	serverFields = fieldsOf(reflect.TypeFor[Server]())
	stdioFields  = inGroups(serverFields, "", groupLimit, groupStdio, groupSandbox)
	httpFields   = inGroups(serverFields, "", groupLimit, groupHTTP)
)

// fieldsWith returns the keys of an entry that go with a transport.
func fieldsWith(transport string) []field {
	if transport == Stdio {
		return stdioFields
	}
	return httpFields
}

// servers decodes a map of servers. In a host's map, names and keys are changed to
// ours.
func (r *reading) servers(path string, n *node, p *[]Server, host bool) {
	if !r.is(object, path, n, "an object of servers by name") {
		return
	}
	if len(n.members) == 0 && !r.layered {
		r.fail(n.at, path, "there is no server in it", `write "NAME": {"command": "PROGRAM"} or "NAME": {"url": "https://…"}`)
	}
	for _, m := range n.members {
		if first, _ := n.member(m.key); first.at != m.at {
			continue // reported as a duplicate key
		}
		if host && isUnreachable(m.value) {
			r.warn(m.at, below(path, m.key), "this server is left out: nothing says how to reach it outside of the host", "")
			continue
		}
		*p = append(*p, r.entry(below(path, m.key), m, host))
	}
}

func (r *reading) entry(path string, m member, host bool) Server {
	name := r.name(path, m, host)
	if host {
		m.value = hostReader{&r.report}.entry(path, m.value)
	}
	s := r.server(path, m)
	if s.Name = name; name != m.key {
		s.Written = m.key
	}
	if off := r.off[path]; off != nil && !s.Disabled {
		s.Disabled, s.Off = true, off
	}
	if s.Disabled && s.Transport == "" && !r.inherits(name) {
		r.warn(m.at, path, "this disables a server that does not exist", "no file behind this one has a server of this name")
	}
	return s
}

// name checks and returns the name of the entry m.
func (r *reading) name(path string, m member, host bool) string {
	name := m.key
	if !serverName().MatchString(name) {
		name = slug(name)
		if name == "" || !host {
			r.fail(m.at, path, "invalid server name", nameHint(name))
			return ""
		}
		r.warn(m.at, path, fmt.Sprintf("the server is called %q here", name), "names have lower-case letters, digits and hyphens only")
	}
	if first, taken := r.positions[name]; taken {
		r.fail(m.at, path, fmt.Sprintf("a server called %q is already on line %d", name, first.line), "give one of them another name")
		return name
	}
	r.positions[name] = m.at
	return name
}

func nameHint(slug string) string {
	hint := "use lower-case letters, digits and hyphens"
	if slug != "" {
		hint += fmt.Sprintf(", like %q", slug)
	}
	return hint
}

var notInNames = lazyregexp.New(`[^a-z0-9]+`)

// slug turns any text into a server name: lower case, with a hyphen for every run
// of other characters. It is "" if there is no letter or digit.
func slug(s string) string {
	return strings.Trim(notInNames().ReplaceAllString(strings.ToLower(s), "-"), "-")
}

// server decodes one entry: the keys of its transport, or all if that is unknown.
func (r *reading) server(path string, m member) Server {
	s, n := r.template, m.value
	if !r.is(object, path, n, "an object") {
		return s
	}
	transport := transportOf(n)
	fields := serverFields
	typo := r.unknownKeys(path, n, fields)
	if transport != "" {
		fields = r.withoutMisplaced(path, n, transport)
	}
	r.members(path, n, reflect.ValueOf(&s).Elem(), fields)
	switch {
	case typo:
	case transport == "" && s.Disabled && len(n.members) == 1:
		return s // it only disables the server of its name in another file
	case transport == "":
		r.fail(m.at, path, "nothing says how to reach this server", "give it a command, the program to run, or a url")
	default:
		r.required(path, m.at, n, fields)
	}
	s.Transport = transport
	s.TransportOpen = transport == StreamableHTTP && !n.has("transport")
	checks{&r.report}.checkServer(path, n, &s)
	return s
}

// withoutMisplaced returns the fields of a server of this transport, and records
// the keys of n that belong to other transports.
func (r *reading) withoutMisplaced(path string, n *node, transport string) []field {
	hint := "only stdio has it"
	if transport == Stdio {
		hint = "only streamable-http and sse have it"
	}
	own := fieldsWith(transport)
	for _, m := range n.members {
		if hasKey(serverFields, m.key) && !hasKey(own, m.key) {
			r.fail(m.at, below(path, m.name()), "this key does not go with transport "+transport, hint)
		}
	}
	return own
}

// limits decodes the defaults of all servers.
func (r *reading) limits(path string, n *node, p *Server) {
	fields := inGroups(serverFields, groupLimit, groupSandbox)
	r.object(path, n, reflect.ValueOf(&r.template).Elem(), fields)
	*p = r.template
}

// transportOf returns the transport that an entry has or implies, "" if there is
// none or it does not exist.
func transportOf(n *node) string {
	if t := n.get("transport"); t != nil && groupOf(t.scalar) != "" {
		return t.scalar
	}
	switch {
	case n.has("command"):
		return Stdio
	case n.has("url"):
		return StreamableHTTP
	default:
		return ""
	}
}

func groupOf(transport string) string {
	switch transport {
	case Stdio:
		return groupStdio
	case StreamableHTTP, SSE:
		return groupHTTP
	default:
		return ""
	}
}
