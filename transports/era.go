package transports

// An Era is one of the two ways in which MCP peers introduce themselves.
type Era int

const (
	// Handshake is the era of the versions up to 2025-11-25: a session begins
	// with initialize.
	Handshake Era = iota
	// Stateless is the era from StatelessVersion on: every request says by itself
	// what its sender speaks and can do.
	Stateless
)

// StatelessVersion is the first protocol version of the stateless era.
const StatelessVersion = "2026-07-28"

// Members of _meta in the stateless era (MCP 2026-07-28, "Lifecycle").
const (
	MetaVersion        = "io.modelcontextprotocol/protocolVersion"
	MetaCapabilities   = "io.modelcontextprotocol/clientCapabilities"
	MetaClientInfo     = "io.modelcontextprotocol/clientInfo"
	MetaSubscriptionID = "io.modelcontextprotocol/subscriptionId"
	MetaLogLevel       = "io.modelcontextprotocol/logLevel"
)

// EraMeta are the members of a request's _meta that mean something in the
// stateless era only.
var EraMeta = []string{MetaVersion, MetaCapabilities, MetaClientInfo, MetaLogLevel}
