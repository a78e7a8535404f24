package schema

import "slices"

var httpAliases = []string{"http", "streamableHttp", "streamable_http"}

// HTTPAliases are the words that hosts have for streamable-http.
func HTTPAliases() []string { return slices.Clone(httpAliases) }

// hostSpelling returns the entry as it would be written under mcp: type
// becomes transport, and of a command that is a list the first word is the
// command and the rest come before the args. Paths in errors keep the host's
// words.
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
		if m.key == "transport" {
			m.value = hostTransport(m.value)
		}
		out.members = append(out.members, m)
	}
	r.splitCommand(path, &out)
	return &out
}

func hostTransport(n *node) *node {
	if n.kind != text || !slices.Contains(httpAliases, n.scalar) {
		return n
	}
	renamed := *n
	renamed.scalar = StreamableHTTP
	return &renamed
}

func (r *reading) splitCommand(path string, n *node) {
	i := slices.IndexFunc(n.members, func(m member) bool { return m.key == "command" })
	if i < 0 || n.members[i].value.kind != list {
		return
	}
	words := n.members[i].value
	if len(words.items) == 0 {
		r.fail(words.at, below(path, "command"), "this list is empty", "begin it with the program to run")
		words = &node{kind: list, at: words.at, items: []*node{{kind: text, at: words.at, unresolved: true}}}
	}
	n.members[i].value = words.items[0]
	if len(words.items) > 1 {
		n.prependArgs(n.members[i].at, words.items[1:])
	}
}

// prependArgs puts words before the args that n has. Args that are no list
// stay, for the decoder to say so.
func (n *node) prependArgs(at pos, words []*node) {
	for i, m := range n.members {
		if m.key != "args" {
			continue
		}
		if m.value.kind == list {
			joined := *m.value
			joined.items = slices.Concat(words, m.value.items)
			n.members[i].value = &joined
		}
		return
	}
	n.members = append(n.members, member{key: "args", written: "command", at: at, value: &node{kind: list, at: at, items: words}})
}
