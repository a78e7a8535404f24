// Package registry asks registries of MCP servers (API v0.1 of modelcontextprotocol/registry)
// which servers there are, and makes entries of a config of what they say.
//
// A Client fetches pages and keeps them (client.go, cache.go, guard.go). What a page has is
// a Server: the server.json of one version with its status (server.go). Options are the ways
// to run it: a package or a remote (options.go). An Option has questions (questions.go), and
// with their answers it is an entry (build.go, runner.go, bundle.go). What is newer is told by
// versions.go.
//
// A registry is not trusted. Its texts are never expanded, no shell reads them, what it
// may put before the name of a package is a list (runner.go), and the entry that is shown to
// a person is all that runs.
package registry
