package hosts

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/dynmcp/dynmcp/internal/lazyregexp"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/schema/hostfile"
	"github.com/dynmcp/dynmcp/schema/syntax"
)

// programs are the aggregators whose files import reads when they are named.
var programs = []Host{
	aggregator("mcpproxy", "mcpproxy", "mcpServers", mcpproxy, "~/.mcpproxy/mcp_config.json", ""),
	aggregator("1mcp", "1mcp", "mcpServers", oneMCP, "~/.config/1mcp/mcp.json", ""),
	aggregator("metamcp", "MetaMCP", "mcpServers", metaMCP, "", ""),
	aggregator("lazy-mcp", "lazy-mcp", "mcpServers", mcpProxy, "", "config.json"),
	aggregator("mcp-proxy", "mcp-proxy", "mcpServers", mcpProxy, "", "config.json"),
	aggregator("gridctl", "gridctl", "mcp-servers", gridctl, "", "stack.yaml"),
}

func aggregator(name, title, key string, rewrite func(*rewriting), user, project string) Host {
	h := Host{Host: &hostfile.Host{Name: name, Title: title, Form: hostfile.ReadOnly}, Project: project, key: key, rewrite: rewrite, form: foreign}
	if project != "" {
		h.Host.Project = []string{project}
	}
	if user != "" {
		h.User = []string{user}
	}
	return h
}

// counterparts maps top-level keys of aggregators' files to dynmcp's counterpart. Keys with
// an empty text are ignored.
var counterparts = map[string]string{
	"listen":               "dynmcp serve --http ADDRESS serves hosts over HTTP",
	"api_key":              "dynmcp serve --token lets hosts in that know a token",
	"mcpProxy":             "dynmcp serve --http ADDRESS --token TOKEN serves hosts over HTTP",
	"gateway":              "dynmcp serve --http ADDRESS --token TOKEN serves hosts over HTTP",
	"docker_isolation":     `"sandbox": true limits what a program may do`,
	"tool_response_limit":  "max_output_chars shortens results",
	"routing_mode":         "expose says how tools are shown",
	"registries":           `dynmcp search asks the "registries" of your own config`,
	"mcpTemplates":         "an entry cannot depend on the project; a project's mcp.json, or a profile, can",
	"groups":               "profiles are sets of servers, with the tools that each shows",
	"clients":              "profiles are sets of servers, with the tools that each shows",
	"secrets":              "dynmcp secret set keeps secrets one by one",
	"resources":            "containers beside the servers are started by you",
	"extends":              "import that file too, with --from",
	"link":                 "dynmcp install HOST puts dynmcp into hosts",
	"telemetry":            "activity keeps a record of calls",
	"allow_server_add":     "a host cannot change the config",
	"allow_server_remove":  "a host cannot change the config",
	"quarantine_enabled":   `"pins": "block" keeps what was not approved from being called`,
	"enable_prompts":       "",
	"version":              "",
	"name":                 "",
	"$schema":              "",
	"enable_tray":          "",
	"data_dir":             "",
	"health_check_enabled": "",
}

// A rewriting is an entry while it is translated into one of dynmcp's config.
type rewriting struct {
	members map[string]any
	dir     string // of the file
	notes   []string
	problem string   // why dynmcp cannot have such a server
	sets    []string // its tags
}

func (r *rewriting) note(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

func (r *rewriting) drop(keys ...string) {
	for _, key := range keys {
		delete(r.members, key)
	}
}

// text removes a member and returns it if it is a text, "" otherwise.
func (r *rewriting) text(key string) string {
	value, _ := r.members[key].(string)
	delete(r.members, key)
	return value
}

// object removes a member and returns it if it is an object, nil otherwise.
func (r *rewriting) object(key string) map[string]any {
	value, _ := r.members[key].(map[string]any)
	delete(r.members, key)
	return value
}

func (r *rewriting) rename(from, to string) {
	if value, ok := r.members[from]; ok {
		delete(r.members, from)
		r.members[to] = value
	}
}

// header sets a header, unless the entry has it.
func (r *rewriting) header(name, value string) {
	headers, _ := r.members["headers"].(map[string]any)
	if headers == nil {
		headers = map[string]any{}
	}
	if _, ok := headers[name]; !ok {
		headers[name] = value
	}
	r.members["headers"] = headers
}

// milliseconds replaces the member from, in milliseconds, by the member to, in seconds.
func (r *rewriting) milliseconds(from, to string) {
	if n, ok := r.members[from].(float64); ok {
		r.members[to] = n / 1000
	}
	delete(r.members, from)
}

// login translates the OAuth client in from, whose keys are id, secret and scope.
func (r *rewriting) login(from map[string]any, id, secret, scope string) {
	client := map[string]any{"CLIENT_ID": from[id]}
	if value := from[secret]; value != nil {
		client["CLIENT_SECRET"] = value
	}
	switch scopes := from[scope].(type) {
	case string:
		client["scopes"] = strings.Fields(scopes)
	case []any:
		client["scopes"] = scopes
	}
	if name, _ := from[id].(string); name != "" {
		r.members["auth"] = client
	}
}

func mcpproxy(r *rewriting) {
	protocol, url := r.text("protocol"), r.members["url"]
	fixed := protocol != "" && protocol != "auto"
	if fixed {
		r.members["type"] = protocol // older files have type
	}
	r.rename("working_dir", "cwd")
	switch launched := fixed && protocol != "stdio"; {
	case r.members["command"] == nil:
	case launched && url != nil:
		r.note("its program is not started: have it serve %v, or take its command alone if it speaks MCP on stdin", url)
		r.drop("command", "args", "env", "cwd")
	default:
		r.drop("url")
	}
	if r.members["quarantined"] == true {
		r.members["enabled"] = false
		r.note("it is in quarantine there, and disabled here; dynmcp set %s --enabled enables it", schema.ServerName(fmt.Sprint(r.members["name"])))
	}
	if r.object("isolation")["enabled"] == true {
		r.note(`its isolation is not taken over; "sandbox": true limits what a program may do`)
	}
	r.login(r.object("oauth"), "client_id", "client_secret", "scopes")
	r.drop("quarantined", "name", "created", "updated", "reconnect_on_use", "launcher_wait_timeout", "health_check_interval", "tool_discovery_interval")
}

func oneMCP(r *rewriting) {
	if both, ok := r.members["timeout"]; ok {
		for _, key := range []string{"connectionTimeout", "requestTimeout"} {
			if r.members[key] == nil {
				r.members[key] = both
			}
		}
		r.drop("timeout")
	}
	r.milliseconds("connectionTimeout", "startup_timeout_sec")
	r.milliseconds("requestTimeout", "tool_timeout_sec")
	if list, ok := r.members["env"].([]any); ok {
		env := map[string]any{}
		for _, item := range list {
			name, value, set := strings.Cut(fmt.Sprint(item), "=")
			if !set {
				value = "${" + name + ":-}"
			}
			env[name] = value
		}
		r.members["env"] = env
	}
	tags, _ := r.members["tags"].([]any)
	for _, tag := range tags {
		r.sets = append(r.sets, fmt.Sprint(tag))
	}
	r.login(r.object("oauth"), "clientId", "clientSecret", "scopes")
	r.drop("tags", "inheritParentEnv", "restartOnExit", "maxRestarts", "restartDelay") // dynmcp passes its environment, and restarts a server when it is used
}

func metaMCP(r *rewriting) {
	r.members["type"] = strings.ToLower(r.text("type"))
	if token := r.text("bearerToken"); token != "" {
		r.header("Authorization", "Bearer "+token)
	}
	r.login(r.object("oauth_client_info"), "client_id", "client_secret", "scope")
}

func mcpProxy(r *rewriting) {
	if r.members["url"] != nil && r.members["transportType"] == nil {
		r.members["transportType"] = "sse"
	}
	if n, ok := r.members["timeout"].(float64); ok {
		r.members["timeout"] = n / 1e6 // from nanoseconds (a time.Duration) to milliseconds
	}
	for key, value := range r.object("options") {
		switch strings.ToLower(key) {
		case "disabled":
			r.members["disabled"] = value
		case "toolfilter":
			filter, _ := value.(map[string]any)
			switch filter["mode"] {
			case "allow":
				r.members["enabled_tools"] = filter["list"]
			case "block":
				r.members["disabled_tools"] = filter["list"]
			default:
				r.note("its toolFilter is not taken over: its mode is neither allow nor block")
			}
		case "authtokens":
			r.note("its authTokens are not taken over; dynmcp serve has tokens for all servers")
		}
	}
}

var (
	vaultReference   = lazyregexp.New(`\$\{(?:var|vault):([^}]+)\}`) // of gridctl
	keyringReference = lazyregexp.New(`\$\{keyring:([^}]+)\}`)
)

// translated returns the servers of an aggregator's file.
func (h Host) translated(path string, data []byte) ([]Server, error) {
	root, err := (&syntax.Source{Name: path, Data: data}).Parse()
	if err != nil {
		return nil, err
	}
	if !root.Has(h.key) {
		return nil, fmt.Errorf("%s has no %q, where %s has its servers", path, h.key, h.Title)
	}
	sets := setsOf(root)
	var servers []Server
	add := func(name string, n *syntax.Node) error {
		s, ok := h.translate(filepath.Dir(path), name, vaultReference().ReplaceAll(n.Compact(), []byte("$${keyring:$1}")))
		if !ok {
			return fmt.Errorf("%s: the server %q is not written as %s writes it", path, name, h.Title)
		}
		s.Host, s.File = h, path
		s.Sets = append(s.Sets, sets[name]...)
		servers = append(servers, s)
		return nil
	}
	for _, item := range root.ItemsOf(h.key) {
		if err := add(scalar(item.Get("name")), item); err != nil {
			return nil, err
		}
	}
	for _, m := range root.MembersOf(h.key) {
		if err := add(m.Key, m.Value); err != nil {
			return nil, err
		}
	}
	return servers, nil
}

// translate returns the server of the entry raw in a file in dir.
func (h Host) translate(dir, name string, raw []byte) (s Server, ok bool) {
	r, ok := rewritingOf(raw)
	if !ok {
		return s, false
	}
	r.dir = dir
	h.rewrite(r)
	s = h.server(name, r)
	for _, m := range keyringReference().FindAllSubmatch(raw, -1) {
		s.note("it takes %s from the keyring; %s has it under a name of its own: dynmcp secret set %s", m[0], h.Title, m[1])
	}
	return s, true
}

// rewritingOf reads an entry to rewrite it, and returns false if it is not an object.
func rewritingOf(raw []byte) (*rewriting, bool) {
	r := &rewriting{}
	err := json.Unmarshal(raw, &r.members)
	return r, err == nil && r.members != nil
}

func scalar(n *syntax.Node) string {
	if n == nil {
		return ""
	}
	return n.Scalar
}

// setsOf maps each server of an aggregator's profiles to the names of its profiles.
func setsOf(root *syntax.Node) map[string][]string {
	sets := map[string][]string{}
	for _, p := range root.ItemsOf("profiles") {
		for _, server := range p.ItemsOf("servers") {
			sets[server.Scalar] = append(sets[server.Scalar], scalar(p.Get("name")))
		}
	}
	return sets
}

// otherMembers returns notes on the other members of an aggregator's file: their counterparts in
// dynmcp, or that they have none.
func (h Host) otherMembers(path string, data []byte) (notes []string) {
	root, err := (&syntax.Source{Name: path, Data: data}).Parse()
	if h.form != foreign || err != nil {
		return nil
	}
	var others []string
	for _, m := range root.Members {
		why, known := counterparts[m.Key]
		switch {
		case m.Key == h.key || m.Key == "profiles" || known && why == "":
		case known:
			notes = append(notes, fmt.Sprintf("%s is not taken over: %s", m.Key, why))
		default:
			others = append(others, m.Key)
		}
	}
	if len(others) > 0 {
		notes = append(notes, "not taken over: "+strings.Join(others, ", "))
	}
	return notes
}
