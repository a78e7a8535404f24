// Package api queries registries of MCP servers (API v0.1 of modelcontextprotocol/registry)
// and makes entries of a config from their answers.
//
// A Client fetches pages and caches them (client.go, cache.go, http.go). A page has Servers: the
// server.json of one version with its status (server.go). Options are the ways to run a server:
// a package or a remote (options.go). An Option has questions (questions.go), and with their
// answers it makes an entry (build.go, runner.go, bundle.go). versions.go finds newer versions.
//
// A registry is not trusted. Its texts are never expanded or read by a shell, only listed flags
// may come before the name of a package (runner.go), and only the entry that is shown to a
// person runs.
package api
