package schema

import "time"

// Gateway configures the HTTP side of dynmcp.
type Gateway struct {
	// The address that dynmcp serve listens on when it is given none.
	Listen string `json:"listen" example:"127.0.0.1:8080"`
	// The address of the debug page. Left out, there is none.
	DebugListen string `json:"debug_listen" example:"127.0.0.1:8081"`
	// What the page at that address offers to those who have the token: read shows this run as dynmcp ui does, change also changes its servers and the config, off leaves only the view Live.
	UI string `json:"ui" enum:"off,read,change" default:"read" example:"change"`
	// The bearer token of every request. Left out, requests from this machine need none.
	Token string `json:"token" nonblank:"true" secret:"true" example:"${DYNMCP_TOKEN}"`
	// The authorization servers (OAuth) whose tokens are accepted, exactly as the tokens name them.
	Issuers []string `json:"issuers" default:"[]" example:"[\"https://login.example.com\"]"`
	// The audience (aud) of those tokens: the address at which hosts reach the gateway.
	Audience string `json:"audience" nonblank:"true" example:"https://mcp.example.com/mcp"`
	// The scopes that those tokens must have.
	Scopes []string `json:"scopes" default:"[]" example:"[mcp]"`
	// The address at which the browsers of users reach the gateway, for logins of their own. Left out, that of audience, or the one that dynmcp listens on.
	PublicURL string `json:"public_url" nonblank:"true" pattern:"^https?://|[$][{]" example:"https://mcp.example.com"`
	// The names and addresses that a request's Host may have, besides the address that dynmcp listens on.
	AllowedHosts []string `json:"allowed_hosts" default:"[localhost, 127.0.0.1, \"::1\"]" example:"[mcp.example.com]"`
	// The origins of web pages that may send requests, exactly as browsers send them.
	AllowedOrigins []string `json:"allowed_origins" default:"[]" example:"[\"https://app.example.com\"]"`
	// The largest request body, in bytes.
	MaxRequestBytes int `json:"max_request_bytes" min:"1" default:"1048576" example:"4194304"`
	// The largest response, in bytes.
	MaxResponseBytes int `json:"max_response_bytes" min:"1" default:"10485760" example:"52428800"`
	// The most bytes held for all hosts: requests without an answer, answers that are being read from servers, calls that wait for input, unread messages, what sessions keep, the memory of scripts. One user or address may have as much as it leaves for others, and its fullest stream besides.
	MaxHeldBytes int `json:"max_held_bytes" min:"1048576" default:"536870912" example:"268435456"`
	// The most event streams that only listen, open at once for one server.
	MaxConnections int `json:"max_connections" min:"1" default:"1024" example:"5"`
	// How long an unused session lives; 0 is for ever.
	SessionIdle time.Duration `json:"session_idle" default:"30m" example:"2h"`
}
