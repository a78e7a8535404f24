package schema

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/internal/lazyregexp"
	"github.com/dynmcp/dynmcp/schema/syntax"
)

// NamePattern matches valid names of servers.
const NamePattern = `^[a-z0-9][a-z0-9-]*$`

var serverName = lazyregexp.New(NamePattern)

// The keys of an entry: all, and those that go with each kind of transport.
var (
	serverFields = fieldsOf(reflect.TypeFor[Server]())
	stdioGroups  = []string{"", groupLimit, groupStdio, groupSandbox}
	httpGroups   = []string{"", groupLimit, groupHTTP, groupTLS}
	stdioFields  = inGroups(serverFields, stdioGroups...)
	httpFields   = inGroups(serverFields, httpGroups...)
	moduleFields = optional(httpFields)
)

// groupsWith returns the groups of keys that go with a transport.
func groupsWith(transport string) []string {
	if transport == Stdio {
		return stdioGroups
	}
	return httpGroups
}

// fieldsWith returns the keys of Server that go with a transport.
func fieldsWith(transport string) []field {
	switch transport {
	case Stdio:
		return stdioFields
	case StreamableHTTP, SSE:
		return httpFields
	}
	return moduleFields
}

// servers decodes a map of servers. In a host's map, names and keys are converted to ours.
func (r *reading) servers(path string, n *syntax.Node, p *[]Server, host bool) {
	if !r.is(syntax.Object, path, n, "an object of servers by name") {
		return
	}
	for _, m := range n.Members {
		if first, _ := n.Member(m.Key); first.At != m.At {
			continue // reported as a duplicate key
		}
		if s := r.entry(syntax.Below(path, m.Key), m, host); s.Name != "" || !isLenient(r) {
			*p = append(*p, s)
		}
	}
}

func (r *reading) entry(path string, m syntax.Member, host bool) Server {
	name := r.name(path, m, host)
	if name == "" && isLenient(r) {
		return Server{} // left out, with a warning
	}
	s := r.server(path, m)
	if s.Name = name; name != m.Key {
		s.Written = m.Key
	}
	if off := r.off[path]; off != nil && !s.Disabled {
		s.Disabled, s.Off = true, off
	}
	if s.Disabled && s.Transport == "" && !r.inherits(name) {
		r.warn(m.At, path, "this disables a server that does not exist", "no file behind this one has a server of this name")
	}
	return s
}

// name checks and returns the name of the entry m.
func (r *reading) name(path string, m syntax.Member, host bool) string {
	name := m.Key
	if !serverName().MatchString(name) {
		name = ServerName(name)
		switch {
		case name == "" && host && isLenient(r):
			name = "server"
		case name == "":
			return noName(r, m, path, "invalid server name", nameHint(name), "")
		case host:
		default:
			r.fail(m.At, path, "invalid server name", nameHint(name))
			if !isLenient(r) {
				return ""
			}
		}
	}
	if host && isLenient(r) {
		name = untaken(name, func(name string) bool { _, taken := r.positions[name]; return taken })
	}
	if name != m.Key && host {
		r.warn(m.At, path, fmt.Sprintf("the server is called %q here", name), "names have lower-case letters, digits and hyphens only")
	}
	if first, taken := r.positions[name]; taken {
		return noName(r, m, path, fmt.Sprintf("a server called %q is already on line %d", name, first.Line), "give one of them another name", name)
	}
	r.positions[name], r.entries[path] = m.At, name
	return name
}

// untaken returns a name that is not taken, with a number behind it if that has to be.
func untaken(name string, taken func(string) bool) string {
	for i, base := 2, name; taken(name); i++ {
		name = fmt.Sprintf("%s-%d", base, i)
	}
	return name
}

// noName records that an entry has no usable name, and returns otherwise unless it is left out for that.
func noName(r *reading, m syntax.Member, path, what, hint, otherwise string) string {
	if isLenient(r) {
		r.warn(m.At, path, "this entry is left out: "+what, hint)
		return ""
	}
	r.fail(m.At, path, what, hint)
	return otherwise
}

// isLenient reports whether an entry with errors is none of the file.
func isLenient(r *reading) bool { return r.files != nil && r.files.opts.Lenient }

func nameHint(slug string) string {
	hint := "use lower-case letters, digits and hyphens"
	if slug != "" {
		hint += fmt.Sprintf(", like %q", slug)
	}
	return hint
}

var notInNames = lazyregexp.New(`[^a-z0-9]+`)

// ServerName turns any text into a server name: lower case, with a hyphen for every run
// of other characters. It is "" if there is no letter or digit.
func ServerName(s string) string {
	return strings.Trim(notInNames().ReplaceAllString(strings.ToLower(s), "-"), "-")
}

// server decodes one entry: the keys of its transport, or all if that is unknown.
func (r *reading) server(path string, m syntax.Member) Server {
	s, n := r.template, m.Value
	if !r.is(syntax.Object, path, n, "an object") {
		return s
	}
	transport := transportIn(r, n)
	fields := serverFields
	typo := r.unknownKeys(path, n, entryKeys(r), serverModules)
	if transport != "" {
		fields = reachedBy(n, r.withoutMisplaced(path, n, transport))
	}
	r.members(path, n, reflect.ValueOf(&s).Elem(), fields)
	decodeServerSections(r, path, n, &s)
	switch {
	case typo:
	case transport == "" && s.Disabled && len(n.Members) == 1:
		return s // it only disables a server of another file
	case transport == "":
		r.fail(m.At, path, "nothing says how to reach this server", "give it a command, the program to run, or a url")
	default:
		r.required(path, m.At, n, fields)
	}
	if s.Transport = transport; transport == Stdio {
		s.TLS = TLS{} // of the defaults
	}
	s.TransportOpen = transport == StreamableHTTP && !n.Has("transport") && !n.Has("openapi")
	r.checkServer(path, n, &s)
	return s
}

// withoutMisplaced returns the fields of a server of this transport, and records
// the keys of n that belong to other transports.
func (r *reading) withoutMisplaced(path string, n *syntax.Node, transport string) []field {
	hint := "only stdio has it"
	if transport == Stdio {
		hint = "only streamable-http and sse have it"
	}
	own := fieldsWith(transport)
	for _, m := range n.Members {
		if isMisplaced(r, m.Key, transport) {
			r.fail(m.At, syntax.Below(path, m.Name()), "this key does not go with transport "+transport, hint)
		}
	}
	return own
}

// isMisplaced reports whether a key of an entry does not go with a transport.
func isMisplaced(r *reading, key, transport string) bool {
	keys := entryKeys(r)
	i := slices.IndexFunc(keys, func(f field) bool { return f.key == key })
	return i >= 0 && !slices.Contains(groupsWith(transport), keys[i].group)
}

// limits decodes the defaults of all servers.
func (r *reading) limits(path string, n *syntax.Node, p *Server) {
	fields := inGroups(entryKeys(r), groupLimit, groupSandbox, groupTLS)
	if !r.is(syntax.Object, path, n, "an object") {
		return
	}
	r.unknownKeys(path, n, fields, serverModules)
	r.members(path, n, reflect.ValueOf(&r.template).Elem(), inGroups(serverFields, groupLimit, groupSandbox, groupTLS))
	decodeServerSections(r, path, n, &r.template)
	r.checkTLS(syntax.Below(path, "tls"), n.Get("tls"))
	*p = r.template
}

// transportIn returns the transport that an entry has or implies, by the key of a module or otherwise, "" if
// there is none or it does not exist.
func transportIn(r *reading, n *syntax.Node) string {
	for _, s := range r.known {
		if s.Transport != "" && slices.ContainsFunc(fieldsOf(s.Type), func(f field) bool { return f.required && n.Has(f.key) }) {
			return s.Transport
		}
	}
	return transportOf(n)
}

func transportOf(n *syntax.Node) string {
	if t := n.Get("transport"); t != nil && slices.Contains(transports, t.Scalar) {
		return t.Scalar
	}
	switch {
	case n.Has("command"):
		return Stdio
	case n.Has("url"), n.Has("openapi"):
		return StreamableHTTP
	default:
		return ""
	}
}
