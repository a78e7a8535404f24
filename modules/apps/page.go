package apps

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/extension"
	"github.com/dynmcp/dynmcp/internal/lazyregexp"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
)

//go:embed prologue.js
var prologue string

//go:embed dispatcher.html
var dispatcher string

// dispatcherURI is the view of use_app.
const dispatcherURI = "ui://dynmcp/view"

// metaApp is the member of a result's _meta that tells the dispatcher which view it runs.
const metaApp = "dynmcp/app"

// Show implements extension.Shower: a view begins with the prologue, and the result of a tool names its view.
func (p *part) Show(h extension.Host, a extension.Answer, result json.RawMessage) json.RawMessage {
	switch a.Method {
	case "resources/read":
		if bytes.Contains(result, []byte("text/html")) && p.shows(h) {
			return p.withPrologue(h, a.Server, result)
		}
	case "tools/call":
		switch {
		case a.Tool == nil || !a.Tool.HasView:
		case p.Keeps(h, a.Tool, a.Surface):
			return p.withAddress(h, a, result)
		case (a.Surface == schema.ExposeDiscover || a.Surface == useApp) && p.shows(h):
			return withView(h, a, result)
		}
	}
	return result
}

// withView returns the result of a tool with the URI of its view, which some hosts read there if the tool
// is not in their list.
func withView(h extension.Host, a extension.Answer, result json.RawMessage) json.RawMessage {
	v := h.View()
	uri := v.ViewOf(a.Tool)
	if uri == "" || !wire.IsObject(result) {
		return result
	}
	if wire.Get(result, "_meta", "ui") == nil {
		result = transports.SetMeta(result, "ui", fmt.Appendf(nil, `{"resourceUri":%s}`, wire.Quote(uri)))
	}
	if a.Surface == useApp {
		result = transports.SetMeta(result, metaApp, fmt.Appendf(nil, `{"resourceUri":%s,"tool":%s}`, wire.Quote(uri), a.Tool.Raw))
	}
	return result
}

// withPrologue returns the result of a read with the prologue in each view of a server.
func (p *part) withPrologue(h extension.Host, server string, result json.RawMessage) json.RawMessage {
	scope := server
	if h.IsSingleServer() {
		scope = ""
	}
	script := strings.Replace(prologue, "DYNMCP", fmt.Sprintf(`{view:%s,server:%s}`, wire.Quote(h.Seal(sealed, server)), wire.Quote(scope)), 1)
	script = "<script>" + script + "</script>"
	var edits []wire.Edit
	for content := range wire.Elements(wire.Get(result, "contents")) {
		uri, _ := wire.Text(wire.Get(content, "uri"))
		kind, _ := wire.Text(wire.Get(content, "mimeType"))
		if !strings.HasPrefix(uri, "ui://") || !strings.HasPrefix(kind, "text/html") {
			continue
		}
		p.note(uri, content)
		if text, ok := wire.Text(wire.Get(content, "text")); ok {
			edits = append(edits, wire.Edit{Span: wire.Locate(result, wire.Get(content, "text")), With: wire.Quote(atHead(text, script))})
		} else if blob, ok := wire.Text(wire.Get(content, "blob")); ok {
			if html, err := base64.StdEncoding.DecodeString(blob); err == nil {
				with := wire.Quote(base64.StdEncoding.EncodeToString([]byte(atHead(string(html), script))))
				edits = append(edits, wire.Edit{Span: wire.Locate(result, wire.Get(content, "blob")), With: with})
			}
		}
	}
	if edits == nil {
		return result
	}
	return wire.Replace(result, edits...)
}

// head matches what a page may have before its first script.
var head = lazyregexp.New(`(?is)^(\s|\x{FEFF}|<!--.*?-->|<!doctype[^>]*>|<html(\s[^>]*)?>|<head(\s[^>]*)?>)*`)

// atHead returns a page with a script that runs before its own.
func atHead(html, script string) string {
	at := len(head().FindString(html))
	return html[:at] + script + html[at:]
}

// needs are what a view needs of its host.
type needs struct {
	CSP         map[string][]string        `json:"csp,omitempty"`
	Permissions map[string]json.RawMessage `json:"permissions,omitempty"`
}

// note keeps what a view needs.
func (p *part) note(uri string, content json.RawMessage) {
	var n needs
	_ = json.Unmarshal(wire.Get(content, "_meta", "ui"), &n) // what is of another type is not asked for
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.seen) < maxSeen {
		p.seen[uri] = n
	}
}

const (
	maxSeen  = 1000             // views whose needs are kept
	maxAsked = 10 * time.Second // for the views whose needs are not known
)

// Resource implements extension.Publisher: the view of use_app.
func (p *part) Resource(h extension.Host, uri string) extension.Resource {
	if uri != dispatcherURI || !p.shows(h) {
		return nil
	}
	v := h.View()
	d := &dispatch{part: p}
	for _, t := range p.withView(v) {
		if uri := v.ViewOf(t); !slices.Contains(d.views, uri) {
			d.views = append(d.views, uri)
		}
	}
	return d
}

// A dispatch is a read of the view of use_app. A host gives it what all the views need that it may run;
// it gives each of them what that one needs.
type dispatch struct {
	part  *part
	views []string
}

func (d *dispatch) Read(ctx context.Context, host extension.Requester) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, maxAsked)
	defer cancel()
	var reads sync.WaitGroup
	for _, uri := range d.views {
		if _, known := d.part.needsOf(uri); !known {
			reads.Go(func() { // Show notes the answer; a view that cannot be read needs nothing
				_, _ = host.Request(ctx, "resources/read", wire.Set([]byte(`{}`), "uri", wire.Quote(uri)))
			})
		}
	}
	reads.Wait()
	all := needs{CSP: map[string][]string{}, Permissions: map[string]json.RawMessage{}}
	for _, uri := range d.views {
		n, _ := d.part.needsOf(uri)
		for kind, domains := range n.CSP {
			all.CSP[kind] = slices.Compact(slices.Sorted(slices.Values(slices.Concat(all.CSP[kind], domains))))
		}
		maps.Copy(all.Permissions, n.Permissions)
	}
	ui, err := json.Marshal(all)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, `{"contents":[{"uri":%q,"mimeType":"text/html;profile=mcp-app","text":%s,"_meta":{"ui":%s}}]}`, dispatcherURI, wire.Quote(dispatcher), ui), nil
}

func (p *part) needsOf(uri string) (n needs, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, known = p.seen[uri]
	return n, known
}
