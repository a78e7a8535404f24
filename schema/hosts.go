package schema

import "slices"

// HTTPAliases are the names that hosts have for streamable-http.
var HTTPAliases = []string{"http", "streamableHttp", "streamable_http"}

// hostSpelling returns a host's entry as it would be written under mcp: type
// becomes transport, and a command that is a list becomes a command and args.
// Paths in errors keep the host's keys.
func (r *reading) hostSpelling(path string, n *node) *node {
	if n.kind != object {
		return n
	}
	out := *n
	out.members = nil
	for _, m := range n.members {
		switch {
		case m.key == "type" && n.has("transport"):
			r.warn(m.at, below(path, m.key), "this is ignored", "transport says the same")
			continue
		case m.key == "type":
			m.key, m.written = "transport", "type"
		}
		if m.key == "transport" && m.value.kind == text && slices.Contains(HTTPAliases, m.value.scalar) {
			renamed := *m.value
			renamed.scalar = StreamableHTTP
			m.value = &renamed
		}
		out.members = append(out.members, m)
	}
	r.splitCommand(path, &out)
	return &out
}

// splitCommand makes the first item of a command that is a list the command of n,
// and prepends the others to its args.
func (r *reading) splitCommand(path string, n *node) {
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
