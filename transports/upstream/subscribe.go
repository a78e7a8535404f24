package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"dynmcp/internal/wire"
	"dynmcp/transports"
)

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

// removeSubscriptionID removes from a notification the id of our own
// subscription, which means nothing to anybody else.
func removeSubscriptionID(params json.RawMessage) json.RawMessage {
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
