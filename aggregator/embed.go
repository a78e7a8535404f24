package aggregator

import (
	"context"

	"dynmcp/catalog"
)

// Load starts a server unless it runs, and returns when it is listed, or why
// it is not: a *transports.Failure where the server is to blame, ctx's error
// where ctx ends first. A host must have introduced itself, for servers are
// told what it can do. The server stays until the aggregator closes, even
// where its entry has an idle timeout.
func (a *Aggregator) Load(ctx context.Context, server string) error {
	u := a.set.Get(server)
	if u == nil {
		return &UnknownServerError{Name: server}
	}
	_, _, err := u.Load(ctx) // not released: it stays
	return err
}

// An UnknownServerError says that a config has no such server, or has it
// disabled.
type UnknownServerError struct{ Name string }

func (e *UnknownServerError) Error() string { return "unknown MCP server: " + e.Name }

// View returns what is known of the servers now.
func (a *Aggregator) View() *catalog.View { return a.catalog.View() }
