package schema

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
)

// NamePattern is what the name of a server under mcp must look like.
const NamePattern = `^[a-z0-9][a-z0-9-]*$`

var serverName = regexp.MustCompile(NamePattern)

var serverFields = fieldsOf(reflect.TypeFor[Server]())

// servers decodes a map of servers. In a host's map, names and spellings that
// are the host's are changed to ours.
func (r *reading) servers(path string, n *node, p *[]Server, host bool) {
	if !r.is(object, path, n, "an object of servers by name") {
		return
	}
	if len(n.members) == 0 && !r.layered {
		r.fail(n.at, path, "there is no server in it", `write "NAME": {"command": "PROGRAM"} or "NAME": {"url": "https://…"}`)
	}
	for _, m := range n.members {
		if first, _ := n.member(m.key); first.at != m.at {
			continue // a duplicate key, which is reported as such
		}
		*p = append(*p, r.entry(below(path, m.key), m, host))
	}
}

func (r *reading) entry(path string, m member, host bool) Server {
	name := r.name(path, m, host)
	if host {
		m.value = r.hostSpelling(path, m.value)
	}
	s := r.server(path, m)
	s.Name = name
	if s.Disabled && s.Transport == "" && !r.inherits(name) {
		r.warn(m.at, path, "this switches off a server that is not there", "no file behind this one has a server of the name")
	}
	return s
}

// name is the name that the entry m goes by, after the checks on it.
func (r *reading) name(path string, m member, host bool) string {
	name := m.key
	if !serverName.MatchString(name) {
		name = slug(name)
		if name == "" || !host {
			r.fail(m.at, path, "this is no name for a server", nameHint(name))
			return ""
		}
		r.warn(m.at, path, fmt.Sprintf("the server is called %q here", name), "names have lower-case letters, digits and hyphens only")
	}
	if first, taken := r.places[name]; taken {
		r.fail(m.at, path, fmt.Sprintf("a server called %q is already in line %d", name, first.line), "give one of them another name")
		return name
	}
	r.places[name] = m.at
	return name
}

func nameHint(slug string) string {
	hint := "use lower-case letters, digits and hyphens"
	if slug != "" {
		hint += fmt.Sprintf(", like %q", slug)
	}
	return hint
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// slug makes a name for a server of any text: lower case, with a hyphen for
// every run of other characters. It is empty if no letter or digit is left.
func slug(s string) string {
	return strings.Trim(notInNames.ReplaceAllString(strings.ToLower(s), "-"), "-")
}

// server decodes one entry onto the template: the keys that belong to its
// transport, or all while that is not known.
func (r *reading) server(path string, m member) Server {
	s, n := r.template, m.value
	if !r.is(object, path, n, "an object") {
		return s
	}
	transport := transportOf(n)
	fields := serverFields
	typo := r.unknownKeys(path, n, fields)
	if transport != "" {
		fields = r.withoutMisplaced(path, n, transport, fields)
	}
	r.members(path, n, reflect.ValueOf(&s).Elem(), fields)
	switch {
	case typo:
	case transport == "" && s.Disabled && len(n.members) == 1:
		return s // it only switches off the server of its name in another file
	case transport == "":
		r.fail(m.at, path, "nothing says how to reach this server", "give it a command, the program to run, or a url")
	default:
		r.required(path, m.at, n, fields)
	}
	s.Transport = transport
	r.checkServer(path, n, &s)
	return s
}

// withoutMisplaced leaves the fields that a server of this transport has, and
// records the keys of n that belong to the other ones.
func (r *reading) withoutMisplaced(path string, n *node, transport string, fields []field) []field {
	hint := "only stdio has it"
	if transport == Stdio {
		hint = "only streamable-http and sse have it"
	}
	own := inGroups(fields, "", groupLimit, groupOf(transport))
	for _, m := range n.members {
		_, known := findField(fields, m.key)
		_, ours := findField(own, m.key)
		if known && !ours {
			r.fail(m.at, below(path, m.name()), "this key does not go with transport "+transport, hint)
		}
	}
	return own
}

// limits decodes the values that all servers start from.
func (r *reading) limits(path string, n *node, p *Server) {
	fields := inGroups(serverFields, groupLimit)
	r.object(path, n, reflect.ValueOf(&r.template).Elem(), fields)
	*p = r.template
}

// transportOf is the transport an entry has or implies, empty when it has
// none or one that does not exist.
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
