package hostfile

import (
	"slices"
	"strconv"
	"strings"

	"github.com/dynmcp/dynmcp/schema/syntax"
)

// command adds a command: a text, a list of words, or an object as of older versions of Zed.
func (e *entry) command(m syntax.Member) {
	if m.Value.Kind != syntax.Object {
		if !isEmpty(m.Value) || !slices.ContainsFunc(reaching[1:], e.in.Has) {
			e.add(m, "command", m.Value)
		}
		return
	}
	for _, part := range m.Value.Members {
		if part.Key == "path" {
			part.Key, part.Written = "command", "command.path"
		}
		if part.Value.Kind == syntax.Null {
			continue
		}
		if meaning, ok := e.Host.meaning(part.Key); ok && meaning.With != nil && part.Value.Kind != syntax.Object {
			meaning.With(e, part)
		} else {
			e.add(part, part.Key, part.Value)
		}
	}
}

// list adds a list of texts.
func (e *entry) list(m syntax.Member) {
	out := *m.Value
	if m.Value.Kind == syntax.List {
		out.Items = nil
		for _, item := range m.Value.Items {
			if item.Kind != syntax.Null {
				out.Items = append(out.Items, asText(item))
			}
		}
	}
	e.add(m, "args", &out)
}

// transport adds the transport, of which hosts have several spellings.
func (e *entry) transport(m syntax.Member) {
	order := []string{"transport", "type", "transportType", "transport_type"}
	for _, stronger := range order[:slices.Index(order, m.Key)] {
		if other := e.in.Get(stronger); other != nil && other.Kind == syntax.Text {
			if stronger == "transport" {
				e.Warn(m.At, e.below(m), "this is ignored", "transport says the same")
			}
			return
		}
	}
	v := m.Value
	spelling := strings.Map(func(r rune) rune {
		if r < 'a' || r > 'z' {
			return -1
		}
		return r
	}, strings.ToLower(v.Scalar))
	switch transport, known := transports[spelling]; {
	case v.Kind != syntax.Text || !known && !isEmpty(v):
		e.add(m, "transport", v) // an error
	case transport != "" && !(m.Key == "type" && spelling == "local"):
		e.add(m, "transport", text(v, transport))
	}
}

// httpURL adds Gemini CLI's address of a streamable-http server.
func (e *entry) httpURL(m syntax.Member) {
	e.add(m, "url", m.Value)
	if !e.in.Has("type") && !e.in.Has("transport") {
		e.add(m, "transport", text(m.Value, "streamable-http"))
	}
}

// environment adds variables: an object, or a list of NAME=value or of objects with a name.
func (e *entry) environment(m syntax.Member) { e.dictionary(m, "env", m.Value) }

// dictionary adds the members of an object of texts to the object at a key of ours. Numbers are texts
// there, and what is null is left out.
func (e *entry) dictionary(m syntax.Member, key string, n *syntax.Node) {
	members := n.Members
	switch n.Kind {
	case syntax.Object:
	case syntax.List:
		for _, item := range n.Items {
			name, value, set := strings.Cut(item.Scalar, "=")
			at := syntax.Member{Key: name, At: item.At, Value: text(item, value)}
			if item.Kind == syntax.Object {
				at.Key = scalar(item.Get("name")) + scalar(item.Get("key"))
				at.Value = item.Get("value")
			} else if !set {
				at.Value.Scalar = "${" + name + ":-}"
			}
			if at.Key != "" && at.Value != nil {
				members = append(members, at)
			}
		}
	default:
		if !isEmpty(n) {
			e.add(m, key, n) // an error
		}
		return
	}
	for _, inner := range members {
		switch inner.Value.Kind {
		case syntax.Null:
		case syntax.List, syntax.Object:
			inner.Value = text(inner.Value, string(inner.Value.Compact()))
			e.set(m, key, inner)
		default:
			inner.Value = asText(inner.Value)
			e.set(m, key, inner)
		}
	}
}

// passed adds variables that the host passes on.
func (e *entry) passed(m syntax.Member) {
	for _, item := range m.Value.Items {
		name := scalar(item) + scalar(item.Get("name"))
		if name != "" {
			e.set(m, "env", syntax.Member{Key: name, At: item.At, Value: text(item, "${"+name+":-}")})
		}
	}
}

// headers adds headers, which some hosts have in an object of options.
func (e *entry) headers(m syntax.Member) {
	if m.Key != "headers" && m.Key != "http_headers" {
		if inner := m.Value.Get("headers"); inner != nil {
			e.dictionary(m, "headers", inner)
		} else if !isEmpty(m.Value) {
			e.notRead(m, hostOnly)
		}
		return
	}
	e.dictionary(m, "headers", m.Value)
}

func (e *entry) headersFromEnv(m syntax.Member) {
	for _, inner := range m.Value.Members {
		inner.Value = text(inner.Value, "${"+inner.Value.Scalar+"}")
		e.set(m, "headers", inner)
	}
}

// bearer adds a token, or the one of a variable.
func (e *entry) bearer(m syntax.Member) {
	token := m.Value.Scalar
	if strings.Contains(strings.ToLower(m.Key), "env") {
		token = "${" + token + "}"
	}
	if m.Value.Kind == syntax.Text && m.Value.Scalar != "" && slices.ContainsFunc(reaching[1:], e.in.Has) {
		header, value := "Authorization", "Bearer "+token
		if name := scalar(e.in.Get("api_key_header")); name != "" { // of Mistral Vibe
			header = name
		}
		if format := scalar(e.in.Get("api_key_format")); format != "" {
			value = strings.ReplaceAll(format, "{token}", token)
		}
		e.set(m, "headers", syntax.Member{Key: header, At: m.At, Value: text(m.Value, value)})
	}
}

// disabled adds whether the server is off.
func (e *entry) disabled(m syntax.Member) {
	v := asText(m.Value)
	on := strings.EqualFold(v.Scalar, "true") || v.Scalar == "1"
	off := strings.EqualFold(v.Scalar, "false") || v.Scalar == "0"
	switch {
	case v.Kind != syntax.Text || !on && !off:
		e.add(m, "disabled", m.Value) // an error
	case m.Key == "disabled" || !e.in.Has("disabled"):
		is := on
		if m.Key != "disabled" {
			is = off
		}
		e.add(m, "disabled", &syntax.Node{Kind: syntax.Boolean, At: m.Value.At, Scalar: strconv.FormatBool(is)})
	}
}

// duration adds a time in s, in ms or in the unit of the host. Most hosts count in milliseconds, some
// in seconds: where that is not known, 1000 or more is taken for milliseconds.
func (e *entry) duration(m syntax.Member, key, unit string) {
	n := m.Value
	number, err := strconv.ParseFloat(n.Scalar, 64)
	if err != nil || n.Kind == syntax.Text && unit == "" && !e.Host.Seconds && !e.Host.Millis {
		e.add(m, key, n)
		return
	}
	switch {
	case unit != "":
	case e.Host.Seconds:
		unit = "s"
	case e.Host.Millis || number >= 1000:
		unit = "ms"
	}
	switch {
	case number <= 0: // without an end
		if key == "timeout" && number == 0 {
			e.add(m, key, n)
		}
	case unit == "":
		e.add(m, key, n)
	default:
		if unit == "ms" {
			number /= 1000
		}
		value := strconv.FormatFloat(number, 'f', -1, 64) + "s"
		if unit == "ms" && m.Key == "timeout" {
			e.Warn(n.At, e.below(m), "this is read as "+value, "hosts count in milliseconds")
		}
		e.add(m, key, text(n, value))
	}
}

// filter adds the tools that a host shows or hides to the tool filter, shown ones first.
func (e *entry) filter(m syntax.Member, hides bool) {
	n := e.out
	if m.Value.Kind == syntax.Object { // of Hermes
		for key, hidden := range map[string]bool{"include": false, "exclude": true} {
			if inner, ok := m.Value.Member(key); ok && inner.Value.Kind == syntax.List {
				inner.Key = m.Key
				e.filter(inner, hidden)
			}
		}
		return
	}
	if m.Value.Kind != syntax.List {
		e.Fail(m.Value.At, e.below(m), "this is "+m.Value.Kind.String(), "want a list")
		return
	}
	var patterns []*syntax.Node
	for _, item := range m.Value.Items {
		pattern := *item
		if hides {
			pattern.Scalar = "!" + pattern.Scalar
		}
		if item.Kind != syntax.Text {
			e.notRead(m, "its items are not names of tools")
			return
		}
		if pattern.Scalar != "*" { // as without a filter
			patterns = append(patterns, &pattern)
		}
	}
	i := slices.IndexFunc(n.Members, func(o syntax.Member) bool { return o.Key == "tool_filter" })
	if i < 0 {
		i, n.Members = len(n.Members), append(n.Members, syntax.Member{Key: "tool_filter", Written: m.Key, At: m.At, Value: &syntax.Node{Kind: syntax.List, At: m.Value.At}})
	}
	filter := *n.Members[i].Value
	if filter.Items = slices.Concat(patterns, filter.Items); hides {
		filter.Items = slices.Concat(n.Members[i].Value.Items, patterns)
	}
	n.Members[i].Value = &filter
}
