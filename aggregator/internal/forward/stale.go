package forward

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// A server that refuses a request because of what it has listed says that the list is out of
// date. It is listed again, once a call, whether or not the server announces the change. The lists
// of a server that runs elsewhere come from its replica, which is not asked for that.

// codeHeaderMismatch means that headers do not match the body, such as those that the schema of a
// tool requires (MCP 2026-07-28, "Standard Headers"). In the era of handshakes it is any code of a server.
const codeHeaderMismatch = -32020

// A stale is an entry of a list that may be out of date.
type stale struct {
	changed, method, member, name string
	unrun                         bool // the request certainly did not run
}

// unknownName matches the errors of servers, those of the official SDKs first, that say of one tool or
// prompt alone that there is none.
func unknownName(kind, name string) *regexp.Regexp {
	quoted := "[\"'`]?" + regexp.QuoteMeta(name) + "[\"'`]?"
	return regexp.MustCompile(`^(?i:mcp error -3260[12]: )?(?i:unknown ` + kind + `:? )` + quoted + `\.?$|^(?i:mcp error -3260[12]: )?(?i:` + kind + ` )` + quoted + `(?i: (was )?not found)\.?$`)
}

// staleBy returns what an upstream's error says is stale, nil if nothing.
func (c *Call) staleBy(rpc *wire.Error, conn *upstream.Conn) *stale {
	switch t := c.Route.Tool; {
	case c.Method == "tools/call" && t != nil:
		unrun := rpc.Code == codeHeaderMismatch && conn.Era() == transports.Stateless || unknownName("tool", t.Upstream).MatchString(rpc.Message)
		if unrun || rpc.Code == wire.CodeMethodNotFound { // which a tool may return, too
			return &stale{"notifications/tools/list_changed", "tools/list", "name", t.Upstream, unrun}
		}
	case c.Method == "resources/read" && (rpc.Code == CodeResourceNotFound || rpc.Code == wire.CodeInvalidParams):
		uri, _ := wire.Text(wire.Get(c.Route.Params, "uri"))
		return &stale{"notifications/resources/list_changed", "resources/list", "uri", uri, false}
	case c.Method == "prompts/get":
		if name, _ := wire.Text(wire.Get(c.Route.Params, "name")); unknownName("prompt", name).MatchString(rpc.Message) {
			return &stale{"notifications/prompts/list_changed", "prompts/list", "name", name, false}
		}
	}
	return nil
}

// relist has what an upstream's error says is stale listed again, and reports whether it answers the
// request afterwards: it sends a call again that did not run, if its tool is still listed.
func (c *Call) relist(r *host.Request, conn *upstream.Conn, err error) bool {
	var failure *transports.Failure
	var rpc *wire.Error
	if c.Route.retry || errors.As(err, &failure) || !errors.As(err, &rpc) {
		return false
	}
	old := c.staleBy(rpc, conn)
	if old == nil || conn.Remote() || !c.Server.Listing.Has(conn, old.method, old.member, old.name) {
		return false
	}
	fetched := c.Server.Listing.Refetch(old.changed)
	if fetched == nil || !old.unrun || c.Route.borrowed {
		return false
	}
	again := c.again()
	again.retry = true
	kept := *rpc
	kept.Data, kept.Raw = bytes.Clone(rpc.Data), bytes.Clone(rpc.Raw) // the line is reused
	c.Env.Work.Answer(r, func() {
		<-fetched
		if c.Server.Listing.Has(conn, old.method, old.member, old.name) {
			c.Env.Dispatch(c.Session, r, again)
			return
		}
		c.answerError(r, conn, &kept)
	})
	return true
}

// maxRefusal is the longest result that may say in a few words that there is no such tool.
const maxRefusal = 1 << 10

// relistBy is relist for a result: an error of a tool may come from the tool itself, and the call is
// not repeated.
func (c *Call) relistBy(conn *upstream.Conn, result json.RawMessage) {
	t := c.Route.Tool
	if t == nil || len(result) > maxRefusal || string(wire.Get(result, "isError")) != "true" || conn.Remote() {
		return
	}
	for item := range wire.Elements(wire.Get(result, "content")) {
		text, _ := wire.Text(wire.Get(item, "text"))
		if unknownName("tool", t.Upstream).MatchString(text) && c.Server.Listing.Has(conn, "tools/list", "name", t.Upstream) {
			c.Server.Listing.Refetch("notifications/tools/list_changed")
			return
		}
	}
}
