package api

// Keys are the module's keys of a server.
type Keys struct {
	// The server and version in a registry that the entry was made from.
	Registry string `json:"registry" nonblank:"true" example:"io.github.user/weather@1.2.0"`
}
