package hostfile

import (
	"slices"
	"strings"
	"testing"
)

// own are keys of dynmcp that hosts write alike.
var own = []string{"command", "args", "env", "cwd", "url", "headers", "disabled", "timeout", "description", "instructions", "sandbox"}

// documented are the keys of entries that the schemas and the documentation of the hosts name: those that
// are read, and those that are not, for the reason in the table of keys.
var documented = []struct{ hosts, source, read, left string }{
	{"claude-code", "https://code.claude.com/docs/en/mcp", "type command args env url headers oauth timeout", "headersHelper alwaysLoad"},
	{"claude-plugin", "https://code.claude.com/docs/en/plugins-reference", "type command args env cwd url headers oauth", "headersHelper"},
	{"claude-desktop", "https://modelcontextprotocol.io/docs/develop/connect-local-servers", "command args env", ""},
	{"cursor", "https://cursor.com/docs/context/mcp", "type command args env envFile url headers auth", ""},
	{"vscode devcontainer", "https://github.com/microsoft/vscode/blob/main/src/vs/workbench/contrib/mcp/common/mcpConfiguration.ts",
		"type command args env envFile cwd url headers oauth", "dev gallery version sandboxEnabled"},
	{"codex", "https://developers.openai.com/codex/config-schema.json, RawMcpServerConfig",
		"command args env env_vars cwd url bearer_token bearer_token_env_var http_headers env_http_headers enabled enabled_tools disabled_tools startup_timeout_sec startup_timeout_ms tool_timeout_sec scopes oauth",
		"required oauth_resource default_tools_approval_mode tools supports_parallel_tool_calls experimental_environment name"},
	{"gemini", "https://github.com/google-gemini/gemini-cli/blob/main/schemas/settings.schema.json, MCPServerConfig",
		"command args env cwd url httpUrl headers type timeout description includeTools excludeTools oauth", "trust extension tcp authProviderType targetAudience targetServiceAccount"},
	{"qwen", "https://qwenlm.github.io/qwen-code-docs/en/users/features/mcp/",
		"command args env cwd url httpUrl headers type timeout description includeTools excludeTools oauth", "trust extension tcp authProviderType targetAudience targetServiceAccount discoveryTimeoutMs"},
	{"opencode", "https://opencode.ai/config.json, McpLocalConfig and McpRemoteConfig", "type command environment enabled cwd url headers oauth", "timeout"},
	{"zed", "https://zed.dev/docs/ai/mcp", "command args env url headers timeout enabled oauth", "source settings remote"},
	{"windsurf", "https://docs.windsurf.com/windsurf/cascade/mcp", "command args env serverUrl url headers disabled disabledTools", "alwaysAllow"},
	{"cline", "https://docs.cline.bot/mcp/configuring-mcp-servers", "type transportType command args env cwd url headers disabled timeout", "autoApprove alwaysAllow remoteConfigured"},
	{"roo", "https://docs.roocode.com/features/mcp/using-mcp-in-roo", "type command args env cwd url headers disabled timeout disabledTools", "alwaysAllow watchPaths"},
	{"copilot", "https://docs.github.com/en/copilot/how-tos/copilot-cli/add-mcp-servers", "type command args env cwd url headers timeout tools", "filterMapping"},
	{"lmstudio", "https://lmstudio.ai/docs/app/mcp", "command args env url headers timeout", ""},
	{"kiro", "https://kiro.dev/docs/mcp/configuration", "command args env url headers disabled timeout disabledTools", "autoApprove"},
	{"junie", "https://junie.jetbrains.com/docs/junie-cli-mcp-configuration.html", "command args env url headers type", ""},
	{"continue", "https://github.com/continuedev/continue/blob/main/packages/config-yaml/src/schemas/mcp/index.ts",
		"command args env cwd url type requestOptions connectionTimeout apiKey", "name serverName faviconUrl sourceFile"},
	{"amp", "https://ampcode.com/manual", "command args env url headers includeTools", ""},
	{"goose", "https://github.com/block/goose/blob/main/crates/goose/src/agents/extension.rs",
		"type cmd args envs env_keys uri headers timeout enabled available_tools description", "name display_name bundled socket"},
	{"crush", "https://charm.land/crush.json, MCPConfig", "type command args env url headers timeout disabled disabled_tools enabled_tools", ""},
	{"vibe", "https://github.com/mistralai/mistral-vibe/blob/main/vibe/core/config.py",
		"transport command args env cwd url headers api_key_env disabled disabled_tools startup_timeout_sec tool_timeout_sec api_key_header api_key_format", "name prompt sampling_enabled"},
	{"trae", "https://docs.trae.ai/ide/model-context-protocol", "command args env url headers type disabled", "fromGalleryId"},
	{"factory", "https://docs.factory.ai/cli/configuration/mcp", "type command args env url headers disabled disabledTools timeoutMs oauth", ""},
	{"amazonq", "https://github.com/aws/amazon-q-developer-cli/blob/main/schemas/agent-v1.json", "type command args env url headers timeout disabled disabledTools oauth oauthScopes", "autoApprove"},
	{"jan", "https://github.com/janhq/jan/blob/main/src-tauri/src/core/mcp/constants.rs", "type command args env url headers timeout active", "official"},
	{"augment", "https://docs.augmentcode.com/setup-augment/mcp", "type command args env url headers", "name"},
	{"hermes", "https://hermes-agent.nousresearch.com/docs/user-guide/features/mcp", "command args env url headers timeout connect_timeout enabled tools auth oauth", "sampling"},
	{"openhands", "https://docs.openhands.dev/openhands/usage/settings/mcp-settings", "command args env url api_key timeout transport headers enabled", "name"},
	{"librechat", "https://github.com/danny-avila/LibreChat/blob/main/packages/data-provider/src/mcp.ts",
		"type command args env url headers timeout initTimeout description oauth", "title startup iconPath sseReadTimeout chatMenu serverInstructions requiresOAuth oauth_headers apiKey obo customUserVars stderr"},
	{"openclaw", "https://docs.openclaw.ai/cli/mcp", "command args env cwd url headers transport connectionTimeoutMs", ""},
	{"fast-agent", "https://github.com/evalstate/fast-agent/blob/main/src/fast_agent/config.py, MCPServerSettings; mcp-agent's",
		"transport command args env cwd url headers auth description read_timeout_seconds allowed_tools",
		"name roots elicitation sampling implementation include_instructions load_on_start http_timeout_seconds read_transport_sse_timeout_seconds terminate_on_close ping_interval_seconds max_missed_pings reconnect_on_disconnect"},
	{"mcpb", "https://github.com/modelcontextprotocol/mcpb/blob/main/MANIFEST.md", "command args env", ""},
	{"other", "what the documentation of servers and other programs write: mcphub, Cherry Studio, mcp-use, LangChain",
		"arguments environment_variables serverURL server_url baseUrl endpoint working_dir workingDir workingDirectory working_directory env_file request_options requestInit eventSourceInit bearerTokenEnvVar bearerToken isActive isEnabled is_active transport_type requestTimeout request_timeout toolTimeout timeout_seconds timeout_sec timeout_ms timeoutMs request_timeout_ms tool_timeout_ms include_tools enabledTools exclude_tools oauth_scopes",
		"auto_approve autoApproveAll allowedPrompts oauthResource proxy schemaGeneration id"},
}

// Every key that a host documents is read, or left out for a reason, and every key of the table is one that a
// host documents.
func TestDocumentedKeys(t *testing.T) {
	seen, hosts := map[string]bool{}, []string{"registry", "smithery"} // manifests without entries
	for _, row := range documented {
		if !strings.HasPrefix(row.source, "https://") && row.hosts != "other" {
			t.Errorf("%s: no source", row.hosts)
		}
		for _, name := range strings.Fields(row.hosts) {
			hosts = append(hosts, name)
			h := Named(name)
			if name == Other.Name {
				h = Other
			}
			if h == nil {
				t.Fatalf("there is no host %s", name)
			}
			for _, key := range strings.Fields(row.read) {
				seen[key] = true
				if m, ok := h.meaning(key); !slices.Contains(own, key) && (!ok || m.Why != "") {
					t.Errorf("%s: %s is not read, %q; see %s", name, key, m.Why, row.source)
				}
			}
			for _, key := range strings.Fields(row.left) {
				seen[key] = true
				if m, ok := h.meaning(key); !ok || m.Why == "" {
					t.Errorf("%s: %s is not left out for a reason; see %s", name, key, row.source)
				}
			}
		}
	}
	for _, h := range All {
		if !slices.Contains(hosts, h.Name) {
			t.Errorf("%s: its keys are not listed", h.Name)
		}
		for key := range h.Keys {
			if !seen[key] {
				t.Errorf("%s: no source names %s", h.Name, key)
			}
		}
	}
	for _, key := range Keys() {
		if !seen[key] {
			t.Errorf("no host names %s", key)
		}
	}
}
