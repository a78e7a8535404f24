package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
)

// A listener is one open subscriptions/listen.
type listener struct {
	id   json.RawMessage
	send func(msg []byte)
	end  chan struct{} // closed when the server ends the subscription
	wish wish

	acknowledging sync.Mutex // held until the acknowledgement was sent
}

// wish is the notifications that a listener subscribed to.
type wish struct {
	Tools     bool     `json:"toolsListChanged"`
	Prompts   bool     `json:"promptsListChanged"`
	Resources bool     `json:"resourcesListChanged"`
	URIs      []string `json:"resourceSubscriptions"`
	Tasks     []string `json:"taskIds"`
}

// listen acknowledges, and stays open until the client cancels or the tool end_listen ends it. From
// the line "listening" in the ledger on every change is sent; the line of the request is written
// before.
func (c *call) listen() (json.RawMessage, error) {
	var params struct{ Notifications json.RawMessage }
	l := &listener{id: c.ID, send: c.send, end: make(chan struct{})}
	if err := decode(c.Params, &params); err != nil {
		return nil, err
	}
	if params.Notifications == nil {
		return nil, failure(-32602, "missing notifications")
	}
	if err := decode(params.Notifications, &l.wish); err != nil {
		return nil, err
	}
	l.acknowledging.Lock()
	c.peer.addListener(l)
	defer c.peer.dropListener(l)
	l.send(l.notification("notifications/subscriptions/acknowledged", fmt.Sprintf(`"notifications":%s`, params.Notifications)))
	l.acknowledging.Unlock()
	c.peer.fake.ledger.add("listening %s", l.id)
	select {
	case <-c.ctx.Done():
		return nil, errSilent
	case <-l.end:
		return fmt.Appendf(nil, `{%s,"_meta":{"%ssubscriptionId":%s}}`, grease, metaPrefix, l.id), nil
	}
}

// tell sends a notification on the subscription.
func (l *listener) tell(method, params string) {
	l.acknowledging.Lock()
	defer l.acknowledging.Unlock()
	l.send(l.notification(method, params))
}

// notification returns a notification with the id of the subscription.
func (l *listener) notification(method, params string) []byte {
	if params != "" {
		params += ","
	}
	return notification(method, fmt.Sprintf(`%s"_meta":{"%ssubscriptionId":%s}`, params, metaPrefix, l.id))
}

func (p *peer) addListener(l *listener) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listeners = append(p.listeners, l)
}

func (p *peer) dropListener(l *listener) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listeners = slices.DeleteFunc(p.listeners, func(other *listener) bool { return other == l })
}

func (p *peer) openListeners() []*listener {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.listeners)
}

// changed announces a changed list: directly to a client of the handshake era, and on subscriptions
// to it.
func (p *peer) changed(list string) {
	method := "notifications/" + list + "/list_changed"
	if p.initialized() {
		p.push(notification(method, ""))
	}
	for _, l := range p.openListeners() {
		if list == "tools" && l.wish.Tools || list == "prompts" && l.wish.Prompts || list == "resources" && l.wish.Resources {
			l.tell(method, "")
		}
	}
}

// updated announces a changed resource, and returns how many notifications were sent.
func (p *peer) updated(uri string) int {
	const method = "notifications/resources/updated"
	param, told := fmt.Sprintf(`"uri":%s`, quote(uri)), 0
	if p.watches(uri) {
		p.push(notification(method, param))
		told++
	}
	for _, l := range p.openListeners() {
		if slices.Contains(l.wish.URIs, uri) {
			l.tell(method, param)
			told++
		}
	}
	return told
}

func (p *peer) watches(uri string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.watched[uri]
}

func runEndListen(c *call, _ json.RawMessage) (json.RawMessage, error) {
	open := c.peer.openListeners()
	for _, l := range open {
		c.peer.dropListener(l)
		close(l.end)
	}
	return textResult(fmt.Sprintf("ended %d", len(open)), ""), nil
}
