package hostfile

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/dynmcp/dynmcp/schema/syntax"
)

// A Meaning is what a key of an entry is for dynmcp: another key, perhaps with a conversion, or
// nothing, with the reason.
type Meaning struct {
	// To is dynmcp's key, the main one if With sets several.
	To string
	// Unless are keys that say the same and are stronger.
	Unless []string
	// With converts the member if To does not say all.
	With func(*entry, syntax.Member)
	// Why is the reason why a key is not read.
	Why string
}

// silent is the reason for leaving out a key that says nothing about the server.
const silent = "-"

const (
	hostAsks = "dynmcp asks nobody before a call, that is the host's part"
	hostOnly = "only the host can use it"
	atServer = "what a login needs is found at the server, or written in auth"
)

// meanings are the keys of entries, as hosts and the documentation of servers write them. A key that
// is not here and not dynmcp's is left out with a warning.
var meanings map[string]Meaning

func init() { // the conversions refer to this table
	renamed := func(to string, keys ...string) map[string]Meaning {
		all := map[string]Meaning{}
		for i, key := range keys {
			all[key] = Meaning{To: to, Unless: append([]string{to}, keys[:i]...)}
		}
		return all
	}
	with := func(to string, convert func(*entry, syntax.Member), keys ...string) map[string]Meaning {
		all := map[string]Meaning{}
		for _, key := range keys {
			all[key] = Meaning{To: to, With: convert}
		}
		return all
	}
	duration := func(to, unit string) func(*entry, syntax.Member) {
		return func(e *entry, m syntax.Member) { e.duration(m, to, unit) }
	}
	meanings = map[string]Meaning{}
	for _, part := range []map[string]Meaning{
		with("command", (*entry).command, "command"),
		{"cmd": {To: "command", With: (*entry).command, Unless: []string{"command"}}},
		with("args", (*entry).list, "args"), with("args", (*entry).list, "arguments"),
		with("transport", (*entry).transport, "transport", "type", "transportType", "transport_type"),
		{"url": {To: "url", Unless: []string{"httpUrl"}}, "httpUrl": {To: "url", With: (*entry).httpURL}},
		renamed("url", "serverUrl", "serverURL", "server_url", "uri", "baseUrl", "endpoint"),
		renamed("cwd", "working_dir", "workingDir", "workingDirectory", "working_directory"),
		with("env", (*entry).environment, "env", "environment", "envs", "environment_variables"),
		with("env", (*entry).passed, "env_vars", "env_keys"),
		with("env", (*entry).envFile, "envFile", "env_file"),
		with("headers", (*entry).headers, "headers", "http_headers", "requestOptions", "request_options", "requestInit", "eventSourceInit"),
		with("headers", (*entry).headersFromEnv, "env_http_headers"),
		with("headers", (*entry).bearer, "bearer_token_env_var", "bearerTokenEnvVar", "api_key_env", "bearer_token", "bearerToken", "api_key", "apiKey"),
		with("disabled", (*entry).disabled, "disabled", "enabled", "active", "isActive", "isEnabled", "is_active"),
		with("timeout", duration("timeout", ""), "timeout", "requestTimeout", "request_timeout", "toolTimeout"),
		with("timeout", duration("timeout", "s"), "tool_timeout_sec", "timeout_seconds", "timeout_sec", "read_timeout_seconds"),
		with("timeout", duration("timeout", "ms"), "timeout_ms", "timeoutMs", "request_timeout_ms", "tool_timeout_ms"),
		with("load_timeout", duration("load_timeout", "s"), "startup_timeout_sec", "connect_timeout"),
		with("load_timeout", duration("load_timeout", "ms"), "startup_timeout_ms", "initTimeout", "connectionTimeout", "connectionTimeoutMs"),
		with("tool_filter", func(e *entry, m syntax.Member) { e.filter(m, false) }, "includeTools", "include_tools", "enabled_tools", "enabledTools", "available_tools", "allowed_tools", "tools"),
		with("tool_filter", func(e *entry, m syntax.Member) { e.filter(m, true) }, "excludeTools", "exclude_tools", "disabledTools", "disabled_tools"),
		with("auth", (*entry).auth, "auth"), with("auth", (*entry).oauth, "oauth", "scopes", "oauth_scopes", "oauthScopes"),
		with("headers", func(*entry, syntax.Member) {}, "api_key_header", "api_key_format"), // bearer reads them
	} {
		maps.Copy(meanings, part)
	}
	for why, keys := range unread() {
		for _, key := range strings.Fields(keys) {
			meanings[key] = Meaning{Why: why}
		}
	}
}

// unread are the keys that are not read, by the reason.
func unread() map[string]string {
	return map[string]string{
		hostAsks:                      "autoApprove alwaysAllow trust auto_approve autoApproveAll alwaysLoad allowedPrompts default_tools_approval_mode",
		"the host's development mode": "dev",
		"the host logs in with the user's account at Google": "authProviderType targetAudience targetServiceAccount",
		"the host gets a token for each of its users":        "obo oauth_headers",
		"dynmcp reaches programs and http addresses":         "tcp",
		"dynmcp passes on what its host answers":             "sampling sampling_enabled elicitation roots implementation",
		"dynmcp passes on the server's own":                  "prompt include_instructions",
		"dynmcp keeps connections itself": "sseReadTimeout http_timeout_seconds read_transport_sse_timeout_seconds terminate_on_close ping_interval_seconds max_missed_pings reconnect_on_disconnect load_on_start discoveryTimeoutMs" +
			" stderr socket",
		"the server names its own resource":                                                           "oauth_resource oauthResource",
		"they are for an extension of the host":                                                       "settings",
		`dynmcp's own is switched on by "sandbox": true`:                                              "sandboxEnabled",
		`it is a program that writes headers; a header can be ${cmd:COMMAND}, which prints its value`: "headersHelper",
		"the host inserts what each of its users has set; give it as variables":                       "customUserVars",
		hostOnly: "chatMenu serverInstructions startup requiresOAuth proxy faviconUrl schemaGeneration watchPaths required" +
			" remote remoteConfigured filterMapping extension supports_parallel_tool_calls experimental_environment title iconPath official fromGalleryId",
		silent: "gallery version source sourceFile name serverName display_name id bundled",
	}
}

// Keys returns the keys of entries that are read as something else, or left out for a reason.
func Keys() []string { return slices.Sorted(maps.Keys(meanings)) }

// KeysByMeaning returns the keys of entries by dynmcp's key that they are read as, and by the reason why
// they are left out. Keys that say nothing about a server are in neither.
func KeysByMeaning() (read, left map[string][]string) {
	read, left = map[string][]string{}, map[string][]string{}
	for _, key := range Keys() {
		switch m := meanings[key]; {
		case m.Why == "" && m.To != key:
			read[m.To] = append(read[m.To], key)
		case m.Why != "" && m.Why != silent:
			left[m.Why] = append(left[m.Why], key)
		}
	}
	return read, left
}

// meaning returns the meaning of a key for a host.
func (h *Host) meaning(key string) (Meaning, bool) {
	if m, ok := h.Keys[key]; ok {
		return m, true
	}
	m, ok := meanings[key]
	return m, ok
}

// loginKeys are the keys of hosts for a login, with ours.
var loginKeys = map[string]string{
	"CLIENT_ID": "client_id", "clientId": "client_id", "clientID": "client_id", "client_id": "client_id",
	"CLIENT_SECRET": "client_secret", "clientSecret": "client_secret", "client_secret": "client_secret",
	"scopes": "scope", "scope": "scope", "oauthScopes": "scope", "oauth_scopes": "scope",
	"redirectUri": "callback", "redirect_uri": "callback", "callbackPort": "callback_port", "callback_port": "callback_port",
}

// transports are the spellings of transports, in small letters and without signs. That of any remote
// server is left for dynmcp to find out.
var transports = map[string]string{
	"stdio": "stdio", "local": "stdio", "process": "stdio", "command": "stdio", "npx": "stdio", "uvx": "stdio",
	"http": "streamable-http", "https": "streamable-http", "streamablehttp": "streamable-http", "streamable": "streamable-http",
	"httpstream": "streamable-http", "httpstreamable": "streamable-http", "streamhttp": "streamable-http", "shttp": "streamable-http",
	"sse": "sse", "httpsse": "sse", "remote": "", "auto": "", "mcp": "", "url": "",
}

// HTTP is what hosts call streamable-http.
const HTTP = "http"

// TransportPattern matches the spellings of transports.
func TransportPattern() string {
	var words []string
	for _, word := range slices.Sorted(maps.Keys(transports)) {
		var b strings.Builder
		for _, letter := range word {
			fmt.Fprintf(&b, "[%c%c][^A-Za-z]*", letter, unicode.ToUpper(letter))
		}
		words = append(words, b.String())
	}
	return "^[^A-Za-z]*(" + strings.Join(words, "|") + ")?$"
}
