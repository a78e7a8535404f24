package schema

import (
	"slices"
	"strings"
)

// Transports a Server may name.
const (
	Stdio          = "stdio"
	StreamableHTTP = "streamable-http"
	SSE            = "sse"
)

var transports = []string{Stdio, StreamableHTTP, SSE}

// Surfaces that Config.Expose may name.
const (
	ExposeDiscover = "discover"
	ExposeTree     = "tree"
	ExposeBrowser  = "browser"
	ExposeProxy    = "proxy"
	ExposeDirect   = "direct"
	ExposeScript   = "script"
	// ExposeAuto is one of ExposeDiscover and ExposeDirect, by the host.
	ExposeAuto = "auto"
)

// Surfaces are all of them, those of modules included. If several are on, each text is that of the first
// that has it.
var Surfaces = []string{ExposeDiscover, ExposeTree, ExposeBrowser, ExposeProxy, ExposeDirect, ExposeScript, ExposeAuto}

// LacksSurface returns why a program with these sections does not have a surface, "" if no module that it lacks
// has one of this name.
func LacksSurface(sections []Section, surface string) string {
	if module := surfaceModules[surface]; module != "" && !slices.Contains(SurfacesOf(sections), surface) {
		return lacksModule("surface", module)
	}
	return ""
}

// SurfacesOf returns the surfaces of a program with these sections.
func SurfacesOf(sections []Section) []string {
	return slices.DeleteFunc(slices.Clone(Surfaces), func(surface string) bool {
		return surfaceModules[surface] != "" && !slices.ContainsFunc(sections, func(s Section) bool { return slices.Contains(s.Surfaces, surface) })
	})
}

// Values of Config.Host.
const (
	HostClaudeCode    = "claude-code"
	HostClaudeDesktop = "claude-desktop"
	HostCodex         = "codex"
	HostCopilot       = "copilot"
	HostCursor        = "cursor"
	HostGeminiCLI     = "gemini-cli"
	HostOpencode      = "opencode"
	HostVSCode        = "vscode"
	HostProgram       = "program" // it has no model
	HostOther         = "other"
)

// Values of Gateway.UI.
const (
	UIOff    = "off"
	UIRead   = "read"
	UIChange = "change"
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
	UseToolAuto  = "auto" // either, by the host
)

// Values of Catalog.Definitions.
const (
	DefinitionsJSON  = "json"
	DefinitionsTypes = "typescript"
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

// Values of Server.Credentials.
const (
	CredentialsShared = "shared"
	CredentialsUser   = "user"
)

// Values of Exchange.Form.
const (
	FormTokenExchange = "token_exchange"
	FormOnBehalfOf    = "on_behalf_of"
	FormIDJAG         = "id_jag"
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

// Off is why a server or a source of the tree is switched off: variables that its entry
// refers to are not set, or secrets cannot be found.
type Off struct {
	// Missing are the names of the variables.
	Missing []string
	// Failed has the problem of each secret that cannot be found.
	Failed []string
	// Hint says what to do.
	Hint string
}

// Why describes in a few words what is missing.
func (o *Off) Why() string {
	var all []string
	if last := len(o.Missing) - 1; last > 0 {
		all = append(all, strings.Join(o.Missing[:last], ", ")+" and "+o.Missing[last]+" are not set")
	} else if last == 0 {
		all = append(all, o.Missing[0]+" is not set")
	}
	return strings.Join(append(all, o.Failed...), ", ")
}
