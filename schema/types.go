package schema

import (
	"encoding/json"
	"reflect"
	"time"

	"github.com/dynmcp/dynmcp/schema/rate"
)

// Config is a valid config document with all defaults filled in. It is a value:
// nothing in this module changes one after Files.Load.
type Config struct {
	// Path is the absolute path of the file it was read from, the nearest if there are
	// several; empty if it was made by Single.
	Path string
	// Sources are all files it was read from, the nearest first.
	Sources []string
	// Origins are the positions of the servers by name, nil if the config was
	// made by Single.
	Origins map[string]Origin
	// SingleWrap is true if the config was made by Single: tools then have no server's name
	// as prefix.
	SingleWrap bool
	// Env is the source of variables: enable, dotenv, process or disable.
	Env string
	// Servers are the upstreams in file order, disabled ones included. Those of sources
	// of the tree that have a command of their own come last.
	Servers []Server
	// Defaults has the limits that every server starts with. No other field of it
	// is set.
	Defaults Server
	// Expose names the surfaces that are on, at least one.
	Expose []string
	// UseTool selects how discover calls tools: UseToolOne, UseToolSplit or UseToolAuto.
	UseTool string
	// Pin are the tools, by exposed name, that discover lists directly.
	Pin []string
	// Tree is the root of the configured tree, or nil.
	Tree *Node
	// Catalog holds the settings of the catalogue.
	Catalog Catalog
	// Gateway holds the settings of the HTTP side.
	Gateway Gateway
	// Profiles are sets of servers by name.
	Profiles map[string]Profile
	// Profile is the default profile of the files or, after a selection, the selected one;
	// then there is no other. ProfileBy is what selected it, "" if the files do.
	Profile, ProfileBy string
	// Scripts limits scripts, nil if no file has the key: see ScriptLimits.
	Scripts *Scripts
	// Instructions is what hosts' models read before anything else, "" for nothing.
	Instructions string
	// Host names the host, "" if its reported name determines it.
	Host string
	// StartupWait is how long the list methods wait for eager upstreams, unless it depends on
	// the host; see StartupWaitOr.
	StartupWait time.Duration
	// Warnings are warnings for the operator, in file order, each with its
	// position.
	Warnings []string

	waitGiven   bool // a file sets StartupWait
	exposeFixed bool // set by the options: profiles do not change Expose
	secrets     []string
	sections    map[reflect.Type]any // the keys of modules, by the types of their sections
}

// StartupWaitOr returns StartupWait if the file sets it, otherwise byHost.
func (c *Config) StartupWaitOr(byHost time.Duration) time.Duration {
	if c.waitGiven {
		return c.StartupWait
	}
	return byHost
}

// Document is a config file as it is written. Files.Load turns it into a Config;
// the JSON Schema describes this type.
//
// The tags define a key: its name (json), default and example, the allowed values (enum),
// the least number (min), whether it must not be blank (nonblank), must be given (required)
// or must never be shown (secret), and the group of a server's key (stdio, http or limit).
// The pattern is for editors only; this package has its own check of such a key. Defaults
// and examples are YAML, but those of strings are the string itself.
type Document struct {
	// Address or path of the JSON Schema, for editors. dynmcp does not read it.
	Schema string `json:"$schema" example:"./dynmcp.schema.json"`
	// Where ${VAR} comes from. enable: the .env beside the config, then that of the working directory, then the environment. dotenv: the .env files only. process: the environment only. disable: nowhere, ${VAR} is a text.
	Env string `json:"env" enum:"enable,dotenv,process,disable" default:"enable" example:"process"`
	// Limits for all servers; a server's own value wins.
	Defaults Server `json:"defaults" example:"{timeout: 2m}"`
	// The MCP servers by name. Names are lower-case letters, digits and hyphens.
	MCP []Server `json:"mcp" example:"{files: {command: mcp-files, args: [/tmp]}}"`
	// The MCP servers by name, as Claude, Cursor and other hosts write them. Names that do not fit are changed, with a warning.
	MCPServers []Server `json:"mcpServers" example:"{files: {type: stdio, command: mcp-files, args: [/tmp]}}"`
	// The MCP servers by name, as VS Code and MCP Browser write them.
	Servers []Server `json:"servers" example:"{files: {command: [mcp-files, /tmp]}}"`
	// The surfaces that the host sees. auto is direct for a host with a tool search, and discover for others. The default of a file with only a tree is tree.
	Expose []string `json:"expose" enum:"surfaces" default:"[discover]" example:"[discover, direct]"`
	// How tools are called behind discover: one is use_tool for all; split is use_tool_readonly, use_tool_write and use_tool_destructive, by the tools' annotations; auto is split for hosts that ask by tool, else one.
	UseTool string `json:"use_tool" enum:"one,split,auto" default:"one" example:"split"`
	// Tools that are listed directly, beside discover_tool.
	Pin []string `json:"pin" default:"[]" example:"[files/read_file]"`
	// The tree of the tree surface: a list of nodes, or one node with the path /.
	Tree *Node `json:"tree" example:"[{path: /files, type: node, source: {mcp: files}}]"`
	// How the catalogue of tools is shown and kept.
	Catalog Catalog `json:"catalog" example:"{max_chars: 4096}"`
	// How dynmcp is reached over HTTP.
	Gateway Gateway `json:"gateway" example:"{listen: \"127.0.0.1:8080\"}"`
	// Sets of servers, by name. See docs/profiles.md.
	Profiles map[string]Profile `json:"profiles" default:"{}" example:"{work: [files, \"git*\", \"!*-prod\"], home: {servers: [\"notes*\"], expose: [direct]}}"`
	// The profile that is used if no other is selected. all is every server.
	Profile string `json:"profile" example:"all"`
	// Let the model run scripts, by run_script, and limit them. An empty object lets them call only tools that read. See docs/scripts.md.
	Scripts *Scripts `json:"scripts" example:"{tools: [\"@readonly\", \"github/*\"]}"`
	// What the model reads before all else, from who set dynmcp up: which server to use for what, what to avoid. At most 1,000 characters, since hosts cut longer texts.
	Instructions string `json:"instructions" nonblank:"true" example:"Use tracker for issues, and never the browser for them."`
	// The host that dynmcp serves, if the name that it reports does not show it.
	Host string `json:"host" enum:"claude-code,claude-desktop,codex,copilot,cursor,gemini-cli,opencode,vscode,program,other" example:"codex"`
	// The registries that are asked; only the user's own config counts. See docs/registries.md.
	Registries []string `json:"registries" default:"[]" example:"[\"https://registry.modelcontextprotocol.io\"]"`
	// How long lists and searches wait for servers that are starting. Left out, it depends on the host.
	StartupWait time.Duration `json:"startup_wait" default:"150ms" example:"5s"`
}

// Server is one upstream: a child process or a remote address.
type Server struct {
	// Name is the key of the entry, converted to a valid name.
	Name string `json:"-"`
	// Written is the original key of the entry if Name differs, otherwise "".
	Written string `json:"-"`
	// Off is the reason why the server is not used although its entry does not disable it;
	// Disabled is true, too. It is nil for any other server.
	Off *Off `json:"-"`
	// Credential names what of each user the server is called with: a login, an exchange, values. It
	// is "" for what all users share.
	Credential string `json:"-"`
	// Mounted is the path of the node of the tree whose source has the server's command, ""
	// for a server with an entry of its own.
	Mounted string `json:"-"`
	// Keys are the keys of modules that the entry has, by the types of their sections: see ServerKeys.
	Keys map[reflect.Type]any `json:"-"`

	// How the server is reached. Left out, a command means stdio, and a url streamable-http or, if the server refuses that, sse.
	Transport string `json:"transport" enum:"stdio,streamable-http,sse" example:"streamable-http"`
	// What the server is good for, shown to the model. A server with a description starts when it is first used.
	Description string `json:"description" nonblank:"true" example:"Read and search the files of this project. Use for anything about its source."`
	// When the server starts: eager with the host, lazy when first used. Left out, servers with a description are lazy.
	Load string `json:"load" enum:"eager,lazy" example:"lazy"`
	// Who shares the server when one dynmcp serves many hosts: none is all hosts, session gives each host its own, principal each user.
	Isolation string `json:"isolation" enum:"none,session,principal" default:"none" example:"session"`
	// Where the server runs in a cluster: one is once for all replicas, each is on every replica that needs it, principal is once for each user. Left out, a command is one, or as its isolation says, and a url is each. Without a cluster, one keeps a command that speaks both protocol eras to one process.
	Place string `json:"place" enum:"one,each,principal" example:"each"`
	// Keep the entry but do not use the server.
	Disabled bool `json:"disabled" default:"false" example:"true"`

	// The program to run.
	Command string `json:"command" group:"stdio" required:"true" nonblank:"true" example:"npx"`
	// The arguments of the program, one word each. No shell is involved.
	Args []string `json:"args" group:"stdio" default:"[]" example:"[-y, \"@modelcontextprotocol/server-filesystem\", /tmp]"`
	// Environment variables of the program. They win over inherited ones.
	Env map[string]string `json:"env" group:"stdio" default:"{}" example:"{GITHUB_TOKEN: \"${GITHUB_TOKEN}\"}"`
	// The directory the program runs in. Left out, it is the one dynmcp runs in.
	Cwd string `json:"cwd" group:"stdio" nonblank:"true" example:"/srv/project"`
	// Which variables of dynmcp's environment the program inherits: true is all, false the few that every program needs, a list is these few and the variables it names.
	InheritEnv Inherit `json:"inherit_env" group:"stdio" default:"true" example:"[PATH, HOME, LANG]"`

	// The address of the server, http or https.
	URL string `json:"url" group:"http" required:"true" pattern:"^https?://|[$][{]" example:"https://mcp.example.com/mcp"`
	// The OpenAPI document (3.1, 3.0 or 2.0, JSON or YAML) whose operations are the server's tools: an http or https address, or a file. url, which may be left out for an address, is where they are sent. See docs/openapi.md.
	OpenAPI string `json:"openapi" group:"http" nonblank:"true" example:"https://api.example.com/openapi.json"`
	// TransportOpen reports that the entry has a url and no transport: a server that does
	// not support streamable-http there is tried with SSE.
	TransportOpen bool `json:"-"`
	// Headers of every request, sent to the server's own origin only.
	Headers map[string]string `json:"headers" group:"http" default:"{}" secret:"true" example:"{Authorization: \"Bearer ${TOKEN}\"}"`
	// How to log in with OAuth. Most servers need nothing here: see docs/login.md.
	Auth *Auth `json:"auth" group:"http" example:"{client_id: dynmcp, scope: read}"`
	// With whose credentials the server is called when many users share dynmcp: shared is one login for all, user that of each user, an object what the user's own token is exchanged for. See docs/login.md.
	Credentials Credentials `json:"credentials" group:"http" default:"shared" example:"user"`
	// Certificates of connections to the server and its login; also in defaults.
	TLS TLS `json:"tls" group:"tls" default:"{}" example:"{ca: /etc/ssl/company.pem}"`

	// Globs over tool names, and @readonly, @write and @destructive; a leading ! hides. With only such patterns, all other tools are shown.
	ToolFilter []string `json:"tool_filter" default:"[]" example:"[\"get_*\", \"!get_secret_*\"]"`
	// By tool name: how the tool is presented and limited.
	ToolOverrides map[string]ToolOverride `json:"tool_overrides" default:"{}" example:"{get_file: {summary: Read one file, timeout: 30s}}"`
	// By tool name: the name the tool is shown under.
	PathAliases map[string]string `json:"path_aliases" default:"{}" example:"{get_file_contents: get_file}"`

	// How long a start may take, from the first byte to the last list.
	LoadTimeout time.Duration `json:"load_timeout" group:"limit" min:"1ms" default:"60s" example:"2m"`
	// How long a call may take. Progress restarts the time; 0 is no limit.
	Timeout time.Duration `json:"timeout" group:"limit" default:"0" example:"5m"`
	// How many calls (of tools, prompts and resources) a process of the server may have in flight. Others wait in the order they came, as long as the timeout. 0 is any number.
	MaxCalls int `json:"max_calls" group:"limit" default:"0" example:"4"`
	// How many of these calls may start in a period, of all processes of the server together: 60/m, 10/s, 1000/h or 5/30s. Never more start in any such time. Others wait in the order they came, as long as the timeout. 0 is any number.
	Rate rate.Rate `json:"rate" group:"limit" default:"0" example:"60/m"`
	// Stop the server after it was unused for this long; the next use starts it. 0 is never.
	IdleTimeout time.Duration `json:"idle_timeout" group:"limit" default:"0" example:"10m"`
	// How many failed starts in a row remove a lazy server from the catalogue. 0 is any number.
	LoadBudget int `json:"load_budget" group:"limit" default:"3" example:"5"`
	// The most characters of a tool's result; a longer one is shortened and says so. 0 is no limit.
	MaxOutputChars int `json:"max_output_chars" group:"limit" default:"0" example:"40000"`
	// The most processes of the server for hosts, users or sets of roots that do not share one.
	MaxSessions int `json:"max_sessions" group:"limit" min:"1" default:"32" example:"8"`
	// The largest message in bytes, in both directions. A larger one fails its call.
	MaxMessageBytes int `json:"max_message_bytes" group:"limit" min:"1024" default:"16777216" example:"67108864"`
}

// Lazy reports whether the server is started at its first use: if load says so or, without
// load, if it has a description.
func (s Server) Lazy() bool {
	if s.Load != "" {
		return s.Load == LoadLazy
	}
	return s.Description != ""
}

// Placement returns where the server runs in a cluster: PlaceOne, PlaceEach or
// PlacePrincipal, as place says or, in its absence, the transport and isolation.
func (s Server) Placement() string {
	switch {
	case s.Place != "":
		return s.Place
	case s.Transport != Stdio || s.Isolation == IsolateSession:
		return PlaceEach
	case s.Isolation == IsolatePrincipal:
		return PlacePrincipal
	}
	return PlaceOne
}

// Inherit selects the variables of dynmcp's environment that a child inherits. The zero value
// selects all of them.
type Inherit struct {
	// None selects only the few variables that every program needs.
	None bool
	// Names, if there are any, are inherited in addition to those few, and no others.
	Names []string
}

// Network describes the hosts that a program may connect to. The zero value is all.
type Network struct {
	// None allows no host.
	None bool
	// Hosts, if there are any, are the only ones allowed.
	Hosts []string
}

// Auth configures how dynmcp logs in to a remote server. All of it may be left out: then a
// client is registered, and the server names the scopes that it needs.
type Auth struct {
	// Who logs in: authorization_code is a person, by dynmcp login; client_credentials is the client itself; jwt_bearer is a workload or a person with a token of their platform or identity provider.
	Grant string `json:"grant" enum:"authorization_code,client_credentials,jwt_bearer" default:"authorization_code" example:"client_credentials"`
	// The client id, or the https address of a client metadata document. Left out, a client is registered at each login.
	ClientID string `json:"client_id" nonblank:"true" example:"dynmcp"`
	// The client secret that goes with it. Left out for public clients.
	ClientSecret string `json:"client_secret" secret:"true" example:"${CLIENT_SECRET}"`
	// The private key in place of a secret (private_key_jwt), as PEM (PKCS #8): RSA, EC or Ed25519. Only with client_credentials.
	PrivateKey string `json:"private_key" secret:"true" example:"${CLIENT_KEY}"`
	// The file with the workload's token, a JWT, or with an ID token for idp; read at each login. Only with jwt_bearer.
	AssertionFile string `json:"assertion_file" nonblank:"true" example:"/var/run/secrets/tokens/mcp"`
	// The issuer of the identity provider that exchanges the ID token of assertion_file (enterprise-managed authorization). Only with jwt_bearer.
	IDP string `json:"idp" nonblank:"true" example:"https://acme.okta.example"`
	// The client id at idp.
	IDPClientID string `json:"idp_client_id" nonblank:"true" example:"dynmcp"`
	// The client secret that goes with it. Left out for public clients.
	IDPClientSecret string `json:"idp_client_secret" secret:"true" example:"${IDP_SECRET}"`
	// The scopes to ask for, separated by spaces. Left out, those that the server names.
	Scope string `json:"scope" example:"read write"`
	// The local port that the browser comes back to, for clients registered with one. 0 is any free port.
	CallbackPort int `json:"callback_port" min:"0" default:"0" example:"33418"`
	// The whole address that the browser comes back to, as the client is registered: at localhost, 127.0.0.1 or [::1]. In place of callback_port.
	Callback string `json:"callback" nonblank:"true" example:"http://localhost:3118/callback"`
	// The issuer of the authorization server, exactly, if it is another one than the server names.
	Issuer string `json:"issuer" nonblank:"true" example:"https://auth.example.com"`
	// The PKCE method that the authorization server supports although its metadata names none.
	CodeChallenge string `json:"code_challenge" enum:"S256" example:"S256"`
	// Private networks that the login may involve. Left out, only the server itself may be in one.
	AllowPrivate []string `json:"allow_private" default:"[]" example:"[10.1.0.0/16]"`
}

// Machine reports whether the login needs no person. It is false for nil.
func (a *Auth) Machine() bool {
	return a != nil && (a.Grant == GrantClientCredentials || a.Grant == GrantJWTBearer)
}

// TLS names the files of certificates, in PEM. A path may begin with ~; a relative one is in the directory
// that dynmcp runs in.
type TLS struct {
	// The certificates of authorities that are trusted besides those of the system.
	CA string `json:"ca" nonblank:"true" example:"/etc/ssl/company.pem"`
	// The client's certificate, with the intermediate ones, read for each connection.
	Cert string `json:"cert" nonblank:"true" example:"~/.config/client.pem"`
	// The private key that goes with it.
	Key string `json:"key" nonblank:"true" example:"~/.config/client.key"`
}

// ToolOverride changes how one tool is presented and limited.
type ToolOverride struct {
	// One line about the tool, shown in lists.
	Summary string `json:"summary" example:"Read one file"`
	// The description shown in place of the tool's own.
	Description string `json:"description" example:"Reads a text file of the repository and returns its content."`
	// The most characters of this tool's result; left out, the server's limit holds. 0 is no limit.
	MaxOutputChars *int `json:"max_output_chars" example:"20000"`
	// How long a call of this tool may take; left out, the server's limit holds. 0 is no limit.
	Timeout *time.Duration `json:"timeout" example:"30s"`
	// Arguments to show as an example, as JSON.
	ExampleArgs json.RawMessage `json:"example_args" example:"{path: README.md}"`
	// How the result is shown. json keeps its structure when it is shortened, text makes one text of it, raw never changes it.
	RenderMode string `json:"render_mode" enum:"json,text,raw" default:"json" example:"text"`
}

// Node is a node of the configured tree.
type Node struct {
	// The absolute path of the node, unique in the tree.
	Path string `json:"path" required:"true" example:"/repo/read"`
	// Always node.
	Type string `json:"type" enum:"node" default:"node" example:"node"`
	// One line about the node, shown in lists.
	Summary string `json:"summary" example:"Read the repository"`
	// The description of the nodes below the node.
	Description string `json:"description" example:"Everything that reads files, issues and pull requests."`
	// The nodes below this one.
	Children []Node `json:"children" default:"[]" example:"[{path: /repo/read/issues, type: node}]"`
	// The MCP server whose tools are the leaves below this node.
	Source *Source `json:"source" example:"{mcp: files}"`
}

// Source mounts the tools of an MCP server on a node: a server of the file, by name, or one of
// its own, by command line.
type Source struct {
	// Server is the name of the server whose tools are mounted: MCP, or the server made
	// from Command.
	Server string `json:"-"`
	// Off is the reason why a source with a command is not used; nil if it is.
	Off *Off `json:"-"`

	// The name of a server of this file. Use this or a command.
	MCP string `json:"mcp" example:"files"`
	// Always stdio.
	Backend string `json:"backend" enum:"stdio" default:"stdio" example:"stdio"`
	// A shell command line that starts an MCP server, run by /bin/sh -c.
	Command string `json:"command" nonblank:"true" example:"GITHUB_TOKEN=${GITHUB_TOKEN} github-mcp stdio"`
	// As for a server, at this path only.
	ToolFilter []string `json:"tool_filter" default:"[]" example:"[\"get_*\", \"!get_secret_*\"]"`
	// As for a server, at this path only.
	ToolOverrides map[string]ToolOverride `json:"tool_overrides" default:"{}" example:"{get_file: {summary: Read one file, timeout: 30s}}"`
	// By tool name: the last part of the path the tool is shown under.
	PathAliases map[string]string `json:"path_aliases" default:"{}" example:"{get_file_contents: get_file}"`
}

// Catalog configures how the catalogue of tools is shown and stored.
type Catalog struct {
	// The most characters (UTF-16 code units) of the catalogue in the description that the host reads. Hosts cut longer ones silently. 0 is no limit.
	MaxChars int `json:"max_chars" default:"2048" example:"4096"`
	// The directory of the stored listings; a relative one is beside the config. Left out, it is in the user's state directory; an empty text disables the store.
	Dir *string `json:"dir" example:"/var/lib/dynmcp"`
	// Whether the list of tools stays the same when servers are loaded: on, off, or auto, which is on for Claude Code and Codex.
	Stable string `json:"stable" enum:"auto,on,off" default:"auto" example:"on"`
	// What happens to a call if its tool has changed since the model was shown it: warn answers once with the change; block refuses until the new definition was shown; ignore sends it.
	OnChange string `json:"on_change" enum:"warn,block,ignore" default:"warn" example:"block"`
	// How discover_tool writes the schemas of a definition: json as the server sent them, typescript as types, in fewer tokens. With scripts typescript is the default. See docs/definitions.md.
	Definitions string `json:"definitions" enum:"json,typescript" default:"json" example:"typescript"`
	// The most characters of any tool's result, whatever its max_output_chars. 0 is no limit.
	MaxResultChars int `json:"max_result_chars" default:"0" example:"500000"`
	// The most bytes of definitions in one answer of mcp_discover, and of proxy's list without a limit. 0 is 512 KB for proxy, 16 KB for mcp_discover.
	MaxListBytes int `json:"max_list_bytes" default:"0" example:"2097152"`
}
