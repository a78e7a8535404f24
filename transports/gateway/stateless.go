package gateway

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
)

// codeHeaderMismatch means that headers contradict the body (MCP 2026-07-28, "Transports").
const codeHeaderMismatch = -32020

// postStateless handles a request of the stateless era. Each request has its own session,
// which ends with the HTTP request: if the host leaves early, the request is cancelled.
func (g *Gateway) postStateless(w http.ResponseWriter, r *http.Request, principal, namespace string, m wire.Message) {
	if m.Raw[0] == '[' {
		deny(w, denial{status: http.StatusBadRequest, text: "a batch is not part of this protocol version"})
		return
	}
	if !m.IsRequest() { // without a session it has no request to belong to
		w.WriteHeader(http.StatusAccepted)
		return
	}
	if d, ok := headersMatch(r.Header, m); !ok {
		d.status, d.id = http.StatusBadRequest, m.ID
		deny(w, d)
		return
	}
	if m.Method == "tools/call" && g.opts.InputSchema != nil {
		name, _ := wire.Text(m.Outline.Get(m.Params, "name"))
		if wrong := argumentsMatch(r.Header, g.opts.InputSchema(principal, namespace, name), m.Outline.Get(m.Params, "arguments")); wrong != "" {
			deny(w, denial{status: http.StatusBadRequest, code: codeHeaderMismatch, text: wrong, id: m.ID})
			return
		}
	}
	accept := acceptable(r)
	if !g.begin() {
		shuttingDown(w, m.ID)
		return
	}
	if m.Method == "subscriptions/listen" {
		g.running.add(-1) // the shutdown does not wait for it
		if !accept.events {
			deny(w, denial{status: http.StatusNotAcceptable, text: wantsEvents, id: m.ID})
			return
		}
		listening, leave, ok := g.takePlace(w, r, m.ID, principal, namespace, nil)
		if !ok {
			return
		}
		defer leave()
		r = listening
	} else {
		defer g.running.add(-1)
	}
	e, done := g.openExchange(r, principal, !accept.events, func(e Edge) (*host.Session, func(context.Context)) {
		return g.opts.Open(e, principal, namespace, false)
	})
	defer done()
	e.host.Receive(m, e.standalone)
	g.respond(w, r, e.standalone, reply{forms: accept, stateless: true})
}

// headersMatch compares the headers of a request with its body, because proxies use the
// headers and the gateway uses the body.
func headersMatch(h http.Header, m wire.Message) (denial, bool) {
	inBody, _ := wire.Text(m.Outline.Get(m.Params, "_meta", transports.MetaVersion))
	version := h.Get("MCP-Protocol-Version")
	switch {
	case version == "":
		return denial{code: codeHeaderMismatch, text: "the header MCP-Protocol-Version is missing"}, false
	case inBody == "":
		return denial{code: wire.CodeInvalidParams, text: fmt.Sprintf("missing or invalid _meta field %q", transports.MetaVersion)}, false
	case inBody != version:
		return denial{code: codeHeaderMismatch, text: fmt.Sprintf("the header MCP-Protocol-Version is %q, the body says %q", version, inBody)}, false
	}
	if method, ok := headerText(h, "Mcp-Method"); !ok || method != m.Method {
		return denial{code: codeHeaderMismatch, text: fmt.Sprintf("the header Mcp-Method is %q, the body says %q", method, m.Method)}, false
	}
	member := transports.NameMembers[m.Method]
	if member == "" || member == "taskId" && h.Get("Mcp-Name") == "" { // not all hosts send it for tasks
		return denial{}, true
	}
	is, _ := wire.Text(m.Outline.Get(m.Params, member))
	if name, ok := headerText(h, "Mcp-Name"); !ok || name != is {
		return denial{code: codeHeaderMismatch, text: fmt.Sprintf("the header Mcp-Name is %q, the body says %q", name, is)}, false
	}
	return denial{}, true
}

// argumentsMatch compares arguments with the headers that a tool's schema requires for them
// (x-mcp-header; MCP 2026-07-28, "Transports"). It returns the problem, "" if there is none.
func argumentsMatch(h http.Header, schema, arguments json.RawMessage) string {
	for key, property := range wire.Members(wire.Get(schema, "properties")) {
		name, _ := wire.Text(wire.Get(property, "x-mcp-header"))
		if name == "" && wire.Get(property, "properties") == nil {
			continue // skip the value, which may be large
		}
		argument, _ := wire.Text(key)
		value := wire.Get(arguments, argument)
		if wrong := argumentsMatch(h, property, value); wrong != "" {
			return wrong
		}
		if name == "" {
			continue
		}
		name = "Mcp-Param-" + name
		is, given := headerText(h, name)
		absent := value == nil || string(value) == "null"
		text, quoted := wire.Text(value)
		if !quoted {
			text = string(value)
		}
		switch {
		case absent && len(h.Values(name)) == 0:
		case absent:
			return fmt.Sprintf("the header %s is present, but the argument %q is not", name, argument)
		case !given:
			return fmt.Sprintf("the header %s for the argument %q is missing, repeated or invalid", name, argument)
		case is != text && (quoted || !sameNumber(is, text)):
			return fmt.Sprintf("the header %s is %q, but the argument %q has another value", name, is, argument)
		}
	}
	return ""
}

// sameNumber reports whether two texts are the same integer, such as 1 and 1.0.
func sameNumber(a, b string) bool {
	x, err := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	return err == nil && err2 == nil && x == y && x == math.Trunc(x) && math.Abs(x) < 1<<53
}

// headerText returns the value of a header that must occur once. A text that a header cannot
// hold is sent in Base64 (MCP 2026-07-28, "Transports").
func headerText(h http.Header, name string) (string, bool) {
	values := h.Values(name)
	if len(values) != 1 {
		return "", false
	}
	text, coded := strings.CutPrefix(values[0], "=?base64?")
	if coded {
		if inner, ok := strings.CutSuffix(text, "?="); ok {
			if plain, err := base64.StdEncoding.DecodeString(inner); err == nil {
				return string(plain), true
			}
			return values[0], false
		}
	}
	return strings.TrimSpace(values[0]), true
}
