package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"dynmcp/internal/wire"
	"dynmcp/transports"
)

// probeWait is how long an upstream may take to say which era it is of. Those
// that know only the handshake answer with an error at once, most of them.
const probeWait = 3 * time.Second

// ErrProbe says that an upstream ended when it was asked for its era. It may
// live if it is opened again with Options.Legacy.
var ErrProbe = errors.New("it ended at server/discover")

// probe asks which protocol versions the upstream speaks and, where the
// stateless era is among them, settles on it (MCP 2026-07-28, "Discovery").
// Requests declare no capabilities unless the host that makes them does: a host
// of the handshake era could not be asked in this one.
func (c *Conn) probe(ctx context.Context) (settled bool, err error) {
	info, err := json.Marshal(c.opts.Info)
	if err != nil {
		return false, err
	}
	c.introduce = [][2]string{
		{transports.MetaVersion, `"` + transports.StatelessVersion + `"`},
		{transports.MetaCapabilities, `{}`},
		{transports.MetaClientInfo, string(info)},
	}
	waiting, cancel := context.WithTimeout(ctx, probeWait)
	defer cancel()
	result, err := c.Call(waiting, methodDiscover, c.dressed(nil))
	var failure *transports.Failure
	switch {
	case err == nil:
		return c.settle(result), nil
	case ctx.Err() != nil:
		return false, c.StartFailure(methodDiscover, ctx.Err())
	case c.Err() != nil:
		return false, fmt.Errorf("%w: %w", ErrProbe, err)
	case errors.As(err, &failure) && (failure.Code == transports.CodeAuthRequired || failure.Code == transports.CodeRateLimited):
		return false, failure
	}
	c.log.Debug("no stateless protocol", "err", err)
	return false, nil
}

// methodDiscover is the first request of the stateless era.
const methodDiscover = "server/discover"

func (c *Conn) settle(result json.RawMessage) bool {
	var speaks bool
	for version := range wire.Elements(wire.Get(result, "supportedVersions")) {
		speaks = speaks || string(version) == `"`+transports.StatelessVersion+`"`
	}
	if !speaks {
		return false
	}
	instructions, _ := wire.Text(wire.Get(result, "instructions"))
	c.hello = Hello{
		ProtocolVersion: transports.StatelessVersion,
		Capabilities:    wire.Get(result, "capabilities"),
		ServerInfo:      wire.Get(result, "_meta", mcp.MetaKeyServerInfo),
		Instructions:    instructions,
		// What is left is no matter of the era, nor of the one answer.
		Rest: wire.Delete(result, "supportedVersions", "capabilities", "instructions", "_meta", "resultType", "ttlMs", "cacheScope"),
	}
	c.stateless.Store(true)
	return true
}

// Stateless reports whether the upstream is spoken to without a session, each
// request saying what its sender can do.
func (c *Conn) Stateless() bool { return c.stateless.Load() }

// dressed returns params with what every request of the stateless era says:
// the version is ours, what a host said of itself stays.
func (c *Conn) dressed(params json.RawMessage) json.RawMessage {
	if len(params) == 0 {
		params = json.RawMessage(`{}`)
	}
	meta := wire.Get(params, "_meta")
	if !wire.IsObject(meta) {
		meta = json.RawMessage(`{}`)
	}
	for _, member := range c.introduce {
		if member[0] == transports.MetaVersion || wire.Get(meta, member[0]) == nil {
			meta = wire.Set(meta, member[0], []byte(member[1]))
		}
	}
	return wire.Set(params, "_meta", meta)
}

// Subscribe asks for resources/updated of a resource. In the stateless era
// subscriptions share one stream, which is opened anew.
func (c *Conn) Subscribe(ctx context.Context, params json.RawMessage) error {
	if !c.stateless.Load() {
		_, err := c.Call(ctx, "resources/subscribe", params)
		return err
	}
	return c.resubscribe(params, func(uris map[string]bool, uri string) { uris[uri] = true })
}

// Unsubscribe ends what Subscribe began.
func (c *Conn) Unsubscribe(ctx context.Context, params json.RawMessage) error {
	if !c.stateless.Load() {
		_, err := c.Call(ctx, "resources/unsubscribe", params)
		return err
	}
	return c.resubscribe(params, func(uris map[string]bool, uri string) { delete(uris, uri) })
}

func (c *Conn) resubscribe(params json.RawMessage, change func(map[string]bool, string)) error {
	uri, ok := wire.Text(wire.Get(params, "uri"))
	if !ok {
		return &wire.Error{Code: wire.CodeInvalidParams, Message: `"uri" must be a string`}
	}
	c.mu.Lock()
	change(c.uris, uri)
	c.mu.Unlock()
	c.listen(reopenFirst)
	return nil
}

// listen opens the stream of what the upstream sends unasked, in the place of
// one that is open. When the stream ends it is opened again after pause, the
// next time after twice that.
func (c *Conn) listen(pause time.Duration) {
	opened := time.Now()
	call := &Call{Method: "subscriptions/listen", Params: c.subscriptions(), unlimited: true}
	call.Done = func(_ json.RawMessage, err error) {
		var rpc *wire.Error
		if errors.As(err, &rpc) || !c.isListening(call) {
			return // it has no such stream, or another took its place
		}
		if time.Since(opened) > reopenMost {
			pause = reopenFirst
		}
		c.spawn(func() { c.relisten(pause) })
	}
	c.mu.Lock()
	old := c.listening
	c.listening = call
	c.mu.Unlock()
	c.Start(call)
	if old != nil {
		c.Cancel(old, nil)
	}
}

func (c *Conn) relisten(pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		c.listen(min(2*pause, reopenMost))
	case <-c.ctx.Done():
	}
}

func (c *Conn) isListening(call *Call) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.listening == call && c.err == nil
}

func (c *Conn) subscriptions() json.RawMessage {
	want := mcp.NotificationSubscriptions{ToolsListChanged: true, PromptsListChanged: true, ResourcesListChanged: true}
	c.mu.Lock()
	for uri := range c.uris {
		want.ResourceSubscriptions = append(want.ResourceSubscriptions, uri)
	}
	c.mu.Unlock()
	params, err := json.Marshal(map[string]any{"notifications": want})
	if err != nil {
		return nil
	}
	return params
}

// withoutSubscription removes from a notification the id of our own
// subscription, which means nothing to anybody else.
func withoutSubscription(params json.RawMessage) json.RawMessage {
	meta := wire.Get(params, "_meta")
	if wire.Get(meta, transports.MetaSubscriptionID) == nil {
		return params
	}
	rest := wire.Delete(meta, transports.MetaSubscriptionID)
	if string(rest) == "{}" {
		return wire.Delete(params, "_meta")
	}
	return wire.Set(params, "_meta", rest)
}
