package schema

import (
	"fmt"
	"slices"
	"strconv"
)

// HTTPAliases are the names that hosts have for streamable-http.
var HTTPAliases = []string{"http", "streamableHttp", "streamable_http"}

// transportKeys are the keys under which hosts and other gateways say how a server is
// reached.
var transportKeys = []string{"transport", "type", "transportType"}

// hostKeys are keys that hosts write into entries and that dynmcp has no use for,
// with what to say of them.
var hostKeys = map[string]string{
	"autoApprove":    "dynmcp asks nobody before a call, that is the host's part",
	"alwaysAllow":    "dynmcp asks nobody before a call, that is the host's part",
	"trust":          "dynmcp asks nobody before a call, that is the host's part",
	"envFile":        "the file is not read; give it to dynmcp with -e, or copy its variables into env",
	"dev":            "the host's development mode",
	"oauth":          "what a login needs is written in auth",
	"settings":       "they are for an extension of the host",
	"sandbox":        "dynmcp has no sandbox",
	"sandboxEnabled": "dynmcp has no sandbox",
}

// plainHostKeys are others that change nothing.
var plainHostKeys = []string{"gallery", "version", "source", "name", "id"}

// entry returns a host's entry as it would be written under mcp. Paths in errors keep
// the host's keys. What only a host knows is left out with a warning, but for what looks
// like a mistyped key of ours.
func (r hostReader) entry(path string, n *node) *node {
	if n.kind != object {
		return n
	}
	out := *n
	out.members = nil
	e := hostEntry{r, path, n, &out}
	for _, m := range n.members {
		switch {
		case m.value.kind == null || e.says(m):
		case slices.Contains(transportKeys, m.key):
			e.transport(m)
		case !e.respelled(m):
			e.other(m)
		}
	}
	r.splitCommand(path, &out)
	r.dropMisplaced(path, &out)
	return &out
}

// A hostEntry is an entry that is being read.
type hostEntry struct {
	hostReader
	path string
	in   *node // as the host writes it
	out  *node // as we would
}

// add adds a member under a key of ours.
func (e hostEntry) add(m member, key string, value *node) {
	if key != m.key {
		m.key, m.written = key, m.key
	}
	m.value = value
	e.out.members = append(e.out.members, m)
}

// says reports whether another key says the same as m, or nothing is lost without it.
func (e hostEntry) says(m member) bool {
	switch m.key {
	case "url":
		return e.in.has("httpUrl")
	case "transportType":
		return e.in.has("type") && !e.in.has("transport")
	case "timeout": // opencode's is for listing tools, and too short for a call
		return isOpencode(e.in)
	}
	return slices.Contains(plainHostKeys, m.key)
}

// transport reads a key that says how the server is reached.
func (e hostEntry) transport(m member) {
	switch v := m.value; {
	case m.key != "transport" && e.in.has("transport"):
		e.warn(m.at, below(e.path, m.key), "this is ignored", "transport says the same")
	case m.key == "type" && isOpencode(e.in): // a command or a url says the same
	case v.kind == text && slices.Contains(HTTPAliases, v.scalar):
		e.add(m, "transport", &node{kind: text, at: v.at, scalar: StreamableHTTP})
	default:
		e.add(m, "transport", v)
	}
}

// respelled adds a member that hosts spell otherwise, and reports whether m is one.
func (e hostEntry) respelled(m member) bool {
	n, v := e.in, m.value
	switch {
	case m.key == "httpUrl":
		e.add(m, "url", v)
		if !n.has("type") && !n.has("transport") {
			e.add(m, "transport", &node{kind: text, at: v.at, scalar: StreamableHTTP})
		}
	case m.key == "serverUrl" && !n.has("url"):
		e.add(m, "url", v)
	case m.key == "environment" && !n.has("env"):
		e.add(m, "env", v)
	case m.key == "enabled" && v.kind == boolean && !n.has("disabled"):
		e.add(m, "disabled", &node{kind: boolean, at: v.at, scalar: strconv.FormatBool(v.scalar == "false")})
	case m.key == "timeout" && v.kind == number:
		e.add(m, "timeout", e.hostTimeout(below(e.path, m.key), v))
	case m.key == "tools" && v.kind == list, m.key == "includeTools", m.key == "excludeTools", m.key == "disabledTools":
		e.hostFilter(e.path, e.out, m)
	case m.key == "command" && v.kind == object:
		e.zedCommand(v)
	case m.key == "auth" && v.kind == object && v.has("CLIENT_ID"):
		e.add(m, "auth", cursorAuth(v))
	default:
		return false
	}
	return true
}

// zedCommand adds the members of a command as Zed wrote it once, an object.
func (e hostEntry) zedCommand(n *node) {
	for _, part := range n.members {
		if part.key == "path" {
			part.key, part.written = "command", "command.path"
		}
		if part.value.kind != null {
			e.out.members = append(e.out.members, part)
		}
	}
}

// other adds a member that is ours as it is, and warns of one that only the host knows.
func (e hostEntry) other(m member) {
	why, leftOut := hostKeys[m.key]
	known := keysOf(serverFields)
	switch {
	case leftOut:
		e.warn(m.at, below(e.path, m.key), "this is not read", why)
	case !slices.Contains(known, m.key) && Nearest(m.key, known) == "":
		e.warn(m.at, below(e.path, m.key), "this key of the host is not read", "")
	default:
		e.out.members = append(e.out.members, m)
	}
}

// isUnreachable reports whether a host's entry is of a server that only the host can
// reach, an extension of its own, or switches on one that is configured elsewhere.
func isUnreachable(n *node) bool {
	reached := slices.ContainsFunc([]string{"command", "url", "httpUrl", "serverUrl"}, n.has)
	return !reached && (n.has("source") || n.has("settings") || n.has("enabled"))
}

// hostTimeout returns a timeout: hosts count in milliseconds, but for some that
// count in seconds, and no call needs a thousand seconds.
func (r hostReader) hostTimeout(path string, n *node) *node {
	ms, err := strconv.ParseFloat(n.scalar, 64)
	if err != nil || ms < 1000 {
		return n
	}
	duration := strconv.FormatFloat(ms/1000, 'f', -1, 64) + "s"
	r.warn(n.at, path, "this is read as "+duration, "hosts count in milliseconds")
	return &node{kind: text, at: n.at, scalar: duration}
}

// hostFilter adds the tools that a host's entry names to the filter of n.
func (r hostReader) hostFilter(path string, n *node, m member) {
	if m.value.kind != list {
		r.fail(m.value.at, below(path, m.key), "this is "+m.value.kind.String(), "want a list")
		return
	}
	filter := &node{kind: list, at: m.value.at}
	i := slices.IndexFunc(n.members, func(o member) bool { return o.key == "tool_filter" })
	if i >= 0 {
		filter.items = slices.Clone(n.members[i].value.items)
	}
	for _, item := range m.value.items {
		pattern := *item
		if m.key == "excludeTools" || m.key == "disabledTools" {
			pattern.scalar = "!" + pattern.scalar
		}
		filter.items = append(filter.items, &pattern)
	}
	if i >= 0 {
		n.members[i].value = filter
		return
	}
	n.members = append(n.members, member{key: "tool_filter", written: m.key, at: m.at, value: filter})
}

// cursorAuth returns Cursor's auth as ours.
func cursorAuth(n *node) *node {
	out := &node{kind: object, at: n.at}
	for _, m := range n.members {
		switch m.key {
		case "CLIENT_ID":
			m.key, m.written = "client_id", m.key
		case "CLIENT_SECRET":
			m.key, m.written = "client_secret", m.key
		case "scopes":
			scope := &node{kind: text, at: m.value.at}
			for i, item := range m.value.items {
				if i > 0 {
					scope.scalar += " "
				}
				scope.scalar += item.scalar
			}
			m.key, m.written, m.value = "scope", m.key, scope
		}
		out.members = append(out.members, m)
	}
	return out
}

// dropMisplaced leaves out what belongs to the other kind of server: hosts write
// empty args beside a url.
func (r hostReader) dropMisplaced(path string, n *node) {
	transport := transportOf(n)
	if transport == "" || n.has("command") && n.has("url") {
		return
	}
	own := fieldsWith(transport)
	n.members = slices.DeleteFunc(n.members, func(m member) bool {
		misplaced := hasKey(serverFields, m.key) && !hasKey(own, m.key)
		if misplaced && (len(m.value.items) > 0 || len(m.value.members) > 0 || m.value.scalar != "") {
			r.warn(m.at, below(path, m.name()), fmt.Sprintf("this does not go with transport %s and is left out", transport), "")
		}
		return misplaced
	})
}

// splitCommand makes the first item of a command that is a list the command of n,
// and prepends the others to its args.
func (r hostReader) splitCommand(path string, n *node) {
	keyIs := func(key string) func(member) bool { return func(m member) bool { return m.key == key } }
	i := slices.IndexFunc(n.members, keyIs("command"))
	if i < 0 || n.members[i].value.kind != list {
		return
	}
	command, words := &n.members[i], n.members[i].value.items
	if len(words) == 0 {
		r.fail(command.value.at, below(path, "command"), "this list is empty", "begin it with the program to run")
		words = []*node{{kind: text, at: command.value.at, unresolved: true}}
	}
	command.value = words[0]
	args := &node{kind: list, at: command.at, items: words[1:]}
	switch j := slices.IndexFunc(n.members, keyIs("args")); {
	case len(args.items) == 0:
	case j < 0:
		n.members = append(n.members, member{key: "args", written: "command", at: command.at, value: args})
	case n.members[j].value.kind == list: // or the decoder says that it must be
		args.at, args.items = n.members[j].value.at, slices.Concat(args.items, n.members[j].value.items)
		n.members[j].value = args
	}
}
