package schema

// Transports a Server may name.
const (
	Stdio          = "stdio"
	StreamableHTTP = "streamable-http"
	SSE            = "sse"
)

// Surfaces that Config.Expose may name.
const (
	ExposeDiscover = "discover"
	ExposeTree     = "tree"
	ExposeBrowser  = "browser"
	ExposeProxy    = "proxy"
	ExposeDirect   = "direct"
	// ExposeAuto is one of ExposeDiscover and ExposeDirect, by the host.
	ExposeAuto = "auto"
)

// Surfaces are all of them.
var Surfaces = []string{ExposeDiscover, ExposeTree, ExposeBrowser, ExposeProxy, ExposeDirect, ExposeAuto}

// Values of Config.Host.
const (
	HostClaudeCode    = "claude-code"
	HostClaudeDesktop = "claude-desktop"
	HostCodex         = "codex"
	HostCursor        = "cursor"
	HostGeminiCLI     = "gemini-cli"
	HostOpencode      = "opencode"
	HostVSCode        = "vscode"
	HostOther         = "other"
)

// Values of Catalog.Stable.
const (
	StableAuto = "auto"
	StableOn   = "on"
	StableOff  = "off"
)

// Values of Catalog.OnChange.
const (
	OnChangeWarn   = "warn"
	OnChangeBlock  = "block"
	OnChangeIgnore = "ignore"
)

// Values of Server.Load.
const (
	LoadEager = "eager"
	LoadLazy  = "lazy"
)

// Values of Config.UseTool.
const (
	UseToolOne   = "one"
	UseToolSplit = "split"
)

// Values of ToolOverride.RenderMode.
const (
	RenderJSON = "json"
	RenderText = "text"
	RenderRaw  = "raw"
)

// Values of Server.Isolation.
const (
	IsolateNone      = "none"
	IsolateSession   = "session"
	IsolatePrincipal = "principal"
)

// Values of Server.Place.
const (
	PlaceOne       = "one"
	PlaceEach      = "each"
	PlacePrincipal = "principal"
)

// Ways of Auth to log in.
const (
	GrantAuthorizationCode = "authorization_code"
	GrantClientCredentials = "client_credentials"
	GrantJWTBearer         = "jwt_bearer"
)
