package schema

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dynmcp/dynmcp/internal/nearest"
	"github.com/dynmcp/dynmcp/schema/syntax"
)

// HTTPAliases are the names that hosts use for streamable-http.
var HTTPAliases = []string{"http", "streamableHttp", "streamable_http"}

// transportKeys are the keys for the transport of a server in hosts and other gateways.
var transportKeys = []string{"transport", "type", "transportType"}

// hostKeys are keys in hosts' entries that dynmcp does not use, with the reason for the
// warning.
var hostKeys = map[string]string{
	"autoApprove":    "dynmcp asks nobody before a call, that is the host's part",
	"alwaysAllow":    "dynmcp asks nobody before a call, that is the host's part",
	"trust":          "dynmcp asks nobody before a call, that is the host's part",
	"envFile":        "the file is not read; give it to dynmcp with -e, or copy its variables into env",
	"dev":            "the host's development mode",
	"oauth":          "what a login needs is written in auth",
	"oauth_resource": "the server names its own resource",
	"settings":       "they are for an extension of the host",
	"sandbox":        "it is written as for VS Code; dynmcp's own has read, write and network (docs/sandbox.md)",
	"sandboxEnabled": `dynmcp's own is switched on by "sandbox": true`,
}

// shownTools and hiddenTools are the keys of hosts for tools to show and to hide.
var (
	shownTools  = []string{"includeTools", "enabled_tools"}
	hiddenTools = []string{"excludeTools", "disabledTools", "disabled_tools"}
)

// plainHostKeys are other keys without an effect.
var plainHostKeys = []string{"gallery", "version", "source", "name", "id"}

// entry converts a host's entry to an entry under mcp. Paths in errors keep the host's keys.
// Keys that only a host knows are left out with a warning, unless they look like a mistyped
// key of ours.
func (r hostReader) entry(path string, n *syntax.Node) *syntax.Node {
	if n.Kind != syntax.Object {
		return n
	}
	out := *n
	out.Members = nil
	e := hostEntry{r, path, n, &out}
	for _, m := range n.Members {
		switch {
		case m.Value.Kind == syntax.Null || e.redundant(m):
		case slices.Contains(transportKeys, m.Key):
			e.transport(m)
		case !e.respelled(m):
			e.other(m)
		}
	}
	e.splitCommand()
	e.dropMisplaced()
	return &out
}

// A hostEntry is an entry that is being converted.
type hostEntry struct {
	hostReader
	path string
	in   *syntax.Node // as the host writes it
	out  *syntax.Node // converted
}

// add adds a member under a key of ours.
func (e hostEntry) add(m syntax.Member, key string, value *syntax.Node) {
	if key != m.Key {
		m.Key, m.Written = key, m.Key
	}
	m.Value = value
	e.out.Members = append(e.out.Members, m)
}

// redundant reports whether m can be dropped: another key has the same meaning, or it has no
// effect.
func (e hostEntry) redundant(m syntax.Member) bool {
	switch m.Key {
	case "url":
		return e.in.Has("httpUrl")
	case "transportType":
		return e.in.Has("type") && !e.in.Has("transport")
	case "timeout": // opencode's is for listing tools, and too short for a call
		return isOpencode(e.in)
	}
	return slices.Contains(plainHostKeys, m.Key)
}

// transport converts a key for the transport of the server.
func (e hostEntry) transport(m syntax.Member) {
	switch v := m.Value; {
	case m.Key != "transport" && e.in.Has("transport"):
		e.warn(m.At, syntax.Below(e.path, m.Key), "this is ignored", "transport says the same")
	case m.Key == "type" && isOpencode(e.in): // implied by the command or the url
	case v.Kind == syntax.Text && slices.Contains(HTTPAliases, v.Scalar):
		e.add(m, "transport", &syntax.Node{Kind: syntax.Text, At: v.At, Scalar: StreamableHTTP})
	default:
		e.add(m, "transport", v)
	}
}

// respelled adds a member that hosts spell differently, and reports whether m is one.
func (e hostEntry) respelled(m syntax.Member) bool {
	n, v := e.in, m.Value
	switch {
	case m.Key == "httpUrl":
		e.add(m, "url", v)
		if !n.Has("type") && !n.Has("transport") {
			e.add(m, "transport", &syntax.Node{Kind: syntax.Text, At: v.At, Scalar: StreamableHTTP})
		}
	case m.Key == "serverUrl" && !n.Has("url"):
		e.add(m, "url", v)
	case m.Key == "environment" && !n.Has("env"):
		e.add(m, "env", v)
	case m.Key == "enabled" && v.Kind == syntax.Boolean && !n.Has("disabled"):
		e.add(m, "disabled", &syntax.Node{Kind: syntax.Boolean, At: v.At, Scalar: strconv.FormatBool(v.Scalar == "false")})
	case m.Key == "timeout" && v.Kind == syntax.Number:
		e.add(m, "timeout", e.timeout(m))
	case m.Key == "tools" && v.Kind == syntax.List, slices.Contains(shownTools, m.Key), slices.Contains(hiddenTools, m.Key):
		e.filter(m)
	case m.Key == "command" && v.Kind == syntax.Object:
		e.zedCommand(v)
	case m.Key == "auth" && v.Kind == syntax.Object && v.Has("CLIENT_ID"):
		e.login(m, v.Members)
	case m.Key == "oauth" && v.Kind == syntax.Object && !n.Has("auth"):
		e.login(m, v.Members)
	case m.Key == "scopes" && v.Kind == syntax.List && !n.Has("auth"): // of Codex
		e.login(m, []syntax.Member{m})
	default:
		return false
	}
	return true
}

// zedCommand adds the members of a command as older versions of Zed write it: an object.
func (e hostEntry) zedCommand(n *syntax.Node) {
	for _, part := range n.Members {
		if part.Key == "path" {
			part.Key, part.Written = "command", "command.path"
		}
		if part.Value.Kind != syntax.Null {
			e.out.Members = append(e.out.Members, part)
		}
	}
}

// other adds a key of ours unchanged, and warns about one that only the host knows.
func (e hostEntry) other(m syntax.Member) {
	why, leftOut := hostKeys[m.Key]
	known := keysOf(e.keys)
	switch {
	case leftOut && !(m.Key == "sandbox" && !isHostSandbox(m.Value)):
		e.warn(m.At, syntax.Below(e.path, m.Key), "this is not read", why)
	case !slices.Contains(known, m.Key) && serverModules[m.Key] == "" && nearest.Word(m.Key, known) == "":
		e.warn(m.At, syntax.Below(e.path, m.Key), "this key of the host is not read", "")
	default:
		e.out.Members = append(e.out.Members, m)
	}
}

// isHostSandbox reports whether a sandbox has the form of VS Code. Any other form is ours: if
// one of ours were left out by mistake, nothing would be limited.
func isHostSandbox(n *syntax.Node) bool {
	network := n.Get("network")
	return n.Has("filesystem") || network != nil && network.Kind == syntax.Object
}

// isUnreachable reports whether a host's entry is for a server that only the host can reach,
// like its own extension, or enables one that is configured elsewhere.
func isUnreachable(n *syntax.Node) bool {
	reached := slices.ContainsFunc([]string{"command", "url", "httpUrl", "serverUrl"}, n.Has)
	return !reached && (n.Has("source") || n.Has("settings") || n.Has("enabled"))
}

// timeout converts a timeout. Most hosts count in milliseconds, some in seconds. 1000 or
// more is taken for milliseconds.
func (e hostEntry) timeout(m syntax.Member) *syntax.Node {
	n := m.Value
	ms, err := strconv.ParseFloat(n.Scalar, 64)
	if err != nil || ms < 1000 {
		return n
	}
	duration := strconv.FormatFloat(ms/1000, 'f', -1, 64) + "s"
	e.warn(n.At, syntax.Below(e.path, m.Key), "this is read as "+duration, "hosts count in milliseconds")
	return &syntax.Node{Kind: syntax.Text, At: n.At, Scalar: duration}
}

// filter adds the tools that a host shows or hides to the tool filter, shown ones first.
func (e hostEntry) filter(m syntax.Member) {
	n := e.out
	if m.Value.Kind != syntax.List {
		e.fail(m.Value.At, syntax.Below(e.path, m.Key), "this is "+m.Value.Kind.String(), "want a list")
		return
	}
	var patterns []*syntax.Node
	hides := slices.Contains(hiddenTools, m.Key)
	for _, item := range m.Value.Items {
		pattern := *item
		if hides {
			pattern.Scalar = "!" + pattern.Scalar
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

// loginKeys are the keys of hosts for a login, with ours.
var loginKeys = map[string]string{
	"CLIENT_ID": "client_id", "clientId": "client_id", "clientID": "client_id", "client_id": "client_id",
	"CLIENT_SECRET": "client_secret", "clientSecret": "client_secret", "client_secret": "client_secret",
	"scopes": "scope", "scope": "scope", "oauthScopes": "scope",
	"redirectUri": "callback", "redirect_uri": "callback", "callbackPort": "callback_port", "callback_port": "callback_port",
}

// login adds what the member m says of a login to auth.
func (e hostEntry) login(m syntax.Member, parts []syntax.Member) {
	i := slices.IndexFunc(e.out.Members, func(o syntax.Member) bool { return o.Key == "auth" })
	auth := syntax.Node{Kind: syntax.Object, At: m.Value.At}
	if i >= 0 {
		auth = *e.out.Members[i].Value
	}
	for _, part := range parts {
		path := syntax.Below(e.path, m.Key)
		if part.Key != m.Key {
			path = syntax.Below(path, part.Key)
		}
		key, v := loginKeys[part.Key], part.Value
		if key == "scope" && v.Kind == syntax.List {
			v = joined(v)
		}
		switch {
		case v.Kind == syntax.Null || v.Kind == syntax.Text && v.Scalar == "" || part.Key == "enabled" || auth.Has(key):
		case key == "callback" && !isCallback(v.Scalar):
			e.warn(part.At, path, "this is not read", "a login comes back to this machine: register the client with http://localhost:PORT/callback, and write that as callback into auth")
		case key != "" || m.Key == "auth":
			if key != "" && key != part.Key {
				part.Key, part.Written = key, part.Key
			}
			part.Value = v
			auth.Members = append(auth.Members, part)
		default:
			e.warn(part.At, path, "this is not read", "what a login needs is found at the server, or written in auth")
		}
	}
	if auth.Has("callback") { // with its port
		auth.Members = slices.DeleteFunc(auth.Members, func(o syntax.Member) bool { return o.Key == "callback_port" })
	}
	switch {
	case i >= 0:
		e.out.Members[i].Value = &auth
	case len(auth.Members) > 0:
		e.add(m, "auth", &auth)
	}
}

// joined returns the texts of a list as one, with spaces between them.
func joined(list *syntax.Node) *syntax.Node {
	var words []string
	for _, item := range list.Items {
		words = append(words, item.Scalar)
	}
	return &syntax.Node{Kind: syntax.Text, At: list.At, Scalar: strings.Join(words, " ")}
}

// dropMisplaced removes keys of the other kind of server: some hosts write empty args beside
// a url.
func (e hostEntry) dropMisplaced() {
	n := e.out
	transport := transportOf(n)
	if transport == "" || n.Has("command") && n.Has("url") {
		return
	}
	own := fieldsWith(transport)
	n.Members = slices.DeleteFunc(n.Members, func(m syntax.Member) bool {
		misplaced := hasKey(serverFields, m.Key) && !hasKey(own, m.Key)
		if misplaced && (len(m.Value.Items) > 0 || len(m.Value.Members) > 0 || m.Value.Scalar != "") {
			e.warn(m.At, syntax.Below(e.path, m.Name()), fmt.Sprintf("this does not go with transport %s and is left out", transport), "")
		}
		return misplaced
	})
}

// splitCommand splits a command that is a list: its first item becomes the command, the
// others come before the args.
func (e hostEntry) splitCommand() {
	n := e.out
	keyIs := func(key string) func(syntax.Member) bool { return func(m syntax.Member) bool { return m.Key == key } }
	i := slices.IndexFunc(n.Members, keyIs("command"))
	if i < 0 || n.Members[i].Value.Kind != syntax.List {
		return
	}
	command, words := &n.Members[i], n.Members[i].Value.Items
	if len(words) == 0 {
		e.fail(command.Value.At, syntax.Below(e.path, "command"), "this list is empty", "begin it with the program to run")
		words = []*syntax.Node{{Kind: syntax.Text, At: command.Value.At, Unresolved: true}}
	}
	command.Value = words[0]
	args := &syntax.Node{Kind: syntax.List, At: command.At, Items: words[1:]}
	switch j := slices.IndexFunc(n.Members, keyIs("args")); {
	case len(args.Items) == 0:
	case j < 0:
		n.Members = append(n.Members, syntax.Member{Key: "args", Written: "command", At: command.At, Value: args})
	case n.Members[j].Value.Kind == syntax.List: // otherwise the decoder reports it
		args.At, args.Items = n.Members[j].Value.At, slices.Concat(args.Items, n.Members[j].Value.Items)
		n.Members[j].Value = args
	}
}
