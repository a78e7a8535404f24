package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"dynmcp/internal/wire"
	"dynmcp/schema"
	"dynmcp/transports"
)

// handshakeVersion is the newest protocol version that has the initialize
// handshake.
const handshakeVersion = "2025-11-25"

// Handshake finds out which era the upstream is of and makes itself known,
// declaring capabilities (raw JSON, nil is none). An upstream that knows both
// is spoken to in the host's. The error wraps ErrProbe where the upstream did
// not survive the question.
func (c *Conn) Handshake(ctx context.Context, capabilities json.RawMessage) error {
	if capabilities == nil {
		capabilities = json.RawMessage(`{}`)
	}
	if c.connect != nil {
		if err := c.connect(ctx); err != nil {
			return err
		}
	}
	if c.opts.Legacy || c.server.Transport == schema.SSE {
		return c.initialize(ctx, capabilities)
	}
	var refused error
	if c.opts.OldHost != nil && c.opts.OldHost() {
		if refused = c.initialize(ctx, capabilities); !c.mayBeStateless(refused) {
			return refused
		}
	}
	stateless, err := c.probe(ctx)
	switch {
	case err != nil:
		return err
	case stateless:
		c.listen(reopenFirst)
		return nil
	case refused != nil:
		return refused
	}
	return c.initialize(ctx, capabilities)
}

// mayBeStateless reports whether err, of the older handshake, is a refusal and
// not the end of the upstream, a missing login or our own end.
func (c *Conn) mayBeStateless(err error) bool {
	var rpc *wire.Error
	var failure *transports.Failure
	return errors.As(err, &rpc) ||
		errors.As(err, &failure) && failure.Code == transports.CodeUnreachable && c.Err() == nil
}

// initialize makes the handshake of the versions up to 2025-11-25 (their
// "Lifecycle").
func (c *Conn) initialize(ctx context.Context, capabilities json.RawMessage) error {
	params, err := json.Marshal(struct {
		ProtocolVersion string          `json:"protocolVersion"`
		Capabilities    json.RawMessage `json:"capabilities"`
		ClientInfo      Info            `json:"clientInfo"`
	}{handshakeVersion, capabilities, c.opts.Info})
	if err != nil {
		return err
	}
	result, err := c.Call(ctx, "initialize", params)
	if err != nil {
		return c.StartFailure("initialize", err)
	}
	if err := c.greet(result); err != nil {
		return c.StartFailure("initialize", err)
	}
	return c.initialized()
}

func (c *Conn) greet(result json.RawMessage) error {
	if !wire.IsObject(result) {
		return fmt.Errorf("the answer is %s, not an object", wire.TypeName(result))
	}
	version, _ := wire.Text(wire.Get(result, "protocolVersion"))
	if !slices.Contains(mcp.SupportedProtocolVersions(), version) {
		return fmt.Errorf("it speaks protocol version %q, which is not known here", version)
	}
	instructions, _ := wire.Text(wire.Get(result, "instructions"))
	c.hello = Hello{
		ProtocolVersion: version,
		Capabilities:    wire.Get(result, "capabilities"),
		ServerInfo:      wire.Get(result, "serverInfo"),
		Instructions:    instructions,
		Rest:            wire.Delete(result, "protocolVersion", "capabilities", "serverInfo", "instructions"),
	}
	return nil
}

// initialized tells the upstream that the session has begun. It is the first
// message that a broken connection may swallow, so its error counts.
func (c *Conn) initialized() error {
	if err := c.begin(wire.Notification(wire.Quote("notifications/initialized"))...); err != nil {
		return c.StartFailure("notifications/initialized", err)
	}
	return nil
}

// StartFailure describes why an upstream could not be brought up. What did not
// start has run nothing.
func (c *Conn) StartFailure(step string, err error) error {
	var failure *transports.Failure
	if errors.As(err, &failure) {
		failure.Outcome = transports.NotSent
		if failure.Code == transports.CodeExited {
			failure.Code = transports.CodeStartFailed
		}
		return failure
	}
	code := int64(transports.CodeStartFailed)
	if errors.Is(err, context.DeadlineExceeded) {
		code, err = transports.CodeTimeout, errors.New("no answer within its load_timeout")
	}
	return c.fail(code, transports.NotSent, fmt.Errorf("%s: %w", step, err))
}

// pages, bytes and entries that one list may have; what is more is a fault of the
// upstream, not a catalogue. An entry costs a KB of ours, however small it is.
const (
	maxPages     = 100
	maxListBytes = 64 << 20
	maxEntries   = 100_000
)

// List returns all entries of a list, following its pages: method is for
// instance "tools/list", key the member that holds the entries. A cursor that
// comes twice, too many pages, entries or bytes are errors.
func (c *Conn) List(ctx context.Context, method, key string) ([]json.RawMessage, error) {
	entries := []json.RawMessage{}
	seen := map[string]bool{}
	var params json.RawMessage
	for size := 0; ; {
		result, err := c.Call(ctx, method, params)
		if err != nil {
			return nil, err
		}
		page := wire.Get(result, key)
		if len(page) == 0 || page[0] != '[' {
			return nil, c.fail(transports.CodeProtocol, transports.Executed, fmt.Errorf("%s: member %q is %s, not an array", method, key, wire.TypeName(page)))
		}
		for entry := range wire.Elements(page) {
			entries = append(entries, entry)
		}
		if size += len(result); size > maxListBytes || len(entries) > maxEntries {
			return nil, c.fail(transports.CodeProtocol, transports.Executed, fmt.Errorf("%s: more than %d bytes or %d entries", method, maxListBytes, maxEntries))
		}
		cursor := wire.Get(result, "nextCursor")
		if text, ok := wire.Text(cursor); !ok || text == "" {
			if c.stateless.Load() && method == "tools/list" {
				c.bind(entries)
			}
			return entries, nil
		}
		switch {
		case seen[string(cursor)]:
			return nil, c.fail(transports.CodeProtocol, transports.Executed, fmt.Errorf("%s: the same cursor came twice", method))
		case len(seen) >= maxPages:
			return nil, c.fail(transports.CodeProtocol, transports.Executed, fmt.Errorf("%s: more than %d pages", method, maxPages))
		}
		seen[string(cursor)] = true
		params = append(append(json.RawMessage(`{"cursor":`), cursor...), '}')
	}
}
